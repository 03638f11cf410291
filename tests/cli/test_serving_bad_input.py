"""The serving verbs say what is wrong with a question, where, and what to do; never a traceback, never a nan."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

PLAN = "plan serve llama-3.1-8b --chips h100-sxm"
RUN = "simulate serve llama-3.1-8b --requests 300"
SHOW = "show techniques llama-3.1-8b --chip h100-sxm --rate 5"

BAD = [
    # words, exit code, what the error must say
    ("plan serve", 2, "MODEL is missing"),
    ("plan serve llama-3.1-70 --rate 5", 2, "did you mean: llama-3.1-70b"),
    ("plan serve gone/config.json --rate 5", 2, "No such file"),
    (PLAN, 2, "how often requests come is not said"),
    (f"{PLAN} --rate 5 --users 5", 2, "--rate and --users do not go together"),
    (f"{PLAN} --users 0", 2, "--> --users"),
    (f"{PLAN} --users -5", 2, "at least 1"),
    (f"{PLAN} --users 1.5", 2, "whole number"),
    (f"{PLAN} --users many", 2, "is not a number"),
    (f"{PLAN} --users ''", 2, "is not a number"),
    (f"{PLAN} --rate 5 --system 1e9", 2, "--> --system"),
    (f"{PLAN} --rate 5 --documents 9 --document 1e9", 2, "no option --documents"),
    (f"{PLAN} --rate 5 --first-token 2s", 1, "it keeps --ttft 2100ms, or a shorter --first-token"),
    (f"{RUN} --rate 5 --documents 9 --document 1e9", 2, "--> --document\n"),
    (f"{RUN} --rate 5 --autoscale 1..2 --interval 1ns", 2, "it must be at least 100 ms"),
    (f"{RUN} --rate 5 --disaggregated prefill=1,prefill=2,decode=1", 2, "prefill is said twice"),
    (f"{RUN} --rate 5 --cache process=5,rate=inf", 2, "all at once is no rate"),
    (f"{PLAN} --users 1e30", 2, "at most"),
    (f"{PLAN} --rate 0", 2, "--> --rate"),
    (f"{PLAN} --rate inf", 2, "--rate: all at once is no rate"),
    (f"{PLAN} --rate 5 --percentile 0", 2, "percentile: 0 is out of bounds"),
    (f"{PLAN} --rate 5 --percentile 100", 2, "at least 0.1 and below 100"),
    (f"{PLAN} --rate 5 --percentile -5", 2, "percentile: -5 is out of bounds"),
    (f"{PLAN} --rate 5 --headroom 100", 2, "below 100 %"),
    (f"{PLAN} --rate 5 --ttft 0", 2, "above 0"),
    (f"{PLAN} --rate 5 --ttft 1", 2, "has no unit"),
    (f"{PLAN} --rate 5 --ttft 1ms", 1, "over the limit of 1 ms"),
    (f"{PLAN} --rate 5 --tpot 1us", 1, "over the limit of 1 µs"),
    (f"{PLAN} --users 5 --think -1s", 2, "at least 0"),
    (f"{PLAN} --rate 5 --isl 0", 2, "--> --isl"),
    (f"{PLAN} --rate 5 --isl 1000000", 2, "for a context of 131,072"),
    (f"{PLAN} --rate 5 --osl 0", 2, "--> --osl"),
    (f"{PLAN} --rate 5 --traffic nothing", 2, "traffic presets:"),
    (f"{PLAN} --rate 5 --precision fp7", 2, "precisions:"),
    (f"{PLAN} --rate 5 --precision ''", 2, "precision: nothing is named"),
    (f"{PLAN} --rate 5 --engine vlm", 2, "did you mean: vllm"),
    (f"{PLAN} --rate 5 --engine static", 2, "simulate serve"),
    (f"{PLAN} --rate 5 --tp 3", 2, "nearest legal: --tp 2 or --tp 4"),
    (f"{PLAN} --rate 5 --tp -1", 2, "at least 1"),
    (f"{PLAN} --rate 5 -o /tmp", 2, "it is a folder"),
    (f"{PLAN} --rate 5 -o /gone/plan.html", 2, "mkdir -p /gone"),
    (f"{PLAN} --rate 5 -o /dev/null/plan.html", 2, "could not be written"),
    ("plan serve llama-3.1-8b --rate 5 --chips ''", 2, "chips: nothing is named"),
    ("plan serve llama-3.1-8b --rate 5 --chips h10", 2, "did you mean: h100"),
    ("plan serve llama-3.1-8b --rate 5 --chips a100-sxm-80gb --precision fp8", 1, "has no FP8"),
    ("plan serve llama-3.1-8b --rate 5 --chips epyc-9654", 1, "no load does at P95"),
    ("plan serve llama-3.1-405b --rate 5 --chips rtx-4090 --precision bf16 --tp 1", 1, "are missing"),
    ("plan serve llama-3.1-405b --rate 5 --chips rtx-4090 --precision bf16", 1, "80.08 GB are missing"),
    ("simulate serve llama-3.1-8b", 2, "how often requests come is not said"),
    (f"{RUN} --rate 5 --users 5", 2, "--rate and --users do not go together"),
    (f"{RUN} --users 0", 2, "--> --users"),
    (f"{RUN} --rate 5 --chip h10", 2, "did you mean: h100"),
    ("simulate serve llama-3.1-8b --rate 5 --requests 0", 2, "--> --requests"),
    ("simulate serve llama-3.1-8b --rate 5 --requests 1.5", 2, "whole number"),
    ("simulate serve llama-3.1-8b --rate 5 --duration 0", 2, "--> --duration"),
    ("simulate serve llama-3.1-8b --rate 5 --duration 1us", 2, "--> --duration"),
    (
        "simulate serve llama-3.1-8b --rate inf --duration 10s",
        2,
        "--duration does nothing here: all requests come at once",
    ),
    (f"{RUN} --rate 5 --spread -1", 2, "--> --spread"),
    (f"{RUN} --rate 5 --spread 50", 2, "at most 20"),
    (f"{RUN} --rate 5 --burstiness -1", 2, "--> --burstiness"),
    (f"{RUN} --rate 5 --turns 0", 2, "--> --turns"),
    (f"{RUN} --rate 5 --system 200000", 2, "for a context of 131,072"),
    (f"{RUN} --rate 5 --tp 3", 2, "nearest legal: --tp 2 or --tp 4"),
    (f"{RUN} --rate 5 --tp 0", 2, "at least 1"),
    (f"{RUN} --rate 5 --pp 64", 2, "at most --pp 32"),
    (f"{RUN} --rate 5 --ep 2", 2, "has no experts"),
    ("simulate serve mixtral-8x7b --rate 1 --tp 2 --ep 3", 2, "does not divide"),
    ("simulate serve mixtral-8x7b --rate 1 --tp 16 --ep 16", 2, "nearest legal: --ep 4 or --ep 8"),
    ("simulate serve llama-3.1-70b --rate 5 --tp 1", 1, "enough: --precision fp8, or --tp 2"),
    (f"{RUN} --rate 5 --chip a100-sxm-80gb --precision fp8", 2, "has no FP8"),
    (f"{RUN} --rate 5 --routing nearest", 2, "one of round-robin"),
    (f"{RUN} --rate 5 --draft gpt-9", 2, "is not a draft"),
    (f"{RUN} --rate 5 --draft ngram --num-draft 0", 2, "at least 1"),
    (f"{RUN} --rate 5 --draft ngram --num-draft 5000", 2, "at most 64"),
    (f"{RUN} --rate 5 --draft ngram --acceptance 100", 2, "did you mean"),
    (f"{RUN} --rate 5 --tp 1 --draft llama-3.1-70b", 2, "takes longer than it saves"),
    (f"{RUN} --rate 5 --tp 1 --draft qwen3-0.6b", 2, "the other does not know"),
    (f"{RUN} --rate 5 --autoscale 5..1", 2, "--> --autoscale"),
    (f"{RUN} --rate 5 --autoscale 0..4:0", 2, "--> --autoscale"),
    (f"{RUN} --rate 5 --autoscale 1..2 --cold-start -1s", 2, "at least 0"),
    (f"{RUN} --rate 5 --replicas 0", 2, "at least 1"),
    (f"{RUN} --rate 5 --replicas 1000000", 2, "at most"),
    (f"{RUN} --rate 5 --disaggregated prefill=1", 2, "come together"),
    (f"{RUN} --rate 5 --disaggregated prefill=1xl40,decode=1xl40", 2, "--nic"),
    (f"{RUN} --rate 5 --nic fast", 2, "is not a quantity"),
    (f"{RUN} --rate 5 --speed 2", 2, "--speed does nothing here: it needs --trace"),
    (f"{RUN} --trace gone.csv", 2, "gone.csv is not a file"),
    (f"{RUN} --trace /tmp", 2, "/tmp is a folder"),
    ("show techniques llama-3.1-8b --chip h100-sxm", 2, "--rate is missing"),
    (f"{SHOW} --tp 3", 2, "nearest legal: --tp 2 or --tp 4"),
    (f"{SHOW} --cached 100", 2, "below 100 %"),
    (f"{SHOW} --draft nobody", 2, "is not a draft"),
    (f"{SHOW} --num-draft -1", 2, "at least 1"),
    (f"{SHOW} --engine static", 2, "no closed form"),
    (f"{SHOW} --ttft 1ms", 1, "over the limit of 1 ms"),
    ("show techniques llama-3.1-8b --chip h100-sxm --rate 1e9", 1, "the best holds"),
    ("show techniques llama-3.1-8b --chip a100-sxm-80gb --rate 5 --precision fp8", 2, "has no FP8"),
    ("show fit llama-3.1-8b --tp 3", 2, "nearest legal: --tp 2 or --tp 4"),
    ("show fit llama-3.1-8b --context 0", 2, "at least 1"),
    ("show fit llama-3.1-8b --batch 0", 2, "at least 1"),
    ("show fit llama-3.1-8b --engine vlm", 2, "did you mean: vllm"),
]


# options that say nothing here, and pairs of which one would win: one rule refuses them all
IDLE = [
    (f"{RUN} --rate 5 --cold-start 30s", "--cold-start does nothing here: it needs --autoscale"),
    (f"{RUN} --rate 5 --patience 30s", "--patience does nothing here: it needs --autoscale"),
    (f"{RUN} --rate 5 --num-draft 3", "--num-draft does nothing here: it needs --draft"),
    (f"{RUN} --rate 5 --acceptance 50%", "--acceptance does nothing here: it needs --draft"),
    (f"{RUN} --rate 5 --adapter-rank 8", "--adapter-rank does nothing here: it needs --adapters"),
    (f"{RUN} --rate 5 --resident-adapters 8", "--resident-adapters does nothing here: it needs --adapters"),
    (f"{RUN} --rate 5 --host-link 20GB/s", "--host-link does nothing here: it needs --host-cache"),
    (f"{RUN} --rate 5 --drive-rate 20GB/s", "--drive-rate does nothing here: it needs --drive-cache"),
    (f"{RUN} --rate 5 --speed 2", "--speed does nothing here: it needs --trace"),
    (f"{RUN} --rate 5 --sort-trace", "--sort-trace does nothing here: it needs --trace"),
    (f"{RUN} --users 5 --burstiness 2", "--burstiness does nothing here: it needs --rate"),
    (
        f"{RUN} --rate 5 --wait 5ms",
        "--wait does nothing here: it needs --batching dynamic or --engine dynamic",
    ),
    (
        f"{RUN} --rate 5 --engine static --wait 5ms",
        "--wait does nothing here: it needs --batching dynamic or --engine dynamic",
    ),
    (f"{RUN} --rate 5 --engine dynamic --batching static --wait 5ms", "static batching waits for nobody"),
    (f"{RUN} --rate 5 --replicas 2 --disaggregated prefill=1xh200,decode=1xh200", "do not go together"),
    (f"{RUN} --rate 5 --handoff 10GB/s", "only a prefill pool hands its cache over"),
    (f"{PLAN} --rate 5 --oversubscription 4:1", "--oversubscription does nothing here: it needs --on"),
    (f"{RUN} --rate 5 --cache process=10 --cache process=20", "2 tables of cache"),
    (f"{RUN} --rate 5 --host-cache '9e30 GB'", "too large"),
    (f"{PLAN} --rate 1e308", "too large"),
    (f"{RUN} --rate 5 --domain 0", "at least 1"),
    (f"{RUN} --rate 5 --nic 0", "at least 1 kB/s"),
    (f"{RUN} --rate 5 --from-region eu", '"eu" is not a region'),
    (f"{RUN} --rate 5 --in-region eu", "describe it: --region name=eu"),
    (f"{RUN} --rate 5 --spread 1 --isl shape=uniform,low=1,high=9", "--isl with a shape beside --spread"),
    (f"{PLAN} --rate 5 --num-draft 3", "--num-draft does nothing here: it needs --draft"),
    (f"{PLAN} --rate 5 --acceptance 50%", "--acceptance does nothing here: it needs --draft"),
    ("show fit llama-3.1-8b --adapter-rank 8", "--adapter-rank does nothing here: it needs --adapters"),
]


@pytest.mark.parametrize(("line", "words"), IDLE, ids=[row[0] for row in IDLE])
def test_what_says_nothing_here_is_refused(datahall: Callable, line: str, words: str) -> None:
    found, out, err = datahall(*shlex.split(line))
    assert (found, out) == (2, "")
    assert words in err


@pytest.mark.parametrize(("line", "code", "words"), BAD, ids=[row[0] for row in BAD])
def test_bad_input(datahall: Callable, line: str, code: int, words: str) -> None:
    found, out, err = datahall(*shlex.split(line))
    assert (found, out) == (code, "")
    assert err.startswith("error[")
    assert words in err
    assert "Traceback" not in err


HEAD = "arrival,prompt_tokens,output_tokens\n"
TRACES = {
    "empty": ("", "is empty"),
    "a head only": (HEAD, "no rows"),
    "unsorted": (HEAD + "0,100,10\n5,100,10\n2,100,10\n", "--sort-trace"),
    "a negative prompt": (HEAD + "0,100,10\n1,-100,10\n", ":3: prompt_tokens is -100"),
    "a negative answer": (HEAD + "0,100,10\n1,100,-1\n", ":3: output_tokens is -1"),
    "no prompt": (HEAD + "0,0,10\n", "at least 1"),
    "cut off": (HEAD + "0,100,10\n1,10", "cut off"),
    "words": (HEAD + "0,many,10\n", "not a number"),
    "nan": (HEAD + "0,nan,10\n", "not a number"),
    "other columns": ("a,b,c\n0,1,10\n", "of no known trace"),
}


@pytest.mark.parametrize(("content", "words"), TRACES.values(), ids=TRACES)
def test_bad_traces(datahall: Callable, tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "trace.csv"
    file.write_text(content, encoding="utf-8")
    code, out, err = datahall("simulate", "serve", "llama-3.1-8b", "--trace", str(file))
    assert (code, out) == (2, "")
    assert words in err
    assert "Traceback" not in err


def test_an_overload_is_no_and_says_what_could_be_held(datahall: Callable) -> None:
    code, out, _ = datahall(*shlex.split("simulate serve llama-3.1-8b --rate 1e9 --requests 2000"))
    assert code == 1
    held = re.search(r"holds\s+([\d.]+)\s+requests/s", out)
    assert held is not None
    assert 1 < float(held[1]) < 100


def test_requests_that_nobody_can_serve_are_counted_without_a_nan(datahall: Callable, tmp_path: Path) -> None:
    file = tmp_path / "long.csv"
    file.write_text(HEAD + "0,10000000,10\n1,10000000,10\n", encoding="utf-8")
    words = ["simulate", "serve", "llama-3.1-8b", "--trace", str(file)]
    code, out, _ = datahall(*words)
    assert code == 1
    assert "No request was served" in out
    assert "2 requests were longer than the context" in out
    assert "nan" not in out
    code, out, _ = datahall(*words, "--json")
    assert json.loads(out)["results"]["good_fraction"] is None


@pytest.mark.parametrize(
    "line",
    [
        f"{PLAN} --rate 5 --osl 1",
        f"{PLAN} --rate 0.0001",
        f"{PLAN} --users 1 --percentile 99.99",
        f"{RUN} --rate 5 --osl 1",
        "simulate serve llama-3.1-8b --rate 5 --requests 1",
        f"{SHOW} --osl 1",
    ],
)
def test_edges_are_answered_in_words(datahall: Callable, line: str) -> None:
    code, out, err = datahall(*shlex.split(line))
    assert (code, err) == (0, "")
    assert not re.search(r"\b(nan|inf)\b|1 replicas|1 users|100 % of requests have", out)


def test_a_chip_without_a_published_bandwidth_is_refused_by_name(datahall: Callable, tmp_path: Path) -> None:
    (tmp_path / "chip.toml").write_text(
        '[source.s]\ntitle = "t"\ndate = "2026"\n[chip.quiet]\ntitle = "Quiet"\nvendor = "v"\nfamily = "hopper"\n'
        'source = "s"\nmemory = "80 GB"\n[chip.quiet.peak]\nbf16 = "500 TFLOP/s"\n',
        encoding="utf-8",
    )
    for line, code in (
        ("plan serve llama-3.1-8b --rate 5 --chips quiet", 1),
        ("simulate serve llama-3.1-8b --rate 5 --chip quiet", 2),
    ):
        found, out, err = datahall(*line.split(), "--catalog", str(tmp_path))
        assert (found, out) == (code, "")
        assert "bandwidth of Quiet is not published" in err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("--failure replicas=0", "300 requests had not ended when the run did"),
        ("--until 1s", "had not ended when the run did"),
        ("--until 1us", "None had come when the run ended, after 1 µs"),
        ("--kv-blocks 1", "300 larger than any cache"),
        (
            "--warmup 10min",
            "all before the end of the warm-up, after 10 min: more --requests, or a shorter --warmup",
        ),
    ],
)
def test_a_run_that_serves_nobody_says_why(datahall: Callable, more: str, said: str) -> None:
    code, out, err = datahall(*shlex.split(f"{RUN} --rate 5 {more}"))
    assert (code, err) == (1, "")
    words = " ".join(out.split())
    assert f"No request was {'measured' if 'warm-up' in said else 'served'}" in words
    assert said in words
    assert "nan" not in words

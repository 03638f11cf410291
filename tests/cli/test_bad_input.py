"""Whatever is wrong is said in one shape, without a traceback, and ends with the right code."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from datahall.cli import main

BAD = [
    # words, exit code, what the error must say
    ("shw", 2, "did you mean: show, sweep?"),
    ("show chp h100", 2, "did you mean: chip"),
    ("catalog prics", 2, "did you mean: prices"),
    ("show chip", 2, "CHIP is missing"),
    ("show chip h100 extra", 2, "unexpected extra argument"),
    ("show chip h100 --formt json", 2, "did you mean: --format?"),
    ("simulate serve llama-3.1-8b --rate 5 --no-chunked-prefil", 2, "did you mean: --no-chunked-prefill"),
    ("show roofline h100 --model llama-3.1-8b --no-eager", 2, "leave it out: it is so without --eager"),
    ("show chip h100 --format xml", 2, "'table', 'tree'"),
    ("show chip h100 --format", 2, "requires an argument"),
    ("show fit llama-3.1-70b --tp 4 --tp 8", 2, "--tp is said twice"),
    ("show chip h100 -o a.json -o b.json", 2, "--output is said twice"),
    ("show chip h100 --quiet --quiet", 2, "--quiet is said twice"),
    ("show chip h100 --no-color --no-color", 2, "--no-color is said twice"),
    ("show chip h100 --no-color --color", 2, "--color and --no-color do not go together"),
    ("show chip h100 -oa.json -ob.json", 2, "--output is said twice"),
    ("show chip h10", 2, "did you mean: h100"),
    ("show chip ''", 2, "cannot be read"),
    (f"simulate train llama-3.1-8b --chips 8 --split {'9' * 5000}", 2, "hundreds of digits"),
    (f"simulate fabric --chips 8 --on tree --job size=1MB,ranks=0-{'9' * 5000}", 2, "hundreds of digits"),
    (f"simulate fabric --chips 8 --on tree --job {{ranks={'9' * 5000}}}", 2, "thousands of digits"),
    (f"simulate fabric --chips 8 --on tree --job {'{a=' * 20_000}", 2, "is nested too deeply"),
    ("show chip h100 --claim peak.fp8", 2, "is not a claim"),
    ("show chip h100 --claim peek.fp8=1", 2, "peak.fp8"),
    ("show chip h100 --claim 'memory=80 XB'", 2, "is not a unit"),
    ("show model llama-3.1-8", 2, "did you mean: llama-3.1-8b"),
    ("show model llama-3.1-8b --context 0", 2, "at least 1"),
    ("show model llama-3.1-8b --context -5", 2, "at least 1"),
    (
        "show fabric fat-tree --chips 64 --server dgx-h200 --chip h100-sxm",
        2,
        "has h200-sxm, not h100-sxm\n  --> --server",
    ),
    ("show fabric fat-tree --chips 64 --tiers 1 --radix 32", 2, "do not fit 1 tier of 32-port switches"),
    ("show fit llama-3.1-8b --tp 1048576", 2, "--tp 1048576 breaks the rule"),
    ("show roofline gaudi3 --model llama-3.1-8b --level measured", 2, "--> --level"),
    ("simulate fabric --chips 8 --on tree --job size=1MB,start=36500d", 2, "it must be at most 24 h"),
    (
        "simulate fabric --chips 8 --on tree --job size=1MB,pause=3s,repeat=1",
        2,
        "it needs repeat other than 1",
    ),
    (
        "simulate train llama-3.1-8b --chips 8 --slow-hosts 0 --slow-by 1%",
        2,
        "it needs --slow-hosts other than 0%",
    ),
    ("show model llama-3.1-8b --context 1e30", 2, "at most"),
    ("show model llama-3.1-8b --context many", 2, "is not a quantity"),
    ("show model llama-3.1-8b --context ''", 2, "is not a quantity"),
    ("show model llama-3.1-8b --batch 1.5", 2, "--batch: 1.5 is not a whole number"),
    ("simulate serve llama-3.1-8b --rate 1 --hash-block 0", 2, "--hash-block: 0 is too small"),
    ("show model llama-3.1-8b --precision fp7", 2, "precisions:"),
    ("show model llama-3.1-8b --chips h10", 2, "did you mean: h100"),
    ("show model gone/config.json", 2, "No such file"),
    ("show roofline h200", 2, "--model is missing"),
    ("show roofline h200 --model llama-3.1-8b --tp 3", 2, "nearest legal: --tp 2 or --tp 4"),
    ("show roofline h200 --model llama-3.1-8b --batch 0", 2, "at least 1"),
    ("show roofline a100-sxm-80gb --model llama-3.1-8b --precision fp8", 2, "has no FP8"),
    ("show hierarchy h100-sxm --working-set 0", 2, "above 0"),
    ("show hierarchy h100-sxm --prefetch", 2, "--prefetch does nothing here: it needs --working-set"),
    ("show model llama-3.1-8b --context 2^9999", 2, "too large"),
    ("show model llama-3.1-8b --context nan", 2, "a whole number, e.g. 4096 or 4k"),
    ("show model llama-3.1-8b --context 1e30", 2, "it must be at most 1,073,741,824"),
    ("plan serve llama-3.1-8b --rate 1 --ttft 3d", 2, "it must be at most 24 h"),
    ("plan serve llama-3.1-8b --rate 1 --percentile 100", 2, "below 100, e.g. 95 or 99.9\n"),
    ("plan serve llama-3.1-8b --rate 1 --percentile nan", 2, "e.g. 95\n"),
    ("plan serve llama-3.1-8b --rate 1 --isl 1e9", 2, "--isl\n"),
    ("plan serve llama-3.1-8b --rate 1 --isl 1e9", 2, "it must be at most 999,999,999\n"),
    ("plan serve llama-3.1-8b --rate 1 --isl shape=uniform,low=9,high=3", 2, "--> --isl\n"),
    ("simulate fabric --chips 8 --on tree --job size=1MB --failure switches=0,left=2", 2, "--> --failure\n"),
    ("simulate fabric --chips 8 --on tree --job size=1MB,repeat=1e9", 2, "--> --job\n"),
    ("simulate fabric --chips 8 --on tree --job size=1MB,repeat=1e9", 2, "it must be at most 10,000,000\n"),
    ("catalog prices --as-of soon", 2, "is not a day"),
    ("plan serve llama-3.1-8b --rate 1 --chips 8", 2, "is a number, not the name of a chip"),
    ("plan train llama-3.1-8b --tokens 1T --chips h100-sxm", 2, "a whole number, e.g. 8: How many chips"),
    ("simulate", 2, "error[usage]: datahall simulate: what?"),
    ("show", 2, "one of chip, hierarchy, model,"),
    ("show chip h100 -o ''", 2, "is not the path of a file"),
    ("show chip h100 --catalog ''", 2, "is not a folder"),
    ("simulate serve llama-3.1-8b --rate 1 --trace nosuch", 2, "--rate and --trace do not go together"),
    ("validate kernels --data /gone.csv --json -o x.html", 2, "--json beside -o x.html"),
    ("show hierarchy h100-sxm --working-set 2", 2, "has no unit"),
    ("show hierarchy h100-sxm --working-set '1 PB'", 1, "spread it over"),
    ("catalog chips --sort beauty", 2, "one of name, memory"),
    ("catalog chips --vendor nvida", 2, "NVIDIA"),
    ("catalog prices --kind leased", 2, "one of on-demand"),
    ("catalog prices --max-age soon", 2, "is not a quantity"),
    ("catalog chips --catalog /gone", 2, "--> --catalog"),
    ("catalog add /gone.toml", 2, "No such file"),
    ("catalog search", 2, "TEXT is missing"),
    ("explain tpott", 2, "did you mean: TPOT"),
    ("validate kernel", 2, "did you mean kernels"),
    ("validate kernels --data /gone.csv", 2, "No such file"),
    ("completion tcsh", 2, "'bash', 'zsh', 'fish'"),
    ("show chip h100 -o /gone/x.txt", 2, "mkdir -p /gone"),
    ("show chip h100 -o /tmp", 2, "it is a folder"),
    ("show chip h100 -o x.docx", 2, "no format goes with .docx"),
]


@pytest.mark.parametrize(("line", "code", "words"), BAD, ids=[row[0] for row in BAD])
def test_bad_input(datahall: Callable, line: str, code: int, words: str) -> None:
    found, out, err = datahall(*shlex.split(line))
    assert (found, out) == (code, "")
    assert err.startswith("error[")
    assert words in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b'{"model_type": "llama", "hidden_size": 40', "cut off"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b"[1, 2]", "one JSON object"),
        (b'{"model_type": "abacus"}', "abacus"),
        (b'{"model_type": "llama", "hidden_size": "wide"}', "hidden_size"),
    ],
    ids=["empty", "cut off", "binary", "a list", "unknown type", "wrong type"],
)
def test_bad_configs(datahall: Callable, tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(content)
    code, out, err = datahall("show", "model", str(file))
    assert (code, out) == (2, "")
    assert words in err
    assert "Traceback" not in err
    assert datahall("check", str(file)).code == 1


JSON = [
    # words, exit code, kind, input at fault, what the message and the hint must say
    ("show chip h10", 2, "unknown-name", "chip", "is not a chip", "h100"),
    ("show model llama-3.1-8b --context 0", 2, "scenario", "context", "--context: 0 is too small", ""),
    ("show hierarchy h100-sxm --working-set '1 PB'", 1, "infeasible", "", "", "spread it over"),
    ("show chip h100 --formt x", 2, "usage", "", "no option --formt", ""),
    ("shw", 2, "usage", "", "is not a command", ""),
    ("show chip h100 --format md", 2, "scenario", "", "--format md beside --json", "say one of them"),
    ("show collective all-reduce --size 1GB --chips 9 --tp 3", 2, "usage", "", "no option --tp", ""),
    ("plan train llama-3.1-405b --tokens 15T --chips 8", 1, "infeasible", "", "", ""),
]


@pytest.mark.parametrize(
    ("line", "code", "kind", "field", "message", "hint"), JSON, ids=[row[0] for row in JSON]
)
def test_who_asks_for_json_gets_an_error_in_json_too(
    datahall: Callable, line: str, code: int, kind: str, field: str, message: str, hint: str
) -> None:
    found, out, err = datahall(*shlex.split(line), "--json")
    body = json.loads(out)
    assert (found, body["schema"], body["version"]) == (code, "datahall/error", 1)
    error = body["error"]
    assert (error["code"], error["exit_code"]) == (kind, code)
    assert err.startswith(f"error[{kind}]: {error['message']}")  # the same words for a person
    assert field in ("", error["field"])
    assert message in error["message"]
    assert hint in error["hint"]


def test_every_problem_of_a_file_stands_in_the_json_of_its_error(datahall: Callable, tmp_path: Path) -> None:
    file = tmp_path / "q.toml"
    file.write_text(
        'version = 1\nask = "show fit"\nmodel = "llama-9"\n[deployment]\ntp = 0\n', encoding="utf-8"
    )
    code, out, _ = datahall("show", "fit", str(file), "--format", "json")
    problems = json.loads(out)["error"]["problems"]
    assert code == 2
    assert [problem["where"] for problem in problems] == [f"{file}:3", f"{file}:5"]
    assert "deployment.tp: 0 is too small" in problems[1]["message"]


@pytest.mark.parametrize("tail", ["--json -o x.json", "-o x.json", "--format md", ""])
def test_standard_output_is_empty_where_json_was_not_asked_for_on_it(datahall: Callable, tail: str) -> None:
    assert datahall("show", "chip", "h10", *tail.split()).out == ""


def test_a_bug_is_called_one(datahall: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the sky fell")

    monkeypatch.setattr("datahall.answers.ask._function", lambda _: broken)
    code, out, err = datahall("show", "chip", "h100")
    assert (code, out) == (3, "")
    assert err.count("\n") == 1
    assert "this is a bug in datahall" in err
    assert "--debug" in err
    code, _, err = datahall("show", "chip", "h100", "--debug")
    assert code == 3
    assert "Traceback" in err
    assert "the sky fell" in err


def test_a_question_that_is_too_large_for_the_machine_is_no_bug(
    datahall: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 4.00 GiB")

    monkeypatch.setattr("datahall.answers.ask._function", lambda _: full)
    code, _, err = datahall("show", "chip", "h100")
    assert code == 2
    assert "too little memory" in err
    assert "fewer chips" in err


def test_debug_shows_the_traceback_of_an_error(datahall: Callable) -> None:
    assert "Traceback" in datahall("show", "chip", "h10", "--debug").err
    assert "Traceback" in datahall("--debug", "show", "chip", "h10").err


def test_ctrl_c_ends_with_130(datahall: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("datahall.answers.ask._function", lambda _: interrupted)
    code, out, err = datahall("show", "chip", "h100")
    assert (code, out, err.strip()) == (130, "", "interrupted")


def test_errors_leave_through_one_door() -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(["show", "chip", "h10"])
    assert ended.value.code == 2


def test_a_wrong_line_of_a_catalogue_is_one_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two inputs look something up in it: a model and its chips."""
    (tmp_path / "x.toml").write_text("foo = ][\n")
    asked = ["plan", "serve", "llama-3.1-8b", "--rate", "5", "--chips", "h100-sxm", "--catalog", str(tmp_path)]
    ended = main.run(asked)
    assert ended == 2
    assert capsys.readouterr().err.count("x.toml:1") == 1

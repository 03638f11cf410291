"""What commands print, kept beside this file: the first example of every verb, and some formats and errors."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.answers.claims import garbled, unfounded

from datahall.answers.verb import Verb
from datahall.answers.verbs import VERBS
from datahall.catalog import load
from datahall.cli.main import run
from datahall.report.wire import decode

HERE = Path(__file__).parent
DAY = "2026-11-15"

FILES = {
    "my-chip.toml": """
[chip.my-chip]
source = { title = "my bench", date = "2026-03", kind = "measured" }
title = "My chip"
vendor = "Me"
family = "hopper"
memory = "64 GB"
memory_bandwidth = "2 TB/s"
[chip.my-chip.peak]
bf16 = "500 TFLOP/s"
""",
    "scenario.toml": """
version = 1
ask = "simulate fabric"
[fabric]
topology = "fat-tree"
chips = 64
[[job]]
collective = "all-reduce"
ranks = 64
size = "64 MB"
""",
    "fit.toml": """
version = 1
ask = "show fit"
model = "llama-3.1-70b"
[deployment]
chip = "h200"
""",
    "jobs.toml": """
version = 1
[fabric]
topology = "leaf-spine"
chips = 128
oversubscription = "4:1"
[[cluster_job]]
name = "assistant"
kind = "serving"
chips = 16
run = "10h"
user = "product"
[[cluster_job]]
name = "tuning"
chips = 48
run = "2h"
limit = "4h"
submit = "1min"
network = "30 %"
user = "llm"
[[cluster_job]]
name = "pretraining"
chips = 96
run = "6h"
limit = "8h"
submit = "2min"
user = "llm"
[[cluster_job]]
name = "ablation"
chips = 4
run = "40min"
limit = "1h"
submit = "5min"
count = 12
every = "5min"
user = "research"
""",
}
# verbs whose first example does not do: it needs the day, or a list of another package
INSTEAD = {
    "catalog prices": f"--chip h100 --kind spot --as-of {DAY}",
    "catalog api-prices": f"gpt-4o-mini --first-party --as-of {DAY}",
    "check": "my-chip.toml scenario.toml",
    "gateway bill": "--month 2026-11",
    "gateway top": "http://127.0.0.1:8080 --once --key-from NOT_SET",
    "gateway load": "http://127.0.0.1:8080 --users 4 --key-from NOT_SET",
    "compare": f"h100-sxm h200 b200 --as-of {DAY}",
    "sweep": "fit.toml --over tp=1,2,4,8 batch=1..64:x4",
}


# what stands before a verb that needs something to be there
BEFORE = {
    "gateway-keys-limit": "gateway keys create --name acme --rpm 600",
    "gateway-keys-rotate": "gateway keys create --name acme",
    "gateway-customers-limit": "gateway keys create --name tests --customer acme",
    "gateway-keys-revoke": "gateway keys create --name acme",
}
MADE_ANEW = (
    (r"dh-[\w-]{43}", f"dh-{'x' * 43}"),
    (r"dh-[\w-]{6}…", "dh-xxxxxx…"),
    (r"20\d\d-\d\d-\d\d", "2026-11-19"),
)


def line_of(verb: Verb) -> str:
    """The command that stands for a verb."""
    return f"{verb.name} {INSTEAD.get(verb.name, verb.examples[0])}".strip()


VERB_LINES = {verb.name.replace(" ", "-"): line_of(verb) for verb in VERBS}
LINES = VERB_LINES | {
    "compare-files": "compare fit.toml --set tp=4 --set tp=4,precision=fp8",
    "compare-clouds": f"compare aws gcp azure lambda coreweave --chip h100-sxm --as-of {DAY}",
    "sweep-csv": "sweep fit.toml --over tp=2,3 --format csv --quiet",
    "plan-serve-mixed": "plan serve llama-3.1-8b --rate 400 --isl 500 --osl 99 --chips h100,h200 --available h100=5",
    "help": "--help",
    "help-show-roofline": "show roofline --help",
    "show-chip-claim": "show chip h100-sxm --claim 'peak.fp8=3958 TFLOP/s'",
    "show-chip-json": "show chip tpu-v4 --json",
    "show-model-moe": "show model deepseek-v3 --precision fp8 --batch 64 --chips h200-sxm,b200-sxm",
    "show-model-explain": "explain show model llama-3.1-8b",
    "show-model-csv": "show model llama-3.1-8b --format csv --quiet",
    "show-hierarchy-scan": "show hierarchy h100-sxm --working-set '120 GB' --offload host --prefetch",
    "show-hierarchy-md": "show hierarchy h200-sxm --format md",
    "show-roofline-md": "show roofline h200 --model llama-3.1-8b --phase decode --batch 32 --format md",
    "show-roofline-explain": "explain show roofline h200 --model llama-3.1-8b",
    "show-roofline-no": "show roofline groq-lpu --model llama-3.1-8b",
    "show-fit-no": "show fit llama-3.1-70b --chip h100-sxm --tp 1",
    "catalog-chips-memory": "catalog chips --sort memory",
    "explain-all": "explain --format csv",
    "error-overload": "show techniques llama-3.1-8b --chip h200 --rate 1e9",
    "error-no-room": "simulate serve llama-3.1-70b --chip h100-sxm --tp 1 --rate 1",
    "error-name": "show chip h10",
    "error-usage": "shw",
    "error-infeasible": "show hierarchy h100-sxm --working-set '160 GB'",
}
# In these, long sums of floats may round to the next digit on another machine; all else, and the rest of them, may not.
ROUNDED = {
    "error-overload", "plan-serve", "plan-serve-mixed", "plan-train", "show-collective", "show-roofline",
    "show-roofline-explain", "show-roofline-md", "show-techniques", "simulate-serve", "simulate-train",
}  # fmt: skip


@pytest.fixture
def at_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home and a folder of one's own with the files that examples name; lines break by the length of its name."""
    with TemporaryDirectory(prefix="home-", dir="/tmp") as folder:
        yield _furnished(Path(folder), monkeypatch)


def _furnished(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    for variable in ("DATAHALL_CATALOG", "COLUMNS"):
        monkeypatch.delenv(variable, raising=False)
    load.cache_clear()
    for name, text in FILES.items():
        (home / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(home)
    return home


@pytest.mark.golden
@pytest.mark.parametrize("name", LINES)
def test_golden(name: str, update: bool, at_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _begin(name, capsys)
    code = run(shlex.split(LINES[name]))
    out, err = capsys.readouterr()
    text = f"$ datahall {LINES[name]}\n{out}{err}[exit {code}]\n".replace(str(at_home), "~")
    if name.startswith("gateway"):
        for made, kept in MADE_ANEW:
            text = re.sub(made, kept, text)
    file = HERE / f"{name}.txt"
    if update:
        file.write_text(text, encoding="utf-8")
    recorded = file.read_text(encoding="utf-8")
    assert text == recorded or (name in ROUNDED and moved(recorded, text) == [])


def _begin(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Have what a line needs, without a word of it."""
    if name in BEFORE:
        run(shlex.split(BEFORE[name]))
        capsys.readouterr()


NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
# a time, a rate, a share or a ratio may move; one that a leaf states is no sum
MOVES = re.compile(
    r" ?(?:(?:[nµm]?s|min|h|days)\b|[kMGT]?(?:B|FLOP|tokens|requests)/s|%|×)"
    r"(?! (?:input|counted|chosen|assumption|(?:datasheet|derived|measured) \[))"
)
DRAWN = re.compile(r"[\s─│├└]+")  # white space and lines, which follow the widths of numbers


def moved(recorded: str, text: str) -> list[str]:
    """Where a text says something else than the recorded one, or a number that moved further than it may."""
    was, now = DRAWN.sub(" ", recorded), DRAWN.sub(" ", text)
    if NUMBER.split(was) != NUMBER.split(now):
        return ["the words differ"]
    return [
        f"{one[0]} became {other[0]}: …{now[max(0, other.start() - 40) : other.end() + 20]}"
        for one, other in zip(NUMBER.finditer(was), NUMBER.finditer(now), strict=True)
        if one[0] != other[0] and not (MOVES.match(now, other.end()) and _near(one[0], other[0]))
    ]


def _near(one: str, other: str) -> bool:
    """Whether two numbers are at most one apart in the last digit that is shown."""
    decimals = max(len(text.partition(".")[2]) for text in (one, other))
    was, now = (float(text.replace(",", "")) for text in (one, other))
    return abs(now - was) < 1.5 * 10.0**-decimals


LINES_SEEN = (
    "step 31.78 ms [28.5 ms – 37.1 ms] = a + b\n├── rows 345.1 counted\n└── peak 4.5 TB/s  datasheet [5]\n"
)


@pytest.mark.parametrize(
    ("old", "new", "may"),
    [
        ("31.78 ms", "31.79 ms", True),
        ("28.5 ms", "28.4 ms", True),
        ("31.78 ms", "31.8 ms", False),
        ("31.78 ms", "31.9 ms", False),
        ("31.78 ms", "31.78 s", False),
        ("345.1", "345.2", False),
        ("4.5 TB/s", "4.6 TB/s", False),
        ("[5]", "[6]", False),
        ("a + b", "a + c", False),
        ("└── peak", "│   └── peak", True),
    ],
)
def test_only_what_is_computed_may_move_and_only_by_the_last_digit(old: str, new: str, may: bool) -> None:
    assert (moved(LINES_SEEN, LINES_SEEN.replace(old, new)) == []) is may


@pytest.mark.golden
@pytest.mark.usefixtures("at_home")
@pytest.mark.parametrize(
    "name", [name for name in VERB_LINES if name not in ("validate", "gateway-load", "gateway-top")]
)
def test_a_golden_answer_claims_what_follows_from_what_is_under_it(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _begin(name, capsys)
    run([*shlex.split(re.sub(r" --format \S+", "", VERB_LINES[name])), "--json", "--quiet"])
    answer = decode(capsys.readouterr().out)
    assert unfounded(answer) == []


FOR_A_PERSON = [name for name, line in LINES.items() if not re.search(r"--json|--format csv", line)]


@pytest.mark.parametrize("name", FOR_A_PERSON)
def test_what_is_printed_reads_well(name: str) -> None:
    command, printed = (HERE / f"{name}.txt").read_text(encoding="utf-8").split("\n", 1)
    assert command.startswith("$ ")
    assert garbled(printed) == []


def test_nothing_is_left_beside_the_goldens_that_are_asked_for() -> None:
    assert {path.stem for path in HERE.glob("*.txt")} <= set(LINES)

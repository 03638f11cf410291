"""What commands print, kept beside this file: the first example of every verb, and some formats and errors."""

import re
import shlex
from pathlib import Path

import pytest

from datahall.answers.verbs import VERBS, Verb
from datahall.breakdown import false_nodes
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
}
# verbs whose first example does not do: it needs the day, or a list of another package
INSTEAD = {
    "catalog prices": f"--chip h100 --kind spot --as-of {DAY}",
    "catalog api-prices": f"gpt-4o-mini --first-party --as-of {DAY}",
    "check": "my-chip.toml scenario.toml",
}


def line_of(verb: Verb) -> str:
    """The command that stands for a verb."""
    return f"{verb.name} {INSTEAD.get(verb.name, verb.examples[0])}".strip()


VERB_LINES = {verb.name.replace(" ", "-"): line_of(verb) for verb in VERBS}
LINES = VERB_LINES | {
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
# their numbers are the ledger's business, their shape is ours
FITTED = {
    "error-overload", "plan-serve", "plan-train", "show-collective", "show-memory", "show-roofline",
    "show-roofline-explain", "show-roofline-md", "show-techniques", "simulate-fabric", "simulate-serve",
    "simulate-train", "validate",
}  # fmt: skip


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a folder of one's own with the files that examples name."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for variable in ("DATAHALL_CATALOG", "COLUMNS"):
        monkeypatch.delenv(variable, raising=False)
    load.cache_clear()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.golden
@pytest.mark.parametrize("name", LINES)
def test_golden(name: str, update: bool, at_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(shlex.split(LINES[name]))
    out, err = capsys.readouterr()
    text = f"$ datahall {LINES[name]}\n{out}{err}[exit {code}]\n".replace(str(at_home), "~")
    if name in FITTED:
        text = _masked(text)
    file = HERE / f"{name}.txt"
    if update:
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def _masked(text: str) -> str:
    """Every number below the command as one sign."""
    head, _, rest = text.partition("\n")
    masked = re.sub(r"[\d.,]*\d", "#", rest)
    return f"{head}\n{masked}"


@pytest.mark.golden
@pytest.mark.usefixtures("at_home")
@pytest.mark.parametrize("name", [name for name in VERB_LINES if name != "validate"])
def test_every_figure_of_a_golden_answer_holds(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    run([*shlex.split(VERB_LINES[name]), "--json", "--quiet"])
    answer = decode(capsys.readouterr().out)
    assert answer.figure is None or false_nodes(answer.figure) == []


def test_nothing_is_left_beside_the_goldens_that_are_asked_for() -> None:
    assert {path.stem for path in HERE.glob("*.txt")} <= set(LINES)

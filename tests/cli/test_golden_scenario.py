"""`datahall plan` alone answers the golden scenario, and with a file what the file says; both as if they were typed."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run

from datahall.answers.verbs.serving import GOLDEN

ROOT = Path(__file__).parents[2]
SERVE = """version = 1
model = "llama-3.1-8b"
[traffic]
rate = 5
[candidates]
chips = ["h100-sxm"]
[goal]
objective = "energy"
[purchase]
buy = ["rent", "api"]
"""
TRAIN = """version = 1
model = "llama-3.2-1b"
[training]
tokens = "10G"
[fabric]
chips = 8
[goal]
budget = "1USD"
"""


def read(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


def test_alone_it_answers_the_golden_scenario(datahall: Run) -> None:
    """A 70B model, 10,000 users, the first token within a second; on four chips, by four ways to pay."""
    alone, typed = datahall("plan", "--json"), datahall("plan", "serve", *shlex.split(GOLDEN), "--json")
    assert alone.code == typed.code == 0
    assert read(alone.out) == read(typed.out)
    results = read(alone.out)["results"]
    assert {"rent_month_usd", "own_month_usd", "api_month_usd", "all_in_usd_per_mtok"} <= results.keys()
    for word in ("llama-3.1-70b", "10000", "1s", "50ms", "h100-sxm,h200,b200,mi300x", "rent,own,spot,api"):
        assert word in shlex.split(GOLDEN)


def test_it_goes_where_it_is_asked_to(datahall: Run, tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    assert datahall("plan", "-o", str(page)).code == 0
    text = page.read_text()
    assert "cost against latency" in text.lower()
    assert 'src="http' not in text


def test_what_is_no_question_is_an_error(datahall: Run) -> None:
    """An option needs its verb; help is help."""
    assert datahall("plan", "--users", "5").code == 2
    assert datahall("plan", "nothing").code == 2
    assert "serve" in datahall("plan", "--help").out


@pytest.mark.parametrize(
    ("text", "typed", "code"),
    [
        (SERVE, "serve llama-3.1-8b --rate 5 --chips h100-sxm --objective energy --buy rent,api", 0),
        (TRAIN, "train llama-3.2-1b --tokens 10G --chips 8 --budget 1USD", 1),
    ],
)
def test_a_file_is_planned_as_it_says(
    text: str, typed: str, code: int, datahall: Run, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    by_file, by_words = datahall("plan", str(file), "--json"), datahall("plan", *typed.split(), "--json")
    assert by_file.code == by_words.code == code
    assert read(by_file.out)["results"] == read(by_words.out)["results"]


def test_make_run_asks_it() -> None:
    assert "$(BIN)/datahall plan\n" in (ROOT / "Makefile").read_text()
    assert "\ndatahall plan\n" in (ROOT / "README.md").read_text()

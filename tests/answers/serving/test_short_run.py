"""A run that ends before a request does says so, and what follows it is long enough."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

import datahall as dh
from datahall.catalog import Catalog
from datahall.cli.main import main

SHELF = Catalog(user=False)
ASKED: dict[str, Any] = {"model": "llama-3.1-8b", "chip": "h100-sxm", "rate": 2, "requests": 200}
SHORT = {
    "before the first comes": {"until": "1 ms"},
    "before the first ends": {"until": "1.5 s", "isl": 8000, "osl": 4000},
    "before the warm-up ends": {"until": "20 s", "warmup": "19.9 s"},
    "a warm-up that outlasts all": {"warmup": "1 h"},
}
WIDE = """version = 1
model = "llama-3.1-8b"
[[deployment]]
chip = "h100-sxm"
[measurement]
until = "1 ms"
[[traffic]]
rate = 2
requests = 100
[[traffic]]
rate = 1
requests = 50
"""


def asked_next(found: dh.Answer, capsys: pytest.CaptureFixture[str]) -> str:
    """What the first command that an answer offers prints."""
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(found.next_commands[0])[1:])
    printed = capsys.readouterr()
    assert ended.value.code in (0, 1), printed.err
    return printed.out


@pytest.mark.parametrize("case", SHORT)
def test_a_run_that_measures_nobody_is_followed_by_one_that_does(
    case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = dh.simulate_serve(**{**ASKED, **SHORT[case]}, catalog=SHELF)
    assert found.headline.startswith("No request was")
    assert ("until" in found.binding) == ("until" in SHORT[case])
    assert not [chart.title for chart in found.charts if not chart.title.endswith("over time")]
    assert "latency" not in [table.title for table in found.tables]
    assert "No request was" not in asked_next(found, capsys)


def test_a_file_of_several_streams_is_asked_again_with_a_later_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "service.toml").write_text(WIDE, encoding="utf-8")
    found = dh.simulate_serve(str(tmp_path / "service.toml"), catalog=SHELF)
    assert found.headline.startswith("No request was")
    assert "No request was" not in asked_next(found, capsys)


def test_a_run_that_is_cut_short_has_a_warm_up_in_proportion() -> None:
    """The requests that were to come take 100 s: a tenth of that would leave nothing of a run of 8 s."""
    found = dh.simulate_serve(**ASKED, until="8 s", catalog=SHELF)
    assert found.results["ttft_p50_s"] is not None


def test_a_run_that_is_cut_is_not_said_to_be_long() -> None:
    """A run of chosen length is long beside a request; one that `until` cuts before any has ended is not."""

    def first_note(**cut: str) -> str:
        said = {"chip": "h100-sxm", "rate": 20, "isl": 500, "osl": 400}
        return dh.simulate_serve("llama-3.1-8b", **said, **cut).notes[0]  # type: ignore[arg-type]

    assert "long beside" in first_note()
    assert "long beside" in first_note(until="1h")
    assert "long beside" not in first_note(until="1s")

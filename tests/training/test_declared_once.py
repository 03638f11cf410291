"""A number that decides a step is declared once: its time, its figure and its refusal read the same declaration."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import datahall.training
from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.scenario.read import read_names
from datahall.training.layout import asked
from datahall.training.layout.layout import Layout
from datahall.training.setup import setup_of

ROOM = Path(datahall.training.__file__).parent
FIGURES = ("step/figure.py", "step/exchange_figure.py", "pipeline/figure.py")
SAYS_NOTHING = {0.0, 1.0}  # nothing of it, all of it


def typed_in(path: Path) -> list[str]:
    """Numbers that a figure's assumptions and shares of a bandwidth have of their own."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("assumed", "part_of_bandwidth"):
            numbers = (one.value for one in node.args if isinstance(one, ast.Constant))
            found += [
                f"{path.name}:{node.lineno}: {one}"
                for one in numbers
                if isinstance(one, int | float) and one not in SAYS_NOTHING
            ]
    return found


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_of_a_step_has_no_number_of_its_own(name: str) -> None:
    assert typed_in(ROOM / name) == []


def literals(path: Path) -> list[str]:
    """Shares of a chip's bandwidth that stand where they are used."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        share = isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant)
        if share and "memory_bytes_per_s" in ast.unparse(node.right):
            found.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
    return found


def test_the_share_of_a_bandwidth_that_streams_reach_is_named() -> None:
    assert [line for path in sorted(ROOM.rglob("*.py")) for line in literals(path)] == []


def test_the_batch_that_is_trained_is_the_one_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the usual batch is taken to be, the layout is checked and timed with the same."""

    def other(_: int, layout: Layout, *, tunes: bool) -> int:
        assert not tunes
        return 7 * layout.dp * layout.micro_batch

    monkeypatch.setattr(asked, "usual_batch", other)
    scenario = read_names(
        form_of("show memory"), {"model": "llama-3.1-8b", "chips": 16, "tp": 2}, Catalog(user=False)
    )
    found = setup_of(scenario)
    assert found.job.global_batch == asked.laid_out(scenario).global_batch == 7 * 8
    assert found.num_micro == 7

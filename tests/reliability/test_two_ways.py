"""Closed form and simulation of a run are two ways to one figure: they share what is asked of both, no more."""

from __future__ import annotations

import ast
from math import inf
from pathlib import Path

import pytest

import datahall.reliability
from datahall.reliability.closed_form import planned_fraction
from datahall.reliability.recovery import Recovery

ROOM = Path(datahall.reliability.__file__).parent
INPUTS = ("run.py", "recovery.py", "process.py", "asked.py", "job.py")
CLOSED = ("closed_form.py", "ettr.py", "nodes/pool.py", "nodes/spares.py", "checkpoint/plan.py")


def loaded(name: str) -> set[str]:
    """What a module imports, for its types too."""
    tree = ast.parse((ROOM / name).read_text(encoding="utf-8"))
    return {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}


@pytest.mark.parametrize("name", [*INPUTS, *CLOSED])
def test_nothing_of_the_simulation_is_in_what_both_are_asked_nor_in_the_closed_form(name: str) -> None:
    assert not [one for one in loaded(name) if one.startswith("datahall.reliability.simulation")]


def test_events_know_no_closed_form() -> None:
    events = {f"simulation/{name}.py" for name in ("loop", "returns", "copies", "state", "nodes", "simulate")}
    for name in sorted(events):
        assert not loaded(name) & {"datahall.reliability.closed_form", "datahall.reliability.ettr"}, name


@pytest.mark.parametrize("until_s", [86_400.0, inf])
def test_planned_stops_take_no_more_than_all_of_the_time(until_s: float) -> None:
    """Three hours every hour, 23 times a day: 69 hours of 24."""
    back = Recovery(
        detect_s=1.0, reschedule_s=1.0, warmup_s=1.0, planned_every_s=3600.0, planned_s=3 * 3600.0
    )
    assert planned_fraction(back, until_s) == 1.0


def test_no_two_constants_of_the_room_have_one_name() -> None:
    """`HOPELESS` was 500 in one module and 20 in another, and importers of both stood side by side."""
    homes: dict[str, list[str]] = {}
    for path in sorted(ROOM.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else ()
            for name in (one.id for one in targets if isinstance(one, ast.Name) and one.id.isupper()):
                homes.setdefault(name, []).append(path.name)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}

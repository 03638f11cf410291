"""An input that is declared is read: by a room that computes or an answer that says it, not by its checks alone."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest
from tests.house import HOUSE, MODULES, inside, parsed

from datahall.inference.engine.engine import Engine
from datahall.scenario.field import CONCEPTS, Section
from datahall.scenario.sections.root import Root
from datahall.scenario.sections.wanted.promise import Promise
from datahall.training.layout.layout import Layout

# what makes requests of a section for the workload; the rest of its room declares inputs, reads and refuses them
READS = HOUSE / "scenario" / "requests.py"
READERS = [path for path in MODULES if path == READS or path not in inside("scenario/")]
# what takes inputs over under their own names, and is asked for them in place of the section
TAKES_OVER: dict[str, type] = {"deployment": Engine, "layout": Layout}


@cache
def attributes(path: Path) -> frozenset[str]:
    """What a module reads of anything."""
    return frozenset(
        node.attr
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    )


@cache
def named(path: Path) -> frozenset[str]:
    """What a module imports of the room of inputs."""
    return frozenset(
        one.name
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("datahall.scenario")
        for one in node.names
    )


def unread(section: type[Section], other: type | None = None) -> list[str]:
    """Inputs that no module reads which knows the section, and that no other struct takes over and is asked for."""
    names = {one.__name__ for one in section.__mro__ if issubclass(one, Section) and one is not Section}
    names |= {"Scenario"} if section is Root else set()  # scenario.root.seed
    mine = {name for path in READERS if named(path) & names for name in attributes(path)}
    handed_on = {name for path in READERS for name in attributes(path) if other and hasattr(other, name)}
    return [name for name in section.__struct_fields__ if name not in mine | handed_on]


@pytest.mark.parametrize("section", CONCEPTS)
def test_every_input_is_read(section: str) -> None:
    assert unread(CONCEPTS[section].struct(), TAKES_OVER.get(section)) == [], "read it, or declare it no more"


class Unread(Promise, frozen=True, kw_only=True):
    """A section as it is, and two inputs that are declared and nothing more."""

    promised_nothing: str = ""
    vendor: str = ""  # a name that many modules read, of other things


def test_an_input_that_nobody_reads_is_found() -> None:
    assert unread(Promise) == []
    assert unread(Unread) == ["promised_nothing", "vendor"]
    assert unread(Unread, Layout) == ["promised_nothing", "vendor"]


def test_what_takes_inputs_over_is_needed() -> None:
    assert [name for name in TAKES_OVER if not unread(CONCEPTS[name].struct())] == []

"""What is built from a person's input is built in one place, with the catalogue that was asked with."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tests.house import HOUSE, MODULES, called, each, inside, parsed

# what is built from a person's input is built in its own room, by one function; the ledger builds what was measured
MADE_IN = {
    "Replica": ("inference/engine", "validation"),
    "Layout": ("training/layout", "validation"),
    "Cluster": ("cluster", "validation"),
}


@each(MODULES)
def test_replicas_layouts_and_clusters_are_built_in_their_own_room(path: Path) -> None:
    for line, name in called(path):
        place = str(path.relative_to(HOUSE))
        assert place.startswith(MADE_IN.get(name, ("",))), f"{place}:{line} builds a {name}"


DEGREES = {"tp", "pp", "dp", "ep", "cp", "vpp"}


def replaced(tree: ast.Module) -> list[int]:
    """Lines that make a replica, a layout or a cluster, or the split of one, from another."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    return [
        call.lineno
        for call in calls
        if ast.unparse(call.func).split(".")[-1] == "replace"
        and (
            ast.unparse(call.args[0]).split(".")[-1] in {name.lower() for name in MADE_IN}
            or {keyword.arg for keyword in call.keywords} & DEGREES
        )
    ]


@each(inside("answers", "cli", "report", "scenario"))
def test_what_a_room_has_built_is_not_changed_where_it_is_worded(path: Path) -> None:
    assert not replaced(parsed(path))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("msgspec.structs.replace(replica, tp=2)", [1]),
        ("\nreplace(plan.layout, zero=3)", [2]),
        ("structs.replace(plain, tp=degree)", [1]),
        ("structs.replace(answer, notes=())", []),
        ("text.replace('a', 'b')", []),
    ],
)
def test_a_changed_split_is_known_when_seen(text: str, lines: list[int]) -> None:
    assert replaced(ast.parse(text)) == lines


@each([path for path in MODULES if path != HOUSE / "breakdown.py"])
def test_figures_are_made_by_their_constructors(path: Path) -> None:
    assert not [line for line, name in called(path) if name == "Breakdown"]


# A person's own entries are in the catalogue that was asked with: it is handed down, never loaded again.
MAY_LOAD = ("catalog/", "answers/", "cli/", "validation/")
LOADS = {
    "fabric/collectives/engine_all_reduce.py": "the chip that shipped constants were fitted on",
    "fabric/collectives/system.py": "the same, and callers without a catalogue, e.g. tests",
    "cluster/cluster.py": "callers without a catalogue, e.g. a replica that was given no machine",
}


def loads(tree: ast.Module) -> list[int]:
    """Lines that load the catalogue, under whatever name it was imported."""
    names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("datahall.catalog")
        for alias in node.names
        if alias.name == "load"
    }
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id in names]


@each([path for path in MODULES if path not in inside(*MAY_LOAD)])
def test_a_room_computes_with_the_catalogue_that_was_asked_with(path: Path) -> None:
    place = str(path.relative_to(HOUSE))
    lines = loads(parsed(path))
    assert bool(lines) == (place in LOADS), f"{place} loads the catalogue in lines {lines}"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("from datahall.catalog import load\nload().chip('x')", [2]),
        ("from datahall.catalog.catalog import load as shelf\n\nshelf()", [3]),
        ("from datahall.fabric.flows.run import load\nload()", []),
    ],
)
def test_loading_is_known_when_seen(text: str, lines: list[int]) -> None:
    assert loads(ast.parse(text)) == lines


@each(inside("answers/"))
def test_nothing_is_rounded_before_it_is_drawn(path: Path) -> None:
    """A table goes to files as it is; how many digits a person sees is the report's."""
    assert not [line for line, name in called(path) if name == "round"]

"""An algorithm is declared once: a row that is added is run, weighed, shown, bounded and asked for like the others."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.house import each, inside, parsed

from datahall.breakdown import assumed, false_nodes, given
from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster, cluster_from
from datahall.cluster.collective import time_collective
from datahall.errors import ScenarioError
from datahall.fabric.collectives.algorithms import sent as sending
from datahall.fabric.collectives.algorithms.moves import MOVES, Moves
from datahall.fabric.collectives.algorithms.table import (
    ALGORITHMS,
    Algorithm,
    estimates,
    name_of,
    num_steps,
    sent,
    sent_between,
    spoken,
    times,
    words_of,
)
from datahall.fabric.collectives.choice import choose_collective, collective_times
from datahall.fabric.collectives.crossing import Sends, pair_share
from datahall.fabric.collectives.figure import Told
from datahall.fabric.collectives.tuner import PROTOCOLS
from datahall.fabric.topology.cuts import Cut
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.words import COLLECTIVES, NCCL_ALGOS, Collective

STAR_S = 7e-6
STAR = Algorithm(
    "star", "star", ("all-reduce", "broadcast"), ("shares", "copy"),  # type: ignore[arg-type]
    lambda run, size: np.full(size.shape, STAR_S) if run.num_ranks > 2 else None,
    lambda _, __, ___, size: np.full(size.shape, 1e-9),
    lambda _, index: Told(assumed(f"star by {PROTOCOLS[index]}", STAR_S, "s", "a test"), inside_s=STAR_S),
    lambda run: 3.0 * run.num_ranks,
    sending.Sending(lambda _, __, ___, first, ____: np.full(first.shape, 40.0), lambda *_: 11.0),
    since=(2, 20),
)  # fmt: skip


@pytest.fixture
def star(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ALGORITHMS, STAR.name, STAR)


def machine() -> Cluster:
    return cluster_from(FabricDesign(chips=64, chip="h100-sxm"), Catalog(user=False), in_order=True)


def test_the_words_of_an_input_are_those_of_the_table() -> None:
    assert tuple(one.word for one in ALGORITHMS.values() if one.word is not None) == NCCL_ALGOS
    for word in NCCL_ALGOS:
        one = ALGORITHMS[name_of(word)]
        assert one.word == word
        assert words_of({one.name}) == [word]


def misplaced(algorithms: Iterable[Algorithm], moves: Mapping[Collective, Moves]) -> list[str]:
    """Collectives that stand in the row of an algorithm whose formulas are not made for how their data goes."""
    return [
        f"{one.name}: {name}"
        for one in algorithms
        for name in one.of
        if moves[name].way is None or moves[name].way not in one.ways
    ]


def test_no_algorithm_runs_what_its_formulas_are_not_made_for() -> None:
    """A root that scatters pieces, or gathers shares, would be timed as an exchange of all with all."""
    assert misplaced(ALGORITHMS.values(), MOVES) == []
    for row in (
        Moves("pieces", is_rooted=True),
        Moves("share", is_rooted=True),
        Moves("whole", is_rooted=True),
    ):
        assert row.way is None
        assert not row.goes_in_shares
        for name, runners in (
            ("all-to-all", ["direct"]),
            ("broadcast", ["ring"]),
            ("all-gather", ["ring", "PAT"]),
        ):
            found = misplaced(ALGORITHMS.values(), MOVES | {name: row})  # type: ignore[operator]
            assert found == [f"{runner}: {name}" for runner in runners]
    assert misplaced([ALGORITHMS["PAT"]._replace(of=("broadcast",))], MOVES) == ["PAT: broadcast"]


def test_every_collective_is_run_by_some_algorithm_or_stands_for_another() -> None:
    run = {collective for one in ALGORITHMS.values() for collective in one.of}
    assert run == {name for name in COLLECTIVES if MOVES[name].stands_for is None}
    for one in ALGORITHMS.values():
        assert ALGORITHMS[one.name] is one
        assert set(one.protocols) <= set(PROTOCOLS)


@pytest.mark.usefixtures("star")
def test_a_row_that_is_added_is_run_weighed_and_shown() -> None:
    found = time_collective(machine(), "all-reduce", given("array", 1e3, "bytes"))
    choice = found.choice
    assert (choice.algorithm, choice.protocol, choice.time_s) == ("star", "Simple", STAR_S)
    assert spoken((choice.algorithm, choice.protocol)) == "star"
    assert found.num_steps == 3 * 64
    assert found.figure.value == STAR_S
    assert not false_nodes(found.figure)
    assert any(one.algorithm == "star" and one.estimate_s == 1e-9 for one in choice.candidates)
    assert any(way.name == "star" and way.num_steps == 3 * 64 for way in found.ways)
    assert any(curve.name == "star" for curve in found.curves)
    assert time_collective(machine(), "broadcast", 1e3).choice.algorithm == "star"
    assert time_collective(machine(), "all-gather", 1e3).choice.algorithm != "star"


@pytest.mark.usefixtures("star")
def test_a_row_that_is_added_is_bounded_by_what_it_sends_over_a_narrow_place() -> None:
    leaf = Cut(name="leaf", num_below=16, num_full=16, bytes_per_s=2e11, link_bytes_per_s=5e10)
    narrow = msgspec.structs.replace(machine().system, cuts=(leaf,))
    took, pairs = collective_times(narrow, "all-reduce", 1e9, 64, only=("star",))
    assert pairs == [("star", "Simple")]
    assert took[0] == 40.0 * 1e9 / 2e11
    assert sent("all-reduce", "star", 64, 1, np.array([0]), np.array([16])) == 40.0
    assert sent("all-reduce", "star", 64, 1, np.array([0, 5]), np.array([64, 5])).tolist() == [0.0, 0.0]
    assert (
        sent_between("all-reduce", "star", 64, 1, 8) == pair_share(Sends("all-reduce", "star"), 64, 8) == 11.0
    )


@pytest.mark.usefixtures("star")
def test_a_row_that_is_added_can_be_asked_for_and_is_offered() -> None:
    system = machine().system
    assert name_of("star") == "star"
    assert choose_collective(system, "all-reduce", 1e9, 64, only=("star",)).algorithm == "star"
    with pytest.raises(ScenarioError, match="has no PAT for broadcast") as caught:
        choose_collective(system, "broadcast", 1e9, 64, only=("PAT",))
    assert caught.value.hint == "one of ring, star"


@pytest.mark.usefixtures("star")
def test_a_row_is_there_where_its_version_and_its_machine_are() -> None:
    system = machine().system
    assert ("star", "Simple") in times(system, "all-reduce", np.ones(1), 64)
    assert ("star", "Simple") not in times(system, "all-reduce", np.ones(1), 2)
    for minor, there in ((19, False), (20, True)):
        old = msgspec.structs.replace(system, version=(2, minor))
        assert (("star", "Simple") in times(old, "all-reduce", np.ones(1), 64)) is there
        assert (("star", "Simple") in estimates(old.setting(64), "all-reduce", 1.0)) is there
    assert num_steps(system, "broadcast", "star", 8) == 24


@pytest.mark.usefixtures("star")
def test_a_protocol_is_said_where_an_algorithm_has_several() -> None:
    for one in ALGORITHMS.values():
        for protocol in one.protocols:
            said = spoken((one.name, protocol))
            assert said == (one.name if len(one.protocols) == 1 else f"{one.name} {protocol}")


# what textbooks and a torus run has names of its own, some of them the same
OWN_NAMES = {"steps.py", "textbook.py", "torus_figure.py", "collective_table.py"}
SPEAKERS = [
    path
    for path in inside("fabric/collectives", "cluster", "answers/fabric/collective", "answers/training")
    if path.name not in OWN_NAMES and path.parts[-2:] != ("algorithms", "table.py")
]


@each(SPEAKERS)
def test_no_algorithm_is_called_by_its_name_outside_the_table(path: Path) -> None:
    names = set(ALGORITHMS) | set(NCCL_ALGOS)
    said = [
        (node.lineno, node.value)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Constant) and node.value in names
    ]
    assert said == []

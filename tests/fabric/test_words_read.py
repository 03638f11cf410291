"""Topologies, ratios, sides and versions as people write them: read once at the border, and written back the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.answers.ask import ask
from datahall.answers.reply import answer_of
from datahall.catalog import Catalog
from datahall.errors import ScenarioError
from datahall.fabric.design.asked import design_of
from datahall.scenario.kinds import Ratios, Reading, Sides, Topology, Version
from datahall.scenario.sections.fabric import NCCL, FabricDesign

AT = Reading(catalog=Catalog(user=False))
RATIOS, SIDES, TOPOLOGY = Ratios(""), Sides("", most=10_000), Topology("")
VERSION = Version("", library="NCCL", first=(2, 0), last_major=2, example=NCCL)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (" Fat_Tree ", "fat-tree"), ("fattree", "fat-tree"), ("Dragonfly+", "dragonfly-plus"),
        ("leaf spine", "leaf-spine"), ("rail", "rail-optimised"), ("Meta-24k-RoCE", "meta-24k-roce"),
    ],
)  # fmt: skip
def test_a_topology_is_known_in_any_spelling(text: str, name: str) -> None:
    assert TOPOLOGY.read(text, AT) == name


def test_an_unknown_topology_names_the_nearest() -> None:
    with pytest.raises(ScenarioError, match="not a topology") as caught:
        TOPOLOGY.read("fat-tre", AT)
    assert "did you mean: fat-tree" in caught.value.hint
    with pytest.raises(ScenarioError) as caught:
        TOPOLOGY.read("meta-24k", AT)
    assert "meta-24k-roce" in caught.value.hint


def test_oversubscription_is_read_as_down_to_up() -> None:
    assert RATIOS.read("9:8", AT) == (1.125,)
    assert RATIOS.read("1:1, 7:1", AT) == RATIOS.read(["1:1", "7:1"], AT) == (1.0, 7.0)
    assert RATIOS.read("3.5:1", AT) == (3.5,)


@pytest.mark.parametrize(
    "text", ["1:0", "0:1", "0:0", "1", "", "a:b", "-2:1", "nan:1", "1:1,x", 2, True, None]
)
def test_what_is_no_ratio_is_not_guessed(text: str | int | None) -> None:
    """A ratio of nothing is no ratio: it has no other way round to suggest."""
    with pytest.raises(ScenarioError) as caught:
        RATIOS.read(text, AT)
    assert "did you mean" not in caught.value.hint


def test_a_ratio_upside_down_is_turned_round() -> None:
    with pytest.raises(ScenarioError, match="more bandwidth up") as caught:
        RATIOS.read("1:7", AT)
    assert "7:1" in caught.value.hint


def test_sides_are_read_as_people_write_them() -> None:
    assert SIDES.read("4×5*6", AT) == SIDES.read("4 x 5 x 6", AT) == SIDES.read([4, 5, 6], AT) == (4, 5, 6)


@pytest.mark.parametrize("text", ["0x4", "", "4x", "-1x2", "4.5x2", [], True, None, "100x1000"])
def test_what_is_no_torus_is_refused(text: str | list[int] | None) -> None:
    with pytest.raises(ScenarioError):
        SIDES.read(text, AT)


def test_a_version_is_two_numbers() -> None:
    assert VERSION.read("2.19.3", AT) == VERSION.read("NCCL 2.19", AT) == (2, 19)
    assert VERSION.read("2.20", AT) == (2, 20)


@pytest.mark.parametrize("text", ["9.9", "1.3", "3.0", "new", "2", "", 2.2, 2, "2.x", "-2.7"])
def test_a_version_that_does_not_exist_is_refused(text: str | float) -> None:
    """A number is none either: 2.2 may have been 2.20."""
    with pytest.raises(ScenarioError) as caught:
        VERSION.read(text, AT)
    assert NCCL in caught.value.hint


@given(st.lists(st.floats(1.0, 64.0), min_size=1, max_size=3))
def test_ratios_are_written_so_that_they_read_the_same(ratios: list[float]) -> None:
    assert RATIOS.read(RATIOS.write(tuple(ratios)), AT) == tuple(ratios)


@given(st.lists(st.integers(1, 21), min_size=1, max_size=3))
def test_sides_are_written_so_that_they_read_the_same(sides: list[int]) -> None:
    assert SIDES.read(SIDES.write(tuple(sides)), AT) == tuple(sides)


@given(st.integers(0, 99))
def test_versions_are_written_so_that_they_read_the_same(minor: int) -> None:
    assert VERSION.read(VERSION.write((2, minor)), AT) == (2, minor)


@pytest.mark.parametrize(("sides", "neighbours"), [((8, 8), 4), ((4, 4, 4), 6), ((64,), 2)])
def test_ports_are_spread_over_as_many_neighbours_as_a_chip_has(
    sides: tuple[int, ...], neighbours: int
) -> None:
    asked = FabricDesign(topology="torus", chip="h100-sxm", chips=64, sides=sides)
    found = design_of(asked, AT.catalog)
    assert found.fabric.link_bytes_per_s.max() == pytest.approx(50e9 / neighbours)
    assert any(f"over {neighbours} neighbours" in note for note in found.notes)


def test_a_ratio_is_at_most_as_steep_as_the_largest_switch() -> None:
    assert RATIOS.read("4096:1", AT) == (4096.0,)
    with pytest.raises(ScenarioError, match="too steep"):
        RATIOS.read("4097:1", AT)


@pytest.mark.parametrize(("radix", "groups"), [({}, 8), ({"radix": 64}, 1)])
def test_a_dragonfly_of_alike_chips_has_switches_as_large_as_it_needs(
    radix: dict[str, int], groups: int
) -> None:
    asked = {"on": "dragonfly", "chips": 64, "bandwidth": "50 GB/s", **radix}
    job = {"collective": "all-to-all", "size": "1MB", "ranks": "0-63"}
    found = answer_of(ask("simulate fabric", {**asked, "job": [job]}, catalog=AT.catalog))
    assert f"dragonfly of {groups} group" in found.headline

"""The chain of a collective on a torus is the formula's time, on rings and on lines of every length."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import assume
from hypothesis import given as drawn
from hypothesis import strategies as st

from datahall.breakdown import derived, false_nodes, given
from datahall.errors import UnsupportedError
from datahall.fabric.collectives.algorithms.bus import Collective
from datahall.fabric.collectives.algorithms.torus import TorusGroup, group_axes, torus_steps, torus_times
from datahall.fabric.collectives.torus_figure import ON_A_TORUS, check_on_torus, torus_form
from datahall.scenario.words import COLLECTIVES


def whole(*sides: int, wrapped: bool = True) -> TorusGroup:
    return group_axes(sides, prod(sides), 1, wrapped=wrapped)


LINK = derived("a link, one way", 10.0, "bytes_per_s")


@drawn(
    kind=st.sampled_from(ON_A_TORUS), axes=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    size=st.sampled_from([0.5, 40.0, 3000.0]), hop_s=st.sampled_from([0.01, 1.0, 7.0]), wrapped=st.booleans(),
)  # fmt: skip
def test_a_chain_and_a_formula_say_one_time(
    kind: Collective, axes: list[int], size: float, hop_s: float, wrapped: bool
) -> None:
    assume(prod(axes) > 1)
    group = whole(*axes, wrapped=wrapped)
    told = torus_form(kind, given("array", size, "bytes"), group, link=LINK, hop_s=hop_s)
    time = torus_times(
        kind, size, axes, num_ranks=prod(axes), stride=1, chip_bytes_per_s=1.0, network_bytes_per_s=0.0,
        link_bytes_per_s=10.0, hop_s=hop_s, wrapped=wrapped,
    )  # fmt: skip
    assert told.figure.value == pytest.approx(float(time))
    assert false_nodes(told.figure) == []
    # without hops it is the transfer alone
    free = torus_form(kind, given("array", size, "bytes"), group, link=LINK, hop_s=0.0)
    assert told.inside_s == pytest.approx(free.figure.value)
    assert told.across_s == 0.0  # its links are all there is


@drawn(
    kind=st.sampled_from(ON_A_TORUS), sides=st.lists(st.sampled_from([2, 4, 6, 8, 16]), min_size=2, max_size=3),
    ranks=st.integers(2, 64), stride=st.integers(1, 64), size=st.sampled_from([0.5, 40.0, 3000.0]),
    wrapped=st.sampled_from([None, False, True]),
)  # fmt: skip
def test_a_chain_and_a_formula_say_one_time_of_groups_too(
    kind: Collective, sides: list[int], ranks: int, stride: int, size: float, wrapped: bool | None
) -> None:
    assume(ranks * stride <= prod(sides))
    group = group_axes(sides, ranks, stride, wrapped=wrapped)
    assume(group.num_slices == 1)
    told = torus_form(kind, given("array", size, "bytes"), group, link=LINK, hop_s=1.0)
    time = torus_times(
        kind, size, sides, num_ranks=ranks, stride=stride, chip_bytes_per_s=1.0, network_bytes_per_s=0.0,
        link_bytes_per_s=10.0, hop_s=1.0, wrapped=wrapped,
    )  # fmt: skip
    assert told.figure.value == pytest.approx(float(time))
    assert false_nodes(told.figure) == []
    empty = torus_form(kind, given("array", 0.0, "bytes"), group, link=LINK, hop_s=1.0)
    assert empty.figure.value == torus_steps(kind, group)  # of nothing, the hops are all


def test_a_line_of_three_and_a_ring_of_four_by_hand() -> None:
    """60 B over links of 10 B/s, 1 s a hop."""
    array = given("array", 60.0, "bytes")
    line = torus_form("all-gather", array, whole(3, wrapped=False), link=LINK, hop_s=1.0)
    assert line.figure.value == pytest.approx(60 * 2 / 3 / 10)  # the end chip gets all others' over one link
    ring = torus_form("all-reduce", array, whole(4, 1), link=LINK, hop_s=1.0)
    assert ring.figure.value == pytest.approx(2 * 60 / 20)
    slow = torus_form("all-gather", array, whole(4, 4), link=LINK, hop_s=5.0)
    assert slow.figure.value == 4 * 5.0
    passed = torus_form("send-recv", array, whole(4, 4), link=LINK, hop_s=5.0)
    assert passed.figure.value == 5 + 60 / 10
    # of four chips two send half of their 60 B to the other two, over two links
    swapped = torus_form("all-to-all", array, whole(4), link=LINK, hop_s=1.0)
    assert swapped.figure.value == pytest.approx(2 * 1 + 2 * 30 / 2 / 10)


def test_what_nobody_published_is_refused() -> None:
    for kind in COLLECTIVES:
        if kind in ON_A_TORUS:
            check_on_torus(kind, "torus")
        else:
            with pytest.raises(UnsupportedError, match="not modelled") as caught:
                check_on_torus(kind, "torus")
            assert caught.value.field == "collective"

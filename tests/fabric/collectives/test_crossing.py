"""What has to leave a part of the ranks, against counting rank by rank who lacks what of whom."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fabric.collectives.test_by_hand import MACHINE, changed

from datahall.fabric.collectives.crossing import (
    Sends,
    crossed,
    crossing,
    crossing_s,
    crossing_share,
    floor_s,
    least_s,
    leaving_bytes_per_s,
    straddling_share,
)
from datahall.fabric.topology.cuts import Cut
from datahall.scenario.words import Collective

KINDS: tuple[Collective, ...] = (
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce", "barrier",
)  # fmt: skip


def part(below: int, full: int = 0, rate: float = 1.0, **more: object) -> Cut:
    return Cut(
        name="part", num_below=below, num_full=full or below, bytes_per_s=rate, link_bytes_per_s=1.0, **more
    )


def exchanged(kind: Collective, ranks: int, inside: int) -> tuple[float, float]:
    """Bytes out of a part and into it, over the array, pair by pair: a piece is what one rank has for another."""
    here, there = range(inside), range(inside, ranks)
    if not inside or not len(there) or kind == "barrier":
        return 0.0, 0.0
    piece = 1.0 / ranks
    if kind == "all-to-all":
        return sum(piece for _ in here for _ in there), sum(piece for _ in there for _ in here)
    if kind == "all-gather":  # a rank's own piece passes once, whoever wants it
        return sum(piece for _ in here), sum(piece for _ in there)
    if kind == "reduce-scatter":  # a sum for every rank of the other side
        return sum(piece for _ in there), sum(piece for _ in here)
    return 1.0, 1.0


@given(kind=st.sampled_from(KINDS), ranks=st.integers(2, 40), below=st.integers(1, 60))
def test_the_wider_of_both_ways_binds(kind: Collective, ranks: int, below: int) -> None:
    share = crossing_share(Sends(kind), ranks, part(below))
    if kind == "all-reduce":  # k parts make k − 1 sums and copies go round
        parts = -(-ranks // min(below, ranks))
        assert share == pytest.approx(2 * (parts - 1) / parts)
    else:
        assert share == pytest.approx(max(exchanged(kind, ranks, min(below, ranks))))


def test_an_all_reduce_goes_through_the_largest_parts() -> None:
    """Ten ranks in parts of up to four are three parts, the narrowest of one rank or not."""
    assert crossing_share(Sends("all-reduce"), 10, part(1, 4)) == pytest.approx(4 / 3)
    assert crossing_share(Sends("all-to-all"), 10, part(1, 4)) == pytest.approx(0.9)


def laid_out(kind: Collective, ranks: int, stride: int, sizes: list[int]) -> float:
    """Every group of every block, every part: the bytes out and in over both of a part's ends."""
    ends = np.cumsum([0, *sizes])
    block, worst = ranks * stride, 0.0
    for begin, end in pairwise(ends.tolist()):
        out = into = 0.0
        for start in range(0, -(-int(ends[-1]) // block) * block, block):
            for first in range(stride):
                inside = sum(begin <= start + first + stride * rank < end for rank in range(ranks))
                more = exchanged(kind, ranks, inside)
                out, into = out + more[0], into + more[1]
        worst = max(worst, out, into)
    return worst


@given(
    kind=st.sampled_from(["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "barrier"]),
    ranks=st.integers(2, 12), stride=st.integers(1, 5), sizes=st.lists(st.integers(1, 9), min_size=2, max_size=5),
)  # fmt: skip
def test_groups_across_the_ends_of_parts_are_counted_both_ways(
    kind: Collective, ranks: int, stride: int, sizes: list[int]
) -> None:
    rows = tuple((size, 1) for size in sizes)
    assert straddling_share(Sends(kind), ranks, part(1, sizes=rows, stride=stride)) == pytest.approx(
        laid_out(kind, ranks, stride, sizes)
    )


def test_rows_of_equal_parts_are_those_parts_one_by_one() -> None:
    many, each = part(1, sizes=((6, 3), (4, 2))), part(1, sizes=((6, 1), (6, 1), (6, 1), (4, 1), (4, 1)))
    for ranks in range(2, 12):
        assert straddling_share(Sends("all-to-all"), ranks, many) == straddling_share(
            Sends("all-to-all"), ranks, each
        )
    assert straddling_share(Sends("all-to-all"), 4, part(6)) == 0.0


def test_a_copy_goes_one_way_over_each_end() -> None:
    """Parts of six, groups of four: the second part has the ends of two groups, one copy in, one out."""
    six = part(6, sizes=((6, 4),))
    assert straddling_share(Sends("broadcast"), 4, six) == 1.0
    assert straddling_share(Sends("broadcast"), 3, six) == 0.0


def test_the_narrower_of_one_group_and_of_all_that_lie_across_binds() -> None:
    """Eight ranks, parts of six: one group sends 6·2/8 out of its own; of the second part two groups send."""
    narrow = part(6, rate=2.0, sizes=((6, 4),), widest_bytes_per_s=50.0)
    assert crossing(Sends("all-to-all"), 8, narrow)[:2] == (
        crossing_share(Sends("all-to-all"), 8, narrow),
        2.0,
    )
    wide = msgspec.structs.replace(narrow, bytes_per_s=50.0, widest_bytes_per_s=2.0)
    assert crossing(Sends("all-to-all"), 8, wide)[:2] == (straddling_share(Sends("all-to-all"), 8, wide), 2.0)
    inside = msgspec.structs.replace(narrow, sizes=())
    assert crossing(Sends("all-to-all"), 6, inside)[:2] == (0.0, 2.0)
    assert crossing(Sends("all-to-all"), 4, narrow)[:2] == (
        straddling_share(Sends("all-to-all"), 4, narrow),
        50.0,
    )
    assert crossing_s(Sends("all-to-all"), 100.0, 8, narrow) == pytest.approx(100 * 1.5 / 2)


def test_a_group_crosses_what_it_does_not_fit_into() -> None:
    small, large = part(4, rate=1.0), part(16, rate=3.0)
    machine = changed(num_domain=2, cuts=(small, large))
    assert crossed(machine, 2) == ()
    assert crossed(machine, 4) == ()
    assert crossed(machine, 5) == (small,)
    assert crossed(machine, 16) == (small,)
    assert crossed(machine, 17) == (small, large)
    ring = msgspec.structs.replace(machine, num_domain=32, torus=(4, 8))
    assert crossed(msgspec.structs.replace(machine, num_domain=32), 32) == ()
    assert crossed(ring, 32) == (small, large)
    across = part(6, sizes=((6, 4),), widest_bytes_per_s=1.0)
    assert crossed(changed(num_domain=1, cuts=(across,)), 4) == (across,)
    assert crossed(changed(num_domain=1, cuts=(across,)), 3) == ()


def test_no_algorithm_is_faster_than_the_slowest_of_the_places_it_crosses() -> None:
    small, large = part(4, rate=1.0), part(16, rate=3.0)
    machine = changed(num_domain=2, cuts=(small, large))
    sizes = np.array([0.0, 30.0, 60.0])
    for kind in KINDS:
        each = [crossing_s(Sends(kind), 60.0, 32, cut) for cut in (small, large)]
        assert least_s(machine, kind, sizes, 32).tolist() == pytest.approx([0, max(each) / 2, max(each)])
    assert least_s(machine, "all-to-all", sizes, 4).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("all-reduce", 60 / 14),  # each array out of its chip once, over links and port
        ("broadcast", 60 / 14),
        ("all-gather", 60 * 7 / 8 / 14),
        ("reduce-scatter", 60 * 7 / 8 / 14),
        ("all-to-all", 4 * 60 * 1 / 2 / 16),  # four chips send half of theirs over the four ports of a domain
        ("barrier", 0.0),
    ],
)
def test_no_run_is_faster_than_the_links_of_a_chip_or_the_ports_of_a_domain(
    kind: Collective, expected: float
) -> None:
    """Two domains of four chips, 10 B/s of links and 4 B/s of port each."""
    assert floor_s(MACHINE, kind, 60.0, 8) == pytest.approx(expected)


def test_the_floor_of_a_domain_is_its_links_and_of_lone_chips_their_ports() -> None:
    assert floor_s(MACHINE, "all-reduce", 60.0, 4) == pytest.approx(60 / 10)
    assert floor_s(MACHINE, "all-gather", 60.0, 4) == pytest.approx(60 * 3 / 4 / 10)
    assert floor_s(changed(num_domain=1), "all-reduce", 60.0, 4) == pytest.approx(60 / 4)
    narrow = changed(cuts=(part(4, rate=0.5),))
    assert floor_s(narrow, "all-reduce", 60.0, 8) == pytest.approx(60 / 0.5)
    assert floor_s(narrow, "all-reduce", 60.0, 1) == 0.0
    ring = changed(num_domain=8, torus=(8,), cuts=(part(4, rate=0.5),))
    assert floor_s(ring, "all-to-all", 60.0, 8) == pytest.approx(60 * 2 / 0.5)


def test_experts_get_their_port_or_their_share_of_what_leaves_a_part() -> None:
    """Of eight chips in domains of two, six others are over the network, four of them outside a part of four."""
    machine = changed(num_domain=2)
    assert leaving_bytes_per_s(machine, 8) == 4.0
    narrow = changed(num_domain=2, cuts=(part(4, rate=6.0),))
    # the four send 4/6 of what each has for the network through 6 B/s
    assert leaving_bytes_per_s(narrow, 8) == pytest.approx(6.0 / (4 * 4 / 6))
    assert leaving_bytes_per_s(narrow, 4) == 4.0


@given(kind=st.sampled_from(KINDS), ranks=st.integers(2, 300), data=st.data())
def test_the_least_that_leaves_a_part_is_the_same_wherever_it_is_asked(
    kind: Collective, ranks: int, data: st.DataObject
) -> None:
    """Of a part of a fabric, of one that a row of groups lies across, and of a domain behind its ports."""
    inside = data.draw(st.integers(1, ranks - 1))
    apart = part(inside, sizes=((inside, 1), (ranks - inside, 1)))
    share = straddling_share(Sends(kind), ranks, apart)
    if kind != "all-reduce":  # of which chips that add at the ranks send more than switches have to
        assert crossing_share(Sends(kind), ranks, apart) == pytest.approx(share, rel=1e-15)
    machine = changed(num_domain=inside, scale_up_bytes_per_s=1e30)
    floor = share * 60.0 / (inside * machine.nic_bytes_per_s)
    assert floor_s(machine, kind, 60.0, ranks) == pytest.approx(floor, rel=1e-15)

"""Who sends how much to whom, written down for a few ranks, and whose rounds wait for whose."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fabric.oracle import unrolled

from datahall.fabric.collectives.algorithms.steps import DECOMPOSITIONS, phases
from datahall.fabric.flows.order import JOIN, Order, alike_order, full_order

Sends = list[tuple[list[tuple[int, int]], float, int]]  # pairs, bytes, rounds


def sends(collective: str, algorithm: str, ranks: int, size: float, inside: int = 1) -> Sends:
    return [
        (list(zip(one.source.tolist(), one.target.tolist(), strict=True)), one.num_bytes, one.num_rounds)
        for one in phases(collective, algorithm, ranks, size, inside)
    ]


AROUND = [(0, 1), (1, 2), (2, 3), (3, 0)]
SWAP = {1: [(0, 1), (1, 0), (2, 3), (3, 2)], 2: [(0, 2), (1, 3), (2, 0), (3, 1)]}


@pytest.mark.parametrize(
    ("pair", "wanted"),
    [
        (("all-reduce", "ring"), [(AROUND, 4.0, 6)]),
        (("all-gather", "ring"), [(AROUND, 4.0, 3)]),
        (("reduce-scatter", "ring"), [(AROUND, 4.0, 3)]),
        (("send-recv", "direct"), [(AROUND, 16.0, 1)]),
        (
            ("all-to-all", "pairwise"),
            [
                (AROUND, 4.0, 1),
                ([(0, 2), (1, 3), (2, 0), (3, 1)], 4.0, 1),
                ([(0, 3), (1, 0), (2, 1), (3, 2)], 4.0, 1),
            ],
        ),
        (
            ("all-to-all", "direct"),
            [([(a, (a + far) % 4) for a in range(4) for far in (1, 2, 3)], 4.0, 1)],
        ),
        (("all-gather", "doubling"), [(SWAP[1], 4.0, 1), (SWAP[2], 8.0, 1)]),
        (("reduce-scatter", "halving"), [(SWAP[2], 8.0, 1), (SWAP[1], 4.0, 1)]),
        (
            ("all-reduce", "halving-doubling"),
            [(SWAP[2], 8.0, 1), (SWAP[1], 4.0, 1), (SWAP[1], 4.0, 1), (SWAP[2], 8.0, 1)],
        ),
        (("reduce", "tree"), [([(1, 0), (3, 2)], 16.0, 1), ([(2, 0)], 16.0, 1)]),
        (("broadcast", "tree"), [([(0, 2)], 16.0, 1), ([(0, 1), (2, 3)], 16.0, 1)]),
    ],
)
def test_four_ranks_send_sixteen_bytes(pair: tuple[str, str], wanted: Sends) -> None:
    assert sends(*pair, 4, 16.0) == wanted


def test_a_tree_goes_up_and_then_down() -> None:
    up, down = sends("reduce", "tree", 6, 1.0), sends("broadcast", "tree", 6, 1.0)
    assert sends("all-reduce", "tree", 6, 1.0) == up + down
    assert up == [([(1, 0), (3, 2), (5, 4)], 1.0, 1), ([(2, 0)], 1.0, 1), ([(4, 0)], 1.0, 1)]


def test_ranks_past_a_power_of_two_fold_into_their_neighbours() -> None:
    """Of six, 1 and 3 hand theirs to 0 and 2; then 0, 2, 4 and 5 go on, and give the result back."""
    found = sends("all-reduce", "halving-doubling", 6, 16.0)
    assert found[0] == ([(1, 0), (3, 2)], 16.0, 1)
    assert found[-1] == ([(0, 1), (2, 3)], 16.0, 1)
    assert found[1] == ([(0, 4), (2, 5), (4, 0), (5, 2)], 8.0, 1)
    assert found[2] == ([(0, 2), (2, 0), (4, 5), (5, 4)], 4.0, 1)
    assert found[3:5] == found[2:0:-1]


def test_two_levels_are_a_ring_inside_and_one_across_for_each_place() -> None:
    inside = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)]
    across = [(0, 3), (1, 4), (2, 5), (3, 0), (4, 1), (5, 2)]
    assert sends("all-reduce", "two-level", 6, 18.0, 3) == [
        (inside, 6.0, 2), (across, 3.0, 2), (inside, 6.0, 2),
    ]  # fmt: skip
    # domains of one, or one domain: the other level alone
    assert sends("all-reduce", "two-level", 3, 18.0, 3) == [([(0, 1), (1, 2), (2, 0)], 6.0, 2)] * 2
    assert sends("all-reduce", "two-level", 3, 18.0, 1) == [([(0, 1), (1, 2), (2, 0)], 6.0, 4)]


# -- rounds ----------------------------------------------------------------------------------------------------------


def rows_of(order: Order) -> list[list[int]]:
    """The rows that each row waits for."""
    return [
        order.after[a:b].tolist()
        for a, b in zip(order.after_offsets[:-1], order.after_offsets[1:], strict=True)
    ]


def begins(order: Order) -> list[int]:
    """When each row begins where every send takes one unit of time, and a join none."""
    ends: list[int] = []
    found = []
    for row, waits in enumerate(rows_of(order)):
        start = max((ends[one] for one in waits), default=0)
        found.append(start)
        ends.append(start if order.phase[row] == JOIN else start + int(order.num_rounds[row]))
    return found


@given(
    pair=st.sampled_from(sorted(DECOMPOSITIONS)),
    ranks=st.sampled_from([2, 4, 8, 16]),
    repeat=st.integers(1, 3),
)
def test_a_round_begins_when_its_sender_has_done_the_one_before(
    pair: tuple[str, str], ranks: int, repeat: int
) -> None:
    """Played round by round beside it: a rank is free when the last send it had a part in is over."""
    steps = phases(*pair, ranks, 1.0, 2)
    order = unrolled(full_order(steps, ranks, repeat, pause_s=0.0))
    real = [row for row in range(order.phase.size) if order.phase[row] != JOIN]
    free = np.zeros(ranks, int)
    wanted = []
    for _ in range(repeat):
        for step in steps:
            for _ in range(step.num_rounds):
                starts = free[step.source]
                wanted += starts.tolist()
                ended = free.copy()
                np.maximum.at(ended, step.source, starts + 1)
                np.maximum.at(ended, step.target, starts + 1)
                free = ended
    found = begins(order)
    assert [found[row] for row in real] == wanted
    assert found[-1] == free.max()


@given(pair=st.sampled_from(sorted(DECOMPOSITIONS)), repeat=st.integers(1, 3))
def test_alike_flows_go_phase_by_phase(pair: tuple[str, str], repeat: int) -> None:
    steps = phases(*pair, 8, 1.0, 2)
    order = alike_order(steps, repeat, pause_s=5.0)
    found = begins(order)
    lengths = [step.num_rounds for step in steps] * repeat
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    wanted = [
        begin
        for begin, step in zip(starts.tolist(), [*steps] * repeat, strict=True)
        for begin in [begin] * step.source.size
    ]
    real = order.phase != JOIN
    assert np.array(found)[real].tolist() == wanted
    waits = order.wait_s[real]
    first = steps[0].source.size
    assert waits[:first].tolist() == [0.0] * first  # no pause before the first turn
    assert (waits == 5.0).sum() == (repeat - 1) * first

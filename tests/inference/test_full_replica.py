"""A replica that is full does not look up when further requests come: nothing can be done for them before one ends."""

from __future__ import annotations

from tests.inference.ticking_case import one_pool, rows, simulated, times

from datahall.inference.simulation.run import ServingRun

LONG, NUM = 400, 60


def served(gap_s: float, first_s: float, *, places: int) -> ServingRun:
    """One long answer, and many short ones that come one after the other."""
    later = [(first_s + gap_s * number, 10, 1) for number in range(NUM)]
    return simulated(one_pool(max_sequences=places), requests=rows((0.0, 10, LONG), *later))


def test_requests_that_must_wait_disturb_nobody() -> None:
    """Each of them adds two events to those of the long answer: that it comes, and its own step."""
    during, alone = served(5.0, 50.5, places=1), simulated(one_pool(), requests=rows((0.0, 10, LONG)))
    assert during.num_events == alone.num_events + 2 * NUM
    ends = [end for _, _, end in times(during)]
    assert ends[0] == LONG
    assert sorted(ends[1:]) == [float(LONG + 1 + number) for number in range(NUM)]  # one step each, in turn


def test_a_free_place_is_given_at_the_next_step() -> None:
    during = served(5.0, 50.5, places=2)
    assert [end for _, _, end in times(during)][1:3] == [52.0, 57.0]

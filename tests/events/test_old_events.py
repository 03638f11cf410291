"""An event that stays while many others come and go keeps its place, and nobody else gets its token."""

from __future__ import annotations

from datahall.events.heap import ROOT
from datahall.events.queue import new_queue, num_pending
from datahall.events.unchecked_queue import pop_event, push_event


def test_an_event_outlives_many_rounds_of_slots() -> None:
    queue = new_queue(4)  # eight slots
    stays = [push_event(queue, 100.0 + one, 0, one, 0, 0.0) for one in range(2)]
    seen = set(stays)
    for number in range(50):
        token = push_event(queue, float(number), 1, number, -1, 0.5)
        assert token not in seen
        seen.add(token)
        assert pop_event(queue) == (1, number, -1, 0.5)
        assert num_pending(queue) == 2
    assert float(queue.heap[ROOT]["time_s"]) == 100.0
    assert [pop_event(queue)[1] for _ in stays] == [0, 1]

"""The loop's event queue against a sorted list."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.events.heap import ROOT
from datahall.events.queue import new_queue, num_pending
from datahall.events.unchecked_queue import move_event, pop_event, push_event, remove_event

moves = st.lists(
    st.tuples(st.sampled_from(["push", "push", "pop", "move", "remove"]), st.integers(0, 9), st.integers(0, 6)),
    max_size=80,
)  # fmt: skip


@settings(max_examples=200)
@given(moves, st.randoms())
def test_events_come_by_time_then_kind_then_age(steps: list[tuple[str, int, int]], random: Any) -> None:
    queue = new_queue(16)
    held: dict[int, tuple[float, int, int]] = {}
    for number, (what, when, kind) in enumerate(steps):
        if what == "push" and len(held) < 16:
            token = push_event(queue, float(when), kind, number, -number, number / 2)
            assert token not in held
            held[token] = (float(when), kind, token)
        elif what == "pop" and held:
            first = min(held.values())
            assert float(queue.heap[ROOT]["time_s"]) == first[0]
            found = pop_event(queue)
            assert found[0] == first[1]
            assert found[2] == -found[1]
            assert found[3] == found[1] / 2
            assert queue.clock[0]["now_s"] == first[0]
            del held[first[2]]
        elif what == "move" and held:
            token = random.choice(sorted(held))
            move_event(queue, token, float(when))
            held[token] = (float(when), *held[token][1:])
        elif what == "remove" and held:
            token = random.choice(sorted(held))
            remove_event(queue, token)
            del held[token]
        assert num_pending(queue) == len(held)
    for time_s, kind, _ in sorted(held.values()):
        assert float(queue.heap[ROOT]["time_s"]) == time_s
        assert pop_event(queue)[0] == kind

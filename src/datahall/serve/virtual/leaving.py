"""A request whose client has gone leaves the simulation: a queue at once, a batch with its next token."""

from __future__ import annotations

from datahall.events.unchecked_queue import move_event
from datahall.inference.simulation.decode_clock import leap_time, push_finish, remove_finish
from datahall.inference.simulation.lifecycle import drained
from datahall.inference.simulation.replica_queue import count_queue
from datahall.inference.simulation.scheduler import DECODES
from datahall.inference.simulation.state import NONE, State, give_slot


def leave(s: State, slot: int, passed: int, now_s: float) -> bool:
    """Whether it is gone; otherwise it ends with its next token. `passed`: steps of its leap that have been."""
    one = s.slots[slot]
    replica = int(one["replica"])
    if replica != NONE and _left_queue(s, replica, slot, now_s):
        return True
    if one["place"] == NONE:
        one["output"] = one["emitted"] + 1
        return False
    rep, steps = s.replicas[replica], 1
    if rep["in_flight"] == DECODES:
        steps = passed + 1
        if rep["leap"] > steps:
            rep["leap"] = steps
            move_event(
                s.queue, rep["token"], rep["start_s"] + leap_time(rep["step_s"], rep["growth_s"], steps)
            )
    per_step = s.pools[rep["pool"]]["tokens_per_step"]
    made = int((rep["clock"] + steps - one["clock"]) * per_step)
    remove_finish(s, replica, one["place"])
    one["output"] = min(one["output"], one["emitted"] + max(1, made))
    push_finish(s, replica, slot, int(rep["clock"]) + steps)
    return False


def _left_queue(s: State, replica: int, slot: int, now_s: float) -> bool:
    """Take a request out of the line before a replica, if it stands in it."""
    rep = s.replicas[replica]
    ahead, other = NONE, int(rep["queue_head"])
    while other not in (NONE, slot):
        ahead, other = other, int(s.slots[other]["waits"])
    if other == NONE:
        return False
    behind = s.slots[slot]["waits"]
    if ahead == NONE:
        rep["queue_head"] = behind
    else:
        s.slots[ahead]["waits"] = behind
    if behind == NONE:
        rep["queue_tail"] = ahead
    s.slots[slot]["waits"] = NONE
    count_queue(s, replica, -1, now_s)
    rep["outstanding"] -= 1
    drained(s, replica, now_s)
    give_slot(s, slot)
    return True

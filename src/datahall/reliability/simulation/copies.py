"""Copies of a run's state, tier by tier: taken, written out, lost with what they lay on, and fallen back to."""

from __future__ import annotations

from datahall.compiled import inline
from datahall.reliability.simulation.state import State

HAIR = 1e-6  # of a second: time or work that is missing by rounding alone


@inline
def held(s: State, tier: int, now_s: float) -> float:
    """The work that the newest whole copy of a tier holds."""
    copy = s.copies[tier]
    if now_s >= copy["ready_s"] - HAIR:
        return float(copy["taken_s"])
    return float(copy["kept_s"])


@inline
def take(s: State, run: int, tier: int) -> bool:
    """Stop for a checkpoint; False where a failure or the end of the run comes in between."""
    one, how, copy = s.runs[run], s.tiers[tier], s.copies[tier]
    end_s = one["now_s"] + how["blocking_s"]
    cut_s = min(one["fail_s"], max(one["now_s"], s.rules[0]["until_s"]))
    if cut_s < end_s:
        one["blocking_s"] += cut_s - one["now_s"]
        one["now_s"] = cut_s
        return False
    copy["kept_s"] = held(s, tier, one["now_s"])
    one["blocking_s"] += how["blocking_s"]
    one["now_s"] = end_s
    copy["taken_s"], copy["ready_s"] = one["work_s"], end_s + how["drain_s"]
    copy["next_s"] = one["work_s"] + how["interval_s"]
    return True


@inline
def take_often(s: State, run: int, until_s: float) -> None:
    """Many checkpoints of the most frequent tier at once, while nothing else comes in between."""
    one = s.runs[run]
    most, other_s = 0, s.rules[0]["goal_s"]
    for tier in range(1, s.tiers.size):
        if s.tiers[tier]["interval_s"] < s.tiers[most]["interval_s"]:
            most = tier
    for tier in range(s.tiers.size):
        if tier != most:
            other_s = min(other_s, s.copies[tier]["next_s"])
    how, copy = s.tiers[most], s.copies[most]
    if copy["next_s"] != one["work_s"] + how["interval_s"]:
        return
    cycle_s = how["interval_s"] + how["blocking_s"]
    times = min((until_s - one["now_s"]) / cycle_s, (other_s - one["work_s"]) / how["interval_s"])
    count = int(times) - 1 if times < 1e15 else 0
    if count < 2:
        return
    one["work_s"] += count * how["interval_s"]
    one["blocking_s"] += count * how["blocking_s"]
    one["now_s"] += count * cycle_s
    copy["taken_s"], copy["kept_s"] = one["work_s"], one["work_s"] - how["interval_s"]
    copy["ready_s"] = one["now_s"] + how["drain_s"]
    copy["next_s"] = one["work_s"] + how["interval_s"]


@inline
def fall_back(s: State, run: int, survives: int) -> float:
    """Throw a run back to the newest copy that a failure leaves; returns how long it takes to read."""
    one, found_s, load_s = s.runs[run], -1.0, 0.0
    for tier in range(s.tiers.size):
        how = s.tiers[tier]
        if how["outlives"] >> survives & 1:
            work_s = held(s, tier, one["now_s"])
            if work_s > found_s or (work_s == found_s and how["load_s"] < load_s):
                found_s, load_s = work_s, float(how["load_s"])
    one["work_s"] = max(0.0, found_s)
    settle(s, run, survives)
    return load_s


@inline
def settle(s: State, run: int, survives: int) -> None:
    """Copies that are left hold what they held, up to the work that there is; what was lost is copied anew at once."""
    one = s.runs[run]
    for tier in range(s.tiers.size):
        copy, how = s.copies[tier], s.tiers[tier]
        work_s = one["work_s"]
        if how["outlives"] >> survives & 1:
            work_s = min(work_s, held(s, tier, one["now_s"]))
        copy["taken_s"] = copy["kept_s"] = work_s
        copy["ready_s"] = one["now_s"]
        copy["next_s"] = max(one["work_s"], work_s + how["interval_s"])


@inline
def save_on_notice(s: State, run: int, notice_s: float) -> None:
    """Where capacity is taken away with notice, write the last tier before it goes, if there is time."""
    last = s.tiers.size - 1
    how, copy, one = s.tiers[last], s.copies[last], s.runs[run]
    if notice_s > 0.0 and how["blocking_s"] + how["drain_s"] <= notice_s:
        one["blocking_s"] += how["blocking_s"]
        one["now_s"] += how["blocking_s"]
        copy["kept_s"] = copy["taken_s"] = one["work_s"]
        copy["ready_s"] = one["now_s"]

"""The compiled loop: runs from failure to failure, with their checkpoints, restarts, repairs and planned stops.

Failures come at random in wall time, whatever the run does: one that strikes a restart begins it anew.  Work is counted
in seconds at full speed; a failure throws it back to the newest copy that it leaves, and copies are there only once
they have been written out.  While there are too few nodes nothing of the job runs, and only nodes fail (`nodes.py`).
"""

from __future__ import annotations

import numpy as np

from datahall.compiled import Kernel, inline
from datahall.reliability.simulation.copies import (
    HAIR,
    fall_back,
    held,
    save_on_notice,
    settle,
    take,
    take_often,
)
from datahall.reliability.simulation.nodes import (
    count_failure,
    draw_cause,
    draw_failure,
    find_spare,
    greet_returned,
    is_there,
    promised_s,
    send_away,
    wait_for_nodes,
)
from datahall.reliability.simulation.returns import drop_until, push_time
from datahall.reliability.simulation.state import FAILS, PAUSES, RESTARTS, WORKS, State

NEVER = np.inf


@inline
def mark(s: State, run: int) -> None:
    """Keep a point of the curve of progress."""
    one = s.runs[run]
    if one["num_points"] < s.points.shape[0]:
        s.points[one["num_points"], 0], s.points[one["num_points"], 1] = one["now_s"], one["work_s"]
        one["num_points"] += 1


@inline
def begin(s: State, run: int) -> None:
    """Everything as it is before the first step."""
    one = s.runs[run]
    one["silent_due_s"], one["planned_due_s"] = NEVER, s.rules[0]["planned_every_s"]
    for tier in range(s.tiers.size):
        copy = s.copies[tier]
        copy["taken_s"] = copy["kept_s"] = copy["ready_s"] = 0.0
        copy["next_s"] = s.tiers[tier]["interval_s"]
    draw_failure(s, run)


@inline
def passed(s: State, run: int, duration_s: float) -> float:
    """Time that goes by until so much is over, a failure strikes or the run ends."""
    one = s.runs[run]
    spent_s = max(0.0, min(duration_s, one["fail_s"] - one["now_s"], s.rules[0]["until_s"] - one["now_s"]))
    one["now_s"] += spent_s
    return float(spent_s)


@inline
def moved(s: State, run: int, wait_s: float) -> float:
    """How long it takes to put the job on other nodes; a hot spare that is free and not waited for runs it already."""
    rules = s.rules[0]
    is_hot = rules["hot"] > 0 and s.runs[run]["on_spare"] > 0 and wait_s == 0.0
    return 0.0 if is_hot else float(rules["reschedule_s"])


@inline
def restart(s: State, run: int) -> None:
    """Detect, wait for nodes, put the job on them, read the checkpoint and warm up; a failure begins it anew.

    Who waits longer for nodes than it takes to notice the failure has noticed it meanwhile.
    """
    one, rules = s.runs[run], s.rules[0]
    waited_s = wait_for_nodes(s, run)
    one["num_waits"] += waited_s > 0.0
    noticed_s = min(waited_s, one["next_detect_s"])
    one["wait_s"] += waited_s - noticed_s
    left_s = one["next_detect_s"] - noticed_s
    spent_s = passed(s, run, left_s)
    one["detect_s"] += noticed_s + spent_s
    left_s -= spent_s
    if left_s == 0.0:
        moved_s = moved(s, run, waited_s)
        spent_s = passed(s, run, moved_s)
        one["reschedule_s"] += spent_s
        left_s = moved_s - spent_s
    if left_s == 0.0:
        spent_s = passed(s, run, one["next_load_s"])
        one["load_s"] += spent_s
        left_s = one["next_load_s"] - spent_s
    if left_s == 0.0:
        spent_s = passed(s, run, rules["warmup_s"])
        one["warmup_s"] += spent_s
        left_s = rules["warmup_s"] - spent_s
    one["does"] = WORKS if left_s == 0.0 else FAILS
    mark(s, run)


@inline
def fail(s: State, run: int, working: bool) -> None:
    """A failure: silent, of one replica among others, or of the whole run."""
    one, rules = s.runs[run], s.rules[0]
    cause = draw_cause(s, run)
    count_failure(s, run, cause)
    what = s.causes[cause]
    mark(s, run)
    if working and what["silent"] > 0 and rules["silent_s"] > 0.0:
        corrupt(s, run)
    elif working and what["survives"] <= rules["elastic"]:
        greet_returned(s, run)
        send_away(s, run, cause)
        go_on_without(s, run, promised_s(s, run))
    else:
        if working:
            save_on_notice(s, run, what["notice_s"])
        before_s = one["work_s"]
        one["next_load_s"] = fall_back(s, run, what["survives"])
        one["lost_s"] += before_s - one["work_s"]
        if one["work_s"] <= one["silent_work_s"]:
            one["silent_due_s"] = NEVER
        greet_returned(s, run)
        send_away(s, run, cause)
        one["next_detect_s"], one["does"] = rules["detect_s"], RESTARTS
    draw_failure(s, run)


@inline
def corrupt(s: State, run: int) -> None:
    """Results are wrong from here on, and nobody knows yet."""
    one = s.runs[run]
    one["does"] = WORKS
    one["num_silent"] += 1
    if one["silent_due_s"] == NEVER:
        one["silent_due_s"] = one["now_s"] + s.rules[0]["silent_s"]
        one["silent_work_s"] = one["work_s"]
        one["silent_good_s"] = held(s, s.tiers.size - 1, one["now_s"])


@inline
def uncover(s: State, run: int) -> None:
    """Wrong results are found: back to the last copy from before them."""
    one = s.runs[run]
    mark(s, run)
    one["silent_s"] += one["work_s"] - one["silent_good_s"]
    one["work_s"], one["silent_due_s"] = one["silent_good_s"], NEVER
    settle(s, run, 0)
    greet_returned(s, run)
    find_spare(s, run, 1)
    one["next_detect_s"], one["does"] = s.rules[0]["bisect_s"], RESTARTS
    one["next_load_s"] = s.tiers[s.tiers.size - 1]["load_s"]


@inline
def go_on_without(s: State, run: int, wait_s: float) -> None:
    """One replica is out until it is back; the others wait for the new membership and go on."""
    one, rules = s.runs[run], s.rules[0]
    back_s = rules["detect_s"] + wait_s + moved(s, run, wait_s) + s.tiers[0]["load_s"] + rules["warmup_s"]
    one["num_out"] = push_time(s.out_s, one["num_out"], one["now_s"] + back_s)
    one["now_s"] += rules["stall_s"]
    one["stall_s"] += rules["stall_s"]
    one["does"] = WORKS


@inline
def pause(s: State, run: int) -> None:
    """A planned stop, behind a checkpoint, to its end: what fails in it is replaced meanwhile."""
    one, rules = s.runs[run], s.rules[0]
    one["planned_due_s"] = one["now_s"] + rules["planned_every_s"]
    one["does"] = FAILS
    if take(s, run, s.tiers.size - 1):
        one["num_planned"] += 1
        end_s = min(one["now_s"] + rules["planned_s"], max(one["now_s"], rules["until_s"]))
        one["planned_s"] += end_s - one["now_s"]
        while one["fail_s"] < end_s:
            one["now_s"] = one["fail_s"]
            greet_returned(s, run)
            cause = draw_cause(s, run)
            count_failure(s, run, cause)
            if is_there(s, run):
                send_away(s, run, cause)
            draw_failure(s, run)
        one["now_s"], one["does"] = end_s, WORKS
        one["wait_s"] += wait_for_nodes(s, run)


@inline
def speed_of(s: State, run: int) -> float:
    """Of the work, over that with all replicas."""
    one = s.runs[run]
    if one["num_out"] > 0:
        one["num_out"] = drop_until(s.out_s, one["num_out"], one["now_s"])
    return float(s.speeds[one["num_out"]]) if one["num_out"] < s.speeds.size else 0.0


@inline
def due(s: State, run: int) -> float:
    """When something comes next that is no checkpoint."""
    one = s.runs[run]
    next_s = min(one["fail_s"], s.rules[0]["until_s"], one["planned_due_s"], one["silent_due_s"])
    if one["num_out"] > 0:
        next_s = min(next_s, s.out_s[0])
    return float(max(one["now_s"], next_s))


@inline
def work_until(s: State, run: int, speed: float, end_s: float) -> None:
    """Work goes on to a time."""
    one = s.runs[run]
    spent_s = end_s - one["now_s"]
    one["work_s"] += spent_s * speed
    one["degraded_s"] += spent_s * (1.0 - speed)
    one["now_s"] = end_s


@inline
def work(s: State, run: int) -> None:
    """Work until the next checkpoint, which is taken, or until something else comes."""
    one, rules = s.runs[run], s.rules[0]
    speed = speed_of(s, run)
    next_s = due(s, run)
    if speed == 1.0:
        take_often(s, run, next_s)
    first_s = rules["goal_s"]
    for tier in range(s.tiers.size):
        first_s = min(first_s, s.copies[tier]["next_s"])
    reached_s = one["now_s"] + (first_s - one["work_s"]) / speed if speed > 0.0 else NEVER
    if reached_s > next_s:
        work_until(s, run, speed, next_s)
        if one["fail_s"] <= next_s:
            one["does"] = FAILS
        elif one["silent_due_s"] <= next_s:
            uncover(s, run)
        elif one["planned_due_s"] <= next_s:
            one["does"] = PAUSES
        return
    work_until(s, run, speed, reached_s)
    one["work_s"] = first_s
    for tier in range(s.tiers.size):
        due_now = s.copies[tier]["next_s"] <= first_s and first_s < rules["goal_s"]
        if due_now and one["does"] == WORKS and not take(s, run, tier):
            one["does"] = FAILS


@inline
def play(s: State, run: int) -> None:
    """One run from its first step until its time is up or its work is done."""
    one, rules = s.runs[run], s.rules[0]
    begin(s, run)
    mark(s, run)
    working = True
    while one["now_s"] < rules["until_s"] and one["work_s"] < rules["goal_s"] - HAIR:
        if one["does"] == WORKS:
            work(s, run)
            working = True
        elif one["does"] == RESTARTS:
            restart(s, run)
            working = False
        elif one["does"] == PAUSES:
            pause(s, run)
            working = False
        else:
            fail(s, run, working)
    mark(s, run)


def play_runs(s: State, first: int, last: int) -> None:
    """Runs by number, each with luck of its own."""
    for run in range(first, last):
        play(s, run)


advance = Kernel(play_runs, compile_s=8.0)

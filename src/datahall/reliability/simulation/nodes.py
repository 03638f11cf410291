"""Nodes that fail: when the next one does, of what, and how long until there are enough of them again.

While a job has too few nodes nothing of it runs, so nothing of it fails: its program, its network, what a reset mends.
Nodes that are there meanwhile leave as others do, to a repair or to whoever takes them back, and are waited for too.
A wait is over when enough are back, and never before.
"""

from __future__ import annotations

from datahall.compiled import inline
from datahall.events.draws import exponential, lognormal
from datahall.events.logarithm import exp, log
from datahall.events.streams import Dice, uniform
from datahall.reliability.simulation.returns import drop_until, pop_first, push_time
from datahall.reliability.simulation.state import State


@inline
def dice_of(s: State) -> Dice:
    """The dice; each run draws from a lane of its own."""
    return Dice(s.keys[0], s.drawn)


@inline
def draw_failure(s: State, run: int) -> None:
    """When the next failure strikes: at the steady rate, or while nodes are new at the rate of their age.

    The hazard of a new node, r·(a/a₀)^(k−1), adds up to r·(a₀/k)·(a/a₀)^k until the age a₀: where that is as much more
    as was drawn.  What has nothing to do with their age comes beside it; the first of both strikes.
    """
    one, rules = s.runs[run], s.rules[0]
    if rules["age_s"] < 0.0:
        one["fail_s"] = one["now_s"] + exponential(dice_of(s), rules["mttf_s"], run)
        return
    ageing = rules["ageing_fraction"]
    steady_s = exponential(dice_of(s), rules["mttf_s"] / ageing, run)
    early_s, shape = rules["early_s"], rules["early_shape"]
    age_s = rules["age_s"] + one["now_s"]
    sum_s = early_s / shape + age_s - early_s
    if age_s < early_s:
        sum_s = early_s / shape * exp(shape * log(max(age_s, 1.0) / early_s))
    sum_s += steady_s
    then_s = early_s + sum_s - early_s / shape
    if then_s < early_s:
        then_s = early_s * exp(log(sum_s * shape / early_s) / shape)
    one["fail_s"], one["by_age"] = max(one["now_s"], then_s - rules["age_s"]), 1
    if ageing < 1.0:
        other_s = one["now_s"] + exponential(dice_of(s), rules["mttf_s"] / (1.0 - ageing), run)
        if other_s < one["fail_s"]:
            one["fail_s"], one["by_age"] = other_s, 0


@inline
def draw_cause(s: State, run: int) -> int:
    """What failed."""
    share, cause = uniform(dice_of(s), run), 0
    if s.rules[0]["age_s"] >= 0.0:
        ageing = s.rules[0]["ageing_fraction"]
        share = share * ageing if s.runs[run]["by_age"] > 0 else ageing + share * (1.0 - ageing)
    while cause < s.causes.size - 1 and share > s.causes[cause]["upto"]:
        cause += 1
    return cause


@inline
def find_spare(s: State, run: int, num_nodes: int) -> None:
    """Whether so many spares are free now."""
    one = s.runs[run]
    one["on_spare"] = 1 if one["num_away"] + num_nodes <= s.rules[0]["spares"] else 0


@inline
def count_failure(s: State, run: int, cause: int) -> None:
    """One more, of a cause."""
    s.counts[run, cause] += 1
    s.runs[run]["num_failures"] += 1


@inline
def greet_returned(s: State, run: int) -> None:
    """Nodes that are back by now are away no longer."""
    one = s.runs[run]
    one["num_away"] = drop_until(s.away_s, one["num_away"], one["now_s"])
    one["num_taken"] = drop_until(s.taken_s, one["num_taken"], one["now_s"])


@inline
def num_lacking(s: State, run: int) -> int:
    """Nodes that a job has too few: repairs beyond its spares, and capacity that was taken away."""
    one = s.runs[run]
    return int(max(0, one["num_away"] - s.rules[0]["spares"]) + one["num_taken"])


@inline
def is_there(s: State, run: int) -> bool:
    """Whether the node that would fail next is one of those that are there."""
    nodes = s.rules[0]["nodes"]
    lacking = num_lacking(s, run)
    return lacking == 0 or uniform(dice_of(s), run) * nodes < nodes - lacking


@inline
def send_away(s: State, run: int, cause: int) -> bool:
    """Send what failed to repair, or to whoever takes it back; False where it takes no node away."""
    one, what = s.runs[run], s.causes[cause]
    one["on_spare"] = 0
    if what["back_s"] > 0.0:
        back_s = one["now_s"] + exponential(dice_of(s), what["back_s"], run)
        one["num_taken"] = push_time(s.taken_s, one["num_taken"], back_s)
        return True
    find_spare(s, run, what["nodes"])
    if what["repair_fraction"] == 0.0 or uniform(dice_of(s), run) > what["repair_fraction"]:
        return False
    back_s = one["now_s"] + lognormal(dice_of(s), what["repair_median_s"], what["repair_sigma"], run)
    for _ in range(what["nodes"]):
        one["num_away"] = push_time(s.away_s, one["num_away"], back_s)
    one["most_away"] = max(one["most_away"], one["num_away"])
    return True


@inline
def wait_for_nodes(s: State, run: int) -> float:
    """Wait until there are enough nodes, or the run ends; returns for how long."""
    one, until_s = s.runs[run], s.rules[0]["until_s"]
    begun_s = one["now_s"]
    greet_returned(s, run)
    while num_lacking(s, run) > 0 and one["now_s"] < until_s:
        back_s = until_s
        if one["num_taken"] > 0:
            back_s = min(back_s, s.taken_s[0])
        if one["num_away"] > s.rules[0]["spares"]:
            back_s = min(back_s, s.away_s[0])
        if one["fail_s"] < back_s:
            one["now_s"] = max(one["now_s"], one["fail_s"])
            greet_returned(s, run)
            cause = draw_cause(s, run)
            if is_there(s, run) and send_away(s, run, cause):
                count_failure(s, run, cause)
            draw_failure(s, run)
        else:
            one["now_s"] = back_s
            greet_returned(s, run)
    return float(one["now_s"] - begun_s)


@inline
def promised_s(s: State, run: int) -> float:
    """How long until there is a node in the place of those that one replica has just lost, which are then its own."""
    one = s.runs[run]
    until_s = one["now_s"]
    if one["num_away"] > s.rules[0]["spares"]:
        one["num_waits"] += 1
        while one["num_away"] > s.rules[0]["spares"]:
            until_s = max(until_s, s.away_s[0])
            one["num_away"] = pop_first(s.away_s, one["num_away"])
    return float(until_s - one["now_s"])

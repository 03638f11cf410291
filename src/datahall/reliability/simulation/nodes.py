"""Nodes that fail: when the next one does, of what, and how long until there is another in its place."""

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
    s.counts[run, cause] += 1
    s.runs[run]["num_failures"] += 1
    return cause


@inline
def find_spare(s: State, run: int, num_nodes: int) -> None:
    """Whether so many spares are free now."""
    one = s.runs[run]
    one["num_away"] = drop_until(s.away_s, one["num_away"], one["now_s"])
    one["on_spare"] = 1 if one["num_away"] + num_nodes <= s.rules[0]["spares"] else 0


@inline
def replace_nodes(s: State, run: int, cause: int) -> float:
    """Send what failed to repair where it needs one; returns how long until there is something in its place."""
    one, what = s.runs[run], s.causes[cause]
    one["on_spare"] = 0
    if what["back_s"] > 0.0:
        return float(exponential(dice_of(s), what["back_s"], run))
    find_spare(s, run, what["nodes"])
    if what["repair_fraction"] == 0.0 or uniform(dice_of(s), run) > what["repair_fraction"]:
        return 0.0
    back_s = one["now_s"] + lognormal(dice_of(s), what["repair_median_s"], what["repair_sigma"], run)
    for _ in range(what["nodes"]):
        one["num_away"] = push_time(s.away_s, one["num_away"], back_s)
    one["most_away"] = max(one["most_away"], one["num_away"])
    until_s = one["now_s"]
    if one["num_away"] > s.rules[0]["spares"]:
        one["num_waits"] += 1
        while one["num_away"] > s.rules[0]["spares"]:
            until_s = max(until_s, s.away_s[0])
            one["num_away"] = pop_first(s.away_s, one["num_away"])
    return float(until_s - one["now_s"])

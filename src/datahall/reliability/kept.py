"""What a run keeps of its time, as a figure: what restarts leave × what copies leave × what all else leaves.

A formula is printed beside a factor only where the factor is what it says; where planned stops, spares or capacity
that is taken away make it another, the factor names the module that has its equations.
"""

from __future__ import annotations

from math import exp, inf, isclose, isfinite, prod
from typing import TYPE_CHECKING

from datahall.breakdown import (
    SAME,
    Breakdown,
    assumed,
    derived,
    difference,
    modelled,
    product,
    quotient,
)
from datahall.reliability.checkpoint.plan import NOTHING_LEFT
from datahall.reliability.ettr import renewal_ettr
from datahall.reliability.figure import (
    back_figure,
    mttf_figure,
    planned_figure,
    speed_figure,
    tier_figures,
)

if TYPE_CHECKING:
    from datahall.reliability.checkpoint.tier import Cadence
    from datahall.reliability.closed_form import Expected
    from datahall.reliability.run import Run

RESTARTED = "e^(−R/M): restart and drain R, time between failures M; failures strike in restarts too"
MODEL = "reliability/closed_form.py: with spares, and failures that one replica or the provider has"
COPIED = "t / [M (e^((t + d)/M) − 1)]: interval t, blocking d, M between failures that fall back to it"
UNASKED = "t / (t + d): interval t, blocking d; no failure falls back to it"
CUT = "reliability/closed_form.py: planned stops and the end of the run cut intervals short, and keep their work"


def plan_figure(run: Run) -> Breakdown:
    """What its plan of checkpoints keeps, planned stops aside."""
    plan, mttf = run.plan, mttf_figure(run)
    restart = back_figure(run, run.job.size.figure)
    parts = [_restarts(plan.restarts_leave, restart, mttf, plan.mttf_s), *_copies(run, mttf)]
    if not plan.ettr:
        little = f"less than {NOTHING_LEFT:g} counts as nothing"
        return modelled("effective training time", 0.0, "fraction", little, *parts)
    return product("effective training time", parts, "fraction")


def closed_figure(run: Run, found: Expected) -> Breakdown:
    """What the closed form says of the whole run."""
    mttf, leaves = mttf_figure(run), found.leaves
    parts = [_restarts(leaves["restarts"], back_figure(run), mttf, run.mttf_s)]
    copies = _copies(run, mttf)
    if not isclose(prod(one.value for one in copies), leaves["copies"], rel_tol=SAME):
        inputs = [part for one in copies for part in one.parts]
        copies = [modelled("left by checkpoints", leaves["copies"], "fraction", CUT, *inputs)]
    parts += copies
    if isfinite(run.recovery.planned_every_s):
        parts.append(_planned(run, leaves["planned"]))
    if run.speed_fraction < 1.0:
        parts.append(speed_figure(run))
    for names, what, how in OTHERS:
        if (left := prod(leaves[name] for name in names)) != 1.0:
            parts.append(derived(what, left, "fraction", how))
    return product("closed form", parts, "fraction")


OTHERS = (
    (
        ("repairs", "capacity"),
        "time with nodes enough",
        "nodes in repair beyond the spares, and capacity that was taken away, are waited for",
    ),
    (("corruption",), "left by silent corruption", "what is found late costs as much work more"),
    (("replicas",), "left while replicas are out", "the others go on, in the mean of their number"),
)


def _restarts(left: float, restart: Breakdown, mttf: Breakdown, stops_s: float) -> Breakdown:
    is_simple = isclose(mttf.value, stops_s, rel_tol=SAME) and isclose(
        left, exp(-restart.value / stops_s), rel_tol=SAME
    )
    how = RESTARTED if is_simple else MODEL
    return modelled("left by restarts", left, "fraction", how, restart, mttf)


def _copies(run: Run, mttf: Breakdown) -> list[Breakdown]:
    return [_tier(one, mttf, run.plan.mttf_s) for one in run.plan.cadences]


def _tier(cadence: Cadence, mttf: Breakdown, stops_s: float) -> Breakdown:
    """What stops for the copies of a tier leave, and the work that is lost since the last one."""
    tier, own_s = cadence.tier, cadence.own_mttf_s(stops_s)
    interval, blocking = tier_figures(cadence)
    left = renewal_ettr(cadence.interval_s, tier.blocking_s, 0.0, own_s)
    name = f"left by copies to {tier.title}"
    if own_s == inf:
        return modelled(name, left, "fraction", UNASKED, interval, blocking)
    between_them, share = "between failures that fall back to it", mttf.value / own_s
    if isclose(share, 1.0, rel_tol=SAME):
        between = derived(between_them, own_s, "s", "as above: all do")
    else:
        every = derived("between failures", mttf.value, "s", "as above")
        between = quotient(between_them, every, derived("of failures", share, "fraction", "do"), "s")
    return modelled(name, left, "fraction", COPIED, interval, blocking, between)


def _planned(run: Run, left: float) -> Breakdown:
    planned = planned_figure(run.recovery)
    whole = assumed("all of the time", 1.0, "fraction", "by definition")
    if isclose(1.0 - planned.value, left, rel_tol=SAME):
        return difference("left by planned stops", whole, planned)
    how = "as many as come before the run is over"
    return modelled("left by planned stops", left, "fraction", how, planned)

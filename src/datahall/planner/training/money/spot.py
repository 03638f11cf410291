"""A run on capacity that its seller takes away: the same layout, nodes of which leave, and the time that costs.

The price of spot capacity is paid for all of that time: nothing is counted twice, and other capacity is never taken.
"""

from __future__ import annotations

from math import inf

import msgspec

from datahall.economics.spot import USUAL_UP_S
from datahall.planner.training.plan import TrainingPlan
from datahall.reliability.job import job_on
from datahall.reliability.run import Run, run_of
from datahall.reliability.sections.goodput import Goodput
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.purchase import Purchase
from datahall.scenario.sections.operations.run import Recovering
from datahall.scenario.words import Buying
from datahall.training.layout.asked import said_precision


def as_had(scenario: Scenario, buy: tuple[Buying, ...] | None = None) -> Scenario:
    """The question with nodes that are taken away where all capacity is spot, and with none where other is allowed."""
    back = scenario.one(Recovering)
    every_s = back.preempted_every_s or USUAL_UP_S
    taken_s = every_s if (buy or scenario.one(Purchase).buy) == ("spot",) else None
    if taken_s == back.preempted_every_s:
        return scenario
    return scenario.having(msgspec.structs.replace(back, preempted_every_s=taken_s))


def run_had(plan: TrainingPlan, scenario: Scenario, way: Buying) -> Run:
    """The run of a plan on chips that are had one way."""
    run, on_spot = plan.part(Goodput).run, way == "spot"
    if on_spot == (run.recovery.preempted_every_s < inf):
        return run
    job = job_on(plan.setup(said_precision(scenario)), scenario.catalog, step_s=plan.step_s, searched=True)
    return run_of(as_had(scenario, ("spot",) if on_spot else ("rent",)), job)

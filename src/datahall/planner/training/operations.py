"""What a training plan comes to over weeks: what failures leave of it, when it is done, what it draws and reads.

All are of the layout that was chosen, and of what the scenario says of failures, checkpoints and the site, or the
usual where it says nothing; `simulate run` and `show power` answer the same of the same layout, with more of it.
"""

from __future__ import annotations

from math import inf

from datahall.datapath.sections.text import text_need
from datahall.errors import InfeasibleError, ScenarioError
from datahall.planner.training.laid.site import assessed
from datahall.planner.training.money.spot import as_had
from datahall.planner.training.plan import TrainingPlan
from datahall.power.sections.run import RunPower
from datahall.power.sections.unknown import UnknownPower, power_or_why
from datahall.reliability.job import job_on
from datahall.reliability.run import length_of, run_of
from datahall.reliability.sections.goodput import Goodput, goodput_of
from datahall.reliability.simulation.story import story_of
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.operations.failures import FailureRates
from datahall.scenario.sections.operations.run import RunLength
from datahall.training.layout.asked import said_precision
from datahall.training.pipeline.execution import Execution


def with_goodput(plan: TrainingPlan, scenario: Scenario) -> TrainingPlan:
    """The plan with its failures, spares and checkpoints, on chips as they are had."""
    setup, had = plan.setup(said_precision(scenario)), as_had(scenario)
    run = run_of(had, job_on(setup, scenario.catalog, step_s=plan.step_s, searched=True))
    return plan.with_section(goodput_of(had, run, plan.duration_s))


def done_by(plan: TrainingPlan, scenario: Scenario) -> float:
    """When nine of ten runs of a plan are done [s], as `simulate run` has it; inf where fewer ever are."""
    run = plan.part(Goodput).run
    until_s, goal_s = length_of(scenario, run)
    try:
        story = story_of(
            run,
            until_s=until_s,
            goal_s=goal_s,
            num_runs=scenario.one(RunLength).runs,
            seed=scenario.root.seed,
            enough_fraction=scenario.one(FailureRates).enough_fraction,
        )
    except (InfeasibleError, ScenarioError):
        return inf
    return story.done_s


def energy_of(scenario: Scenario, execution: Execution) -> float:
    """Energy of a token of a layout on its chips [J]; infinite where nobody knows what they draw."""
    site = assessed(scenario, execution, execution.cluster.num_chips)
    found = power_or_why(execution.cluster.chip, lambda: site.machines, lambda _: site)
    return inf if isinstance(found, UnknownPower) else found.token_j


def with_site(plan: TrainingPlan, scenario: Scenario) -> TrainingPlan:
    """The plan with what it reads, and what its site draws where that is known.

    The site is of the chips of the run and of those that stay idle beside it; those that have failed draw nothing.
    """
    plan = plan.with_section(text_need(scenario.catalog, plan.num_tokens, plan.execution.tokens_per_s))
    working, site = (assessed(scenario, plan.execution, num) for num in (plan.num_chips, plan.num_working))
    power = power_or_why(
        plan.cluster.chip,
        lambda: site.machines,
        lambda _: RunPower(site=site, num_tokens=plan.num_tokens, at_work=working if plan.num_idle else None),
    )
    return plan.with_section(power)

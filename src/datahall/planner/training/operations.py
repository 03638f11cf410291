"""What a training plan comes to over weeks: what failures leave of it, what it draws, and what it reads.

All are of the layout that was chosen, and of what the scenario says of failures, checkpoints and the site, or the
usual where it says nothing; `simulate run` and `show power` answer the same of the same layout, with more of it.
"""

from __future__ import annotations

from datahall.datapath.sections.text import text_need
from datahall.planner.training.plan import TrainingPlan
from datahall.planner.training.site import assessed
from datahall.power.sections.run import RunPower
from datahall.power.sections.unknown import power_or_why
from datahall.reliability.job import job_on
from datahall.reliability.run import run_of
from datahall.reliability.sections.goodput import goodput_of
from datahall.scenario.scenario import Scenario
from datahall.training.layout.asked import said_precision
from datahall.training.pipeline.table import usual_order
from datahall.training.setup import Setup


def with_goodput(plan: TrainingPlan, scenario: Scenario) -> TrainingPlan:
    """The plan with its failures, spares and checkpoints."""
    setup = Setup(
        job=plan.job,
        precision=said_precision(scenario),
        cluster=plan.cluster,
        layout=plan.layout,
        framework=plan.search.framework,
        schedule=usual_order(plan.layout.vpp),
    )
    run = run_of(scenario, job_on(setup, scenario.catalog, step_s=plan.step_s, searched=True))
    return plan.with_section(goodput_of(scenario, run, plan.duration_s))


def with_site(plan: TrainingPlan, scenario: Scenario) -> TrainingPlan:
    """The plan with what it reads, and what its site draws where that is known.

    Chips that have failed draw nothing, idle ones what idle chips do.
    """
    plan = plan.with_section(text_need(scenario.catalog, plan.num_tokens, plan.tokens_per_s))
    execution = plan.chosen.execution
    assert execution is not None
    site = assessed(scenario, execution, plan.num_working)
    power = power_or_why(
        plan.cluster.chip, lambda: site.machines, lambda _: RunPower(site=site, num_tokens=plan.num_tokens)
    )
    return plan.with_section(power)

"""A training run as somebody asks for a plan of it: on so many chips, or by a deadline."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import msgspec

from datahall.cluster.gone import gone_of
from datahall.cluster.wiring import wiring_of
from datahall.fabric.design.chips import own_chips
from datahall.planner.training.choice import plan_on_chips
from datahall.planner.training.deadline import plan_by_deadline
from datahall.planner.training.early import chips_of
from datahall.planner.training.operations import with_goodput, with_site
from datahall.planner.training.plan import TrainingPlan
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import MOST_CHIPS
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.training import TrainingJob, TrainingLayout
from datahall.training.layout.space import WIDE
from datahall.training.setup import framework_of, job_of, machine_of, of_any_size


def plan_training(scenario: Scenario) -> TrainingPlan:
    """The plan that a scenario asks for; where nobody said how many chips, those of the plan have what has failed."""
    plan = search_of(scenario)()
    if chips_of(scenario) is None:
        machine_of(scenario, strict=True)(plan.chosen.num_chips)
    return with_site(with_goodput(plan, scenario), scenario)


def search_of(scenario: Scenario) -> Callable[[], TrainingPlan]:
    """The search that a scenario asks for, made and not begun.

    What it may offload is weighed beside keeping all on the chips.
    """
    asked, num_chips = scenario.one(TrainingJob), chips_of(scenario)
    assert asked.num_tokens is not None
    job, framework, wiring = job_of(scenario), framework_of(scenario), wiring_of(scenario)
    gone = gone_of(wiring, scenario.catalog, num_chips) if num_chips is not None else None
    machine = lru_cache(maxsize=1)(machine_of(scenario, wiring=gone.wiring if gone is not None else wiring))
    offload = scenario.one(TrainingLayout).offload
    options = msgspec.structs.replace(
        WIDE, offload=((), offload) if offload else WIDE.offload, margin_fraction=asked.margin_fraction
    )
    if num_chips is not None and gone is not None:
        machine(gone.num_left)  # refuses what cannot be wired; the search begins with it
        on_them = partial(
            plan_on_chips, job, machine, gone.num_left, asked.num_tokens, framework, options=options
        )
        stranded = num_chips - gone.num_out - gone.num_left
        return lambda: msgspec.structs.replace(
            on_them(), num_asked=num_chips, num_out=gone.num_out, num_stranded=stranded
        )
    assert asked.deadline_s is not None
    of_any_size(machine)
    return partial(
        plan_by_deadline,
        job,
        machine,
        asked.deadline_s,
        asked.num_tokens,
        framework,
        options=options,
        most_chips=own_chips(scenario.one(FabricDesign), scenario.catalog) or MOST_CHIPS,
        operated=partial(with_goodput, scenario=scenario),
    )

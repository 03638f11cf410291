"""A training run as somebody asks for a plan of it: on so many chips, or by a deadline."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from math import prod

import msgspec

from datahall.fabric.design.chips import is_built
from datahall.planner.training.choice import plan_on_chips
from datahall.planner.training.deadline import plan_by_deadline
from datahall.planner.training.early import chips_of
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
    return plan


def search_of(scenario: Scenario) -> Callable[[], TrainingPlan]:
    """The search that a scenario asks for, made and not begun.

    What it may offload is weighed beside keeping all on the chips.
    """
    asked, num_chips = scenario.one(TrainingJob), chips_of(scenario)
    assert asked.num_tokens is not None
    job, machine = job_of(scenario), lru_cache(maxsize=1)(machine_of(scenario))
    framework = framework_of(scenario)
    offload = scenario.one(TrainingLayout).offload
    options = msgspec.structs.replace(
        WIDE, offload=((), offload) if offload else WIDE.offload, margin_fraction=asked.margin_fraction
    )
    if num_chips is not None:
        machine(num_chips)  # refuses what cannot be wired; the search begins with it
        return partial(plan_on_chips, job, machine, num_chips, asked.num_tokens, framework, options=options)
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
        most_chips=_most_chips(scenario),
    )


def _most_chips(scenario: Scenario) -> int:
    """The chips of a fabric that was built or whose sides are said; else the most that are weighed."""
    design = scenario.one(FabricDesign)
    if is_built(design.topology, scenario.catalog):
        return scenario.catalog.known_fabric(design.topology).num_chips
    return prod(design.sides) if design.sides else MOST_CHIPS

"""The site of a training job: what it draws, how it is cooled, which limits it breaks, and whether it can be."""

from __future__ import annotations

from functools import partial

import msgspec

from datahall.planner.training.laid.smaller import laid_within
from datahall.planner.training.laid.step import Step, laid_step
from datahall.power.account import Energy, energy_of
from datahall.power.assessment import Assessment
from datahall.power.limits import Broken, broken_limits
from datahall.power.rack import Rack, rack_of
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.operations.site import Site
from datahall.scenario.sections.training import TrainingJob
from datahall.training.pipeline.execution import Execution


class JobSite(msgspec.Struct, frozen=True, kw_only=True):
    """A site whose chips all train one model."""

    step: Step
    power: Assessment
    rack: Rack
    broken: tuple[Broken, ...]  # limits that it does not keep, with what would
    energy: Energy

    @property
    def can_be(self) -> bool:
        """Whether its job fits on its chips, its racks are cooled, and it keeps what is allowed."""
        return self.step.fits and self.rack.is_cooled and not self.broken


def job_site(scenario: Scenario) -> JobSite:
    """The site of the layout that is asked for, or of the fastest."""
    step = laid_step(scenario)
    power = assessed(scenario, step.execution, step.num_chips)
    return JobSite(
        step=step,
        power=power,
        rack=rack_of(power.machines, power.server_w, power.asked, scenario.catalog),
        broken=broken_limits(power, partial(_smaller, scenario, step)),
        energy=energy_of(power, scenario.one(TrainingJob).num_tokens),
    )


def assessed(scenario: Scenario, execution: Execution, num_chips: int) -> Assessment:
    """A step on a site of so many chips, at work or not."""
    return Assessment(
        execution=execution, asked=scenario.one(Site), catalog=scenario.catalog, num_chips=num_chips
    )


def _smaller(scenario: Scenario, step: Step, most: int) -> Assessment | None:
    """The same site with at most so many chips."""
    laid = laid_within(scenario, step, most)
    return None if laid is None else assessed(scenario, laid.execution, laid.num_chips)

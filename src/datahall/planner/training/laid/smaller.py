"""The step of a run on fewer chips than there are."""

from __future__ import annotations

import msgspec

from datahall.errors import DatahallError
from datahall.planner.training.early import check_laid_step
from datahall.planner.training.laid.step import Step, laid_step
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.training import TrainingJob, TrainingLayout


def laid_within(scenario: Scenario, step: Step, most: int) -> Step | None:
    """The same step on at most so many chips, as many as its layout and a batch that was said divide.

    None where none fits.  Where nobody said a layout, whole scale-up domains, and the fastest layout on them.
    """
    layout, domain = step.execution.layout, step.execution.cluster.num_domain
    if step.is_searched:
        sizes = iter([most // domain * domain or most])
    else:
        batch, replica = scenario.one(TrainingJob).global_batch or 0, layout.num_chips // layout.dp
        sizes = (
            replica * dp for dp in range(most // replica, 0, -1) if batch % (dp * layout.micro_batch) == 0
        )
    laid = (_laid_on(scenario, size) for size in sizes)
    return next((found for found in laid if found is not None and found.fits), None)


def _laid_on(scenario: Scenario, num_chips: int) -> Step | None:
    """The step on so many chips, or None where what was said does not go with their number."""
    design = msgspec.structs.replace(scenario.one(FabricDesign), chips=num_chips)
    layout = msgspec.structs.replace(scenario.one(TrainingLayout), dp=None)  # the chips left over
    asked = scenario.having(design, layout)
    try:
        check_laid_step(asked)
        return laid_step(asked) if num_chips else None
    except DatahallError:
        return None

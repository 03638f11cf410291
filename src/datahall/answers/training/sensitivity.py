"""What a plan's step is sensitive to, as a picture: one choice or one part of the machine changed."""

from __future__ import annotations

from datahall.answer import ChangeChart
from datahall.answers.training.plan_table import machine_changed
from datahall.answers.training.words import choice_changed
from datahall.planner.training.plan import TrainingPlan


def sensitivity_charts(plan: TrainingPlan) -> tuple[ChangeChart, ...]:
    """How much longer or shorter the chosen layout's step gets; nothing where nothing that was changed fits."""
    changes = {choice_changed(one): one.loss.slower_fraction for one in plan.changes if one.loss.fits}
    changes |= {machine_changed(one): one.difference_fraction for one in plan.machines if one.chosen}
    if not changes:
        return ()
    return (
        ChangeChart(
            title="the step if one thing changes",
            rows=tuple(changes),
            shares=tuple(changes.values()),
            note="Longer to the right, shorter to the left, than the chosen layout's step on the machine as it is, in "
            "closed form; what does not fit is left out.",
        ),
    )

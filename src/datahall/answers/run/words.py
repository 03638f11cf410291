"""Words that answers about runs share."""

from __future__ import annotations

from datahall.catalog.entries.failures import FailurePreset
from datahall.reliability.asked import preset_of
from datahall.reliability.checkpoint.plan import CheckpointPlan
from datahall.reliability.run import Run
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.operations.failures import FailureRates
from datahall.units import fmt


def preset_named(scenario: Scenario, run: Run) -> FailurePreset:
    """Whose failure rates are used."""
    return preset_of(scenario.one(FailureRates), run.job.cluster.chip, scenario.catalog)


def tiers_in_words(plan: CheckpointPlan) -> str:
    """Tiers and their intervals as a sentence has them."""
    said = [f"a copy to {one.tier.title} every {fmt(one.interval_s, 's', 3)}" for one in plan.cadences]
    *others, last = said
    return f"{', '.join(others)} and {last}" if others else last

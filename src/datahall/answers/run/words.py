"""Words that answers about runs share."""

from __future__ import annotations

from datahall.catalog.entries.failures import FailurePreset
from datahall.reliability.asked import preset_of
from datahall.reliability.checkpoint.plan import CheckpointPlan
from datahall.reliability.checkpoint.tiers import host_bytes_per_s, says_host_link
from datahall.reliability.run import Run
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.operations.failures import FailureRates
from datahall.units import fmt


def preset_named(scenario: Scenario, run: Run) -> FailurePreset:
    """Whose failure rates are used."""
    return preset_of(scenario.one(FailureRates), run.job.cluster.chip, scenario.catalog)


def host_link_notes(run: Run) -> tuple[str, ...]:
    """What is taken for the link of a chip to its host, where nobody says it."""
    if says_host_link(run.job):
        return ()
    link, chip = fmt(host_bytes_per_s(run.job), "bytes_per_s"), run.job.cluster.chip.title
    return (f"nobody says how fast {chip} writes to the memory of its host: {link} are taken",)


def tiers_in_words(plan: CheckpointPlan) -> str:
    """Tiers and their intervals as a sentence has them."""
    said = [f"a copy to {one.tier.title} every {fmt(one.interval_s, 's', 3)}" for one in plan.cadences]
    *others, last = said
    return f"{', '.join(others)} and {last}" if others else last

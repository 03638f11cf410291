"""Words of failures that several answers share."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from datahall.counted import counted_mean
from datahall.units import fmt

if TYPE_CHECKING:
    from datahall.catalog.entries.failures import FailurePreset
    from datahall.reliability.sections.goodput import Goodput
    from datahall.reliability.sections.upkeep import Upkeep
    from datahall.scenario.sections.operations.failures import FailureRates


def out_of_reach(upkeep: Upkeep) -> str:
    """That no number of replicas makes up for those that are being restarted."""
    often = (
        f"a replica serves for {fmt(upkeep.own_mttf_s, 's', 3)} and is gone for {fmt(upkeep.back_s, 's', 3)}"
    )
    return (
        f"Restarts bind: {often}, and no number of replicas keeps as many as are needed "
        f"{fmt(upkeep.rates.enough_fraction, 'fraction')} of the time."
    )


def with_interruptions(goodput: Goodput) -> str:
    """How long a run is, interrupted as it will be."""
    if goodput.elapsed_s == inf:
        return "interrupted too often to end"
    return f"{fmt(goodput.elapsed_s, 's', 3)} with interruptions"


def interruptions(mean: float) -> str:
    """So many interruptions; in the mean, where that is less than one.

    >>> interruptions(418.6), interruptions(1.2), interruptions(0.124), interruptions(0.0)
    ('419 interruptions', '1 interruption', '0.12 interruptions', '0 interruptions')
    """
    return counted_mean(mean, "interruption")


def rates_in_words(preset: FailurePreset, rates: FailureRates) -> str:
    """Whose failures, and how often where somebody says that."""
    if rates.failure_rate_per_node_day is None:
        return f"failures as often as in {preset.title}"
    often = fmt(rates.failure_rate_per_node_day, "per_node_day")
    return f"failures of the kinds in {preset.title}, {often}"

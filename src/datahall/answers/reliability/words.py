"""Words of failures that several answers share."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from datahall.units import fmt

if TYPE_CHECKING:
    from datahall.catalog.entries.failures import FailurePreset
    from datahall.reliability.sections.goodput import Goodput
    from datahall.scenario.sections.operations.failures import FailureRates


def with_interruptions(goodput: Goodput) -> str:
    """How long a run is, interrupted as it will be."""
    if goodput.elapsed_s == inf:
        return "interrupted too often to end"
    return f"{fmt(goodput.elapsed_s, 's', 3)} with interruptions"


def rates_in_words(preset: FailurePreset, rates: FailureRates) -> str:
    """Whose failures, and how often where somebody says that."""
    if rates.failure_rate_per_node_day is None:
        return f"failures as often as in {preset.title}"
    often = fmt(rates.failure_rate_per_node_day, "per_node_day")
    return f"failures of the kinds in {preset.title}, {often}"

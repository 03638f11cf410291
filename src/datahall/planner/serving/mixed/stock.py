"""What can be had of each kind of chip, and why a kind that is short does not do alone."""

from __future__ import annotations

from collections.abc import Mapping

from datahall.catalog.entries.chip import Chip
from datahall.counted import counted
from datahall.errors import option
from datahall.inference.engine.replica import Replica
from datahall.planner.serving.candidate import Candidate
from datahall.planner.serving.refusal import Refused
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.wanted.candidates import Candidates

Stock = Mapping[str, int]  # chips by kind; a kind that is not there is not short


class Short(Refused, frozen=True, kw_only=True):
    """Of this chip there are not enough, for one replica or to serve alone."""


def stock_of(scenario: Scenario) -> Stock:
    """The chips that can be had, of the kinds that somebody says."""
    return dict(scenario.one(Candidates).available)


def is_enough(candidate: Candidate, stock: Stock) -> bool:
    """Whether all the chips of a fleet can be had."""
    return candidate.num_chips <= stock.get(candidate.replica.chip.name, candidate.num_chips)


def too_large(chip: Chip, precision: str, group: Replica, stock: Stock) -> Short | None:
    """A group of which not even one replica can be had; None where one can."""
    there = stock.get(chip.name, group.num_chips)
    if group.num_chips <= there:
        return None
    return Short(
        what=f"{chip.name}, {counted(group.num_chips, 'chip')}, {precision}",
        why=f"one replica takes {counted(group.num_chips, 'chip')}, of which {there:,} can be had",
        hint=f"{option('available', f'{chip.name}={group.num_chips}')}, or another kind in {option('chips')}",
        chip=chip.name,
    )


def short_of(candidate: Candidate, stock: Stock) -> Short:
    """A chip of which there are not enough to serve alone."""
    name = candidate.replica.chip.name
    return Short(
        what=name,
        why=f"alone it takes {candidate.num_chips:,} chips, of which {stock[name]:,} can be had",
        chip=name,
    )

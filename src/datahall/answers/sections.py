"""What a plan says beside its chips: the words of each section that a room has added to it."""

from __future__ import annotations

from typing import Any

from datahall.answer import Cell, Column, Table
from datahall.answers.datapath.sections import TEXT, WEIGHTS
from datahall.answers.economics.sections import RUN_COST, SERVICE_COST
from datahall.answers.power.sections import RUN, SERVICE, UNKNOWN
from datahall.answers.reliability.sections import GOODPUT, UPKEEP
from datahall.answers.section import Words
from datahall.answers.supply.reach import REACH
from datahall.answers.supply.sections import STANDS, SUPPLY
from datahall.answers.training.beside import JOINING
from datahall.breakdown import Breakdown
from datahall.planner.plan import Plan

# by the name of a section's type: the rooms are loaded only where a plan has theirs
WORDS: dict[str, Words] = {
    "Goodput": GOODPUT,
    "Upkeep": UPKEEP,
    "TextNeed": TEXT,
    "WeightsNeed": WEIGHTS,
    "RunPower": RUN,
    "ServicePower": SERVICE,
    "UnknownPower": UNKNOWN,
    "ServiceCost": SERVICE_COST,
    "TrainingCost": RUN_COST,
    "Supplied": SUPPLY,
    "Stands": STANDS,
    "Reach": REACH,
    "Joining": JOINING,
}


def section_table(plan: Plan[Any], title: str) -> Table:
    """All of them, in the order in which they were added."""
    worded = [(WORDS[type(one).__name__], one) for one in plan.sections]
    notes = [words.note(section) for words, section in worded]
    return Table(
        title=title,
        columns=(Column("what"), Column("value"), Column("which is")),
        rows=tuple(row for words, section in worded for row in words.rows(section)),
        note="; ".join(note for note in notes if note),
    )


def section_figures(plan: Plan[Any]) -> tuple[Breakdown, ...]:
    """The chains behind them, one after the other."""
    return tuple(figure for section in plan.sections for figure in section.figures)


def section_results(plan: Plan[Any]) -> dict[str, Cell]:
    """The same as numbers."""
    found: dict[str, Cell] = {}
    for section in plan.sections:
        found |= WORDS[type(section).__name__].results(section)
    return found

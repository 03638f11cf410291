"""The shape of every plan: what was chosen and under which objective, what lost and why, what cannot be done at all.

A planner makes a candidate of its own kind (a layout on so many chips, a replica many times) and puts it into a `Plan`,
or into a struct that extends it with what only that planner knows:

    class TrainingPlan(Plan[Candidate], frozen=True, kw_only=True): ...

Rooms that come later (reliability, power, cost) append their part with `plan.with_section(...)`: a struct of their own,
found again by its type with `plan.section(Power)`.  A plan holds numbers; its words are made in `answers/`.
"""

from __future__ import annotations

from typing import Generic, Protocol, Self, TypeVar

import msgspec

from datahall.breakdown import Breakdown
from datahall.scenario.aims import AIM_ROWS, AimRow
from datahall.scenario.words import Aims

C = TypeVar("C")
S = TypeVar("S")


class Objective(msgspec.Struct, frozen=True):
    """What the chosen candidate has the least of."""

    name: Aims
    unit: str

    @property
    def row(self) -> AimRow:
        """What is said of it."""
        return AIM_ROWS[self.name]


def objective_of(name: Aims) -> Objective:
    """One that somebody may ask for."""
    return Objective(name, AIM_ROWS[name].unit)


LEAST_COST, FEWEST_CHIPS = objective_of("cost"), objective_of("chips")


class Alternative(msgspec.Struct, Generic[C], frozen=True):
    """A candidate that would do and was not chosen; a planner adds in numbers of its own how far it is from that."""

    candidate: C


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was weighed and cannot do it: what, why, and what would help; a planner may add its own fields."""

    what: str
    why: str
    hint: str = ""


class Section(Protocol):
    """What a room adds to a plan, a struct of `ROOM/sections/`; its words stand in `answers/sections.py`."""

    @property
    def figures(self) -> tuple[Breakdown, ...]:
        """The chains that its numbers are drawn from, which `explain` prints beside the plan's own."""
        ...


class Plan(msgspec.Struct, Generic[C], frozen=True, kw_only=True):
    """The best of all candidates under one objective, those that lost, those that cannot, and what later rooms add."""

    objective: Objective
    chosen: C
    alternatives: tuple[Alternative[C], ...] = ()  # best first
    refusals: tuple[Refusal, ...] = ()
    sections: tuple[Section, ...] = ()  # at most one of each type, in the order they were appended

    def with_section(self, section: Section) -> Self:
        """The plan with a room's part; one of the same type that was there gives way."""
        others = tuple(one for one in self.sections if type(one) is not type(section))
        return msgspec.structs.replace(self, sections=(*others, section))

    def section(self, kind: type[S]) -> S | None:
        """The part of that type, or None where no room has added it."""
        return next((one for one in self.sections if isinstance(one, kind)), None)

    def part(self, kind: type[S]) -> S:
        """The same of a room that has added it."""
        found = self.section(kind)
        assert found is not None
        return found

"""The shape of a plan: sections are found by their type, and one of a type gives way to the next."""

import msgspec

from datahall.breakdown import Breakdown
from datahall.planner.plan import Alternative, Objective, Plan, Refusal


class Power(msgspec.Struct, frozen=True):
    mean_w: float
    figures: tuple[Breakdown, ...] = ()


class Cost(msgspec.Struct, frozen=True):
    rent_usd: float
    figures: tuple[Breakdown, ...] = ()


PLAN: Plan[str] = Plan(
    objective=Objective("chips", "count"),
    chosen="8 chips",
    alternatives=(Alternative("16 chips"),),
    refusals=(Refusal(what="4 chips", why="too small"),),
)


def test_rooms_append_what_they_know_and_find_it_again() -> None:
    whole = PLAN.with_section(Power(5600.0)).with_section(Cost(30.0))
    assert whole.section(Power) == Power(5600.0)
    assert whole.section(Cost) == Cost(30.0)
    assert PLAN.section(Power) is None
    assert PLAN.sections == ()
    assert (whole.chosen, whole.objective) == (PLAN.chosen, PLAN.objective)


def test_a_section_gives_way_to_a_later_one_of_its_type() -> None:
    again = PLAN.with_section(Power(5600.0)).with_section(Cost(30.0)).with_section(Power(9.0))
    assert again.sections == (Cost(30.0), Power(9.0))


def test_a_planner_extends_it_and_keeps_its_type() -> None:
    class Own(Plan[str], frozen=True, kw_only=True):
        tokens: float

    own = Own(objective=Objective("time", "s"), chosen="tp 8", tokens=1e12).with_section(Power(1.0))
    assert isinstance(own, Own)
    assert own.tokens == 1e12

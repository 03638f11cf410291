"""What chips of another kind add to a training run, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datahall.answer import Cell, Quantity
from datahall.answers.section import Row, Words
from datahall.counted import counted
from datahall.units import fmt

if TYPE_CHECKING:
    from datahall.planner.training.plan import TrainingPlan
    from datahall.planner.training.sections.joining import Joining
    from datahall.training.mixed.joined import Joined


def joining_words(plan: TrainingPlan) -> str:
    """A sentence of the headline; nothing where no other chips were said."""
    from datahall.planner.training.sections.joining import Joining

    section = plan.section(Joining)
    if section is None:
        return ""
    if section.found is None or section.gain_ratio is None:
        return f" {_others(section)} cannot join: {section.why_not}."
    found = section.found
    step, even = fmt(found.step_s, "s", 3), fmt(found.even_s, "s", 3)
    if section.gain_ratio <= 1.0:
        return (
            f" {_others(section)} are better left idle: with them a step takes {step}, {_without(section)}."
        )
    faster = fmt(section.gain_ratio, "ratio")
    return (
        f" With {_others(section)} beside them a step takes {step} where the batch is split by speed, {faster} as fast "
        f"as without; split evenly {even}, {_without(section)}."
    )


def _others(section: Joining) -> str:
    return " and ".join(f"{count:,} × {name}" for name, count in section.others)


def _without(section: Joining) -> str:
    return f"{fmt(section.alone_s, 's', 3)} without them, all in closed form"


def _rows(section: Joining) -> tuple[Row, ...]:
    found = section.found
    if found is None or section.gain_ratio is None or section.even_gain_ratio is None:
        return (("a step with all of them", None, f"{_others(section)} cannot join: {section.why_not}"),)
    shares = ", ".join(f"{one.num_micro} of {one.chip}" for one in found.parts)
    return (
        (
            "a step with all of them",
            Quantity(found.step_s, "s"),
            f"{fmt(section.gain_ratio, 'ratio')} as fast as without: micro-batches of a replica by speed, {shares}; "
            f"{found.layout.words}",
        ),
        (
            "the batch split evenly",
            Quantity(found.even_s, "s"),
            f"{fmt(section.even_gain_ratio, 'ratio')} as fast as without: "
            f"{counted(found.num_even, 'micro-batch')} of every replica",
        ),
        (
            "exchange of all replicas",
            Quantity(found.data_s, "s"),
            "of that, on the slower network: "
            + ", ".join(f"{fmt(one.data_s, 's', 3)} on that of {one.chip}" for one in found.parts),
        ),
    )


def _results(section: Joining) -> dict[str, Cell]:
    found: Joined | None = section.found
    return {
        "joined_step_s": None if found is None else found.step_s,
        "joined_even_step_s": None if found is None else found.even_s,
        "joined_alone_step_s": section.alone_s,
        "joined_gain_ratio": section.gain_ratio,
    }


def _note(section: Joining) -> str:
    return (
        f"with {_others(section)}: in closed form, both kinds cut alike" if section.found is not None else ""
    )


JOINING = Words(_rows, _results, _note)

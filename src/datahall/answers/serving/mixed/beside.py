"""What a plan of one kind of chip says of a mixture that lost to it."""

from __future__ import annotations

from datahall.answers.serving.words import percent
from datahall.planner.serving.plan import ServingPlan


def beside_notes(plan: ServingPlan) -> tuple[str, ...]:
    """That a mixture takes more, or does not do; nothing where none was weighed."""
    mix, more = plan.mixture, plan.mixture_more_fraction
    if mix is None:
        return ()
    chips = " and ".join(
        f"{count:,} × {one.replica.chip.name}" for one, count in zip(mix.alone, mix.pool_chips, strict=True)
    )
    words = plan.objective.row.more
    if not mix.keeps:
        return (f"{chips} behind one router would not do: too few requests keep both limits when simulated",)
    if more is None:
        return (f"{chips} behind one router would do too; how much more {words} it takes is not known",)
    much = f"{percent(more)} more {words}" if percent(more) != percent(0.0) else f"as much {words}"
    return (f"{chips} behind one router would take {much}",)

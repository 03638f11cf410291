"""A training run on several fabrics side by side: how long it takes on each, and what its network draws and costs."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import msgspec

from datahall.answer import Answer, Cell, Column, Table
from datahall.answers.follow import follow
from datahall.planner.training.plan import OnFabric


def beside_others(answer: Answer, found: Sequence[OnFabric]) -> Answer:
    """The plan on the best of the fabrics, with all of them in front."""
    best, *others = found
    names = ", ".join(one.topology for one in others)
    return msgspec.structs.replace(
        answer,
        headline=f"On {best.topology}, beside {names}: {answer.headline}",
        results={"fabric": best.topology, **answer.results},
        tables=(fabrics_table(found), *answer.tables),
        notes=(*_own_chips(found), *answer.notes),
        next_commands=(
            *answer.next_commands,
            *(follow(one.scenario, "plan train") for one in others[:1] if one.plan is not None),
        ),
    )


def fabrics_table(found: Sequence[OnFabric]) -> Table:
    """The best plan on each."""
    return Table(
        title="the run on each fabric",
        columns=(
            Column("fabric"),
            Column("chips"),
            Column("layout"),
            Column("step", "s"),
            Column("with interruptions", "s", key="elapsed_s"),
            Column("network power", "w", key="network_w"),
            Column("network price", "usd", key="network_usd"),
        ),
        rows=tuple(map(_row, found)),
        marked=0,
        note="soonest done first, or fewest chips for a deadline, then the cheapest network; power and price: of what "
        "stands beyond the servers, as show fabric counts it; –: nothing does, or it is not known",
    )


def _row(one: OnFabric) -> tuple[Cell, ...]:
    plan, network = one.plan, one.network
    if plan is None:
        return one.topology, "", f"none: {one.why}", None, None, None, None
    return (
        one.topology,
        f"{plan.num_chips:,} × {plan.cluster.chip.name}",
        plan.layout.words,
        plan.step_s,
        plan.elapsed_s if plan.elapsed_s < inf else None,
        network.power.value if network is not None else None,
        network.price.value if network is not None else None,
    )


def _own_chips(found: Sequence[OnFabric]) -> tuple[str, ...]:
    """That fabrics brought chips of their own, so that more than the network differs."""
    chips = {one.plan.cluster.chip.name for one in found if one.plan is not None}
    if len(chips) < 2:
        return ()
    return ("each fabric is made of its usual chip: what differs is not the network alone",)

"""What a plan says of prompts and answers on replicas of their own, beside replicas that do both."""

from __future__ import annotations

from datahall.answer import Cell, Column, Table
from datahall.answers.serving.words import layout_words
from datahall.counted import counted
from datahall.inference.engine.replica import Replica
from datahall.planner.serving.apart import Apart
from datahall.planner.serving.plan import ServingPlan
from datahall.scenario.kinds import Plain
from datahall.units import fmt


def apart_words(plan: ServingPlan) -> str:
    """What prompts and answers on replicas of their own would take."""
    if not plan.is_weighed_apart:
        return ""
    if not plan.apart or not plan.apart[0].keeps:
        return " No replicas of their own for prompts and answers were found that keep the limits."
    least, more = plan.apart[0], plan.num_more_apart
    beside = "as many" if not more else f"{abs(more):,} {'more' if more > 0 else 'fewer'}"
    prompts, answers = least.pools
    return (
        f" With replicas of their own for prompts ({prompts:,}) and answers ({answers:,}) it takes "
        f"{least.num_chips:,} × {least.replica.chip.name}, {beside}."
    )


def apart_results(plan: ServingPlan) -> dict[str, Cell]:
    """What prompts and answers on replicas of their own take, where that was weighed."""
    if not plan.is_weighed_apart:
        return {}
    least = plan.apart[0] if plan.apart and plan.apart[0].keeps else None
    prompts, answers = least.pools if least is not None else (None, None)
    return {
        "num_chips_disaggregated": least.num_chips if least is not None else None,
        "num_prefill_replicas": prompts,
        "num_decode_replicas": answers,
    }


def apart_table(plan: ServingPlan) -> Table:
    """Prompts and answers on replicas of their own, beside the plan."""
    share = plan.demand.promise.percentile
    at = fmt(share, "percentile")
    spare = (
        f"; {counted(plan.chosen.num_spare, 'spare replica')} of each pool" if plan.chosen.num_spare else ""
    )
    return Table(
        title="prompts and answers on replicas of their own (disaggregated)",
        columns=(
            Column("chip"),
            Column("one replica"),
            Column("prompts + answers", key="pools"),
            Column("chips", "count"),
            Column("more than together", "count", key="num_more"),
            Column(f"TTFT {at}", "s", key="ttft_s"),
            Column(f"TPOT {at}", "s", key="tpot_s"),
        ),
        rows=tuple(
            (
                one.replica.chip.name,
                layout_words(one.replica, one.precision),
                " + ".join(f"{count:,}" for count in one.pools),
                one.num_chips,
                one.num_more,
                one.run.ttft_s(share),
                one.run.tpot_s(share),
            )
            for one in plan.apart
            if one.run is not None and one.keeps
        ),
        note="the least of each chip in closed form, both pools of one kind of group, as few as kept the limits when "
        f"simulated with the headroom used up; more: than the least of that chip whose replicas do both{spare}",
    )


def group_inputs(replica: Replica, precision: str) -> dict[str, Plain | None]:
    """A replica as a command has it."""
    degrees = {name: getattr(replica, name) for name in ("pp", "dp", "ep")}
    return {
        "chip": replica.chip.name,
        "tp": replica.tp,
        **{name: degree for name, degree in degrees.items() if degree > 1},
        "precision": precision,
    }


def apart_pools(way: Apart) -> dict[str, Plain | None]:
    """Pools for prompts and answers as a command has them."""
    prompts, answers = way.pools
    chip = way.replica.chip.name
    pools = f"prefill={prompts}x{chip},decode={answers}x{chip}"
    return {**group_inputs(way.replica, way.precision), "chip": None, "disaggregated": pools}

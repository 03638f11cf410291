"""The tables of a serving plan."""

from __future__ import annotations

from datahall.answer import Axis, Cell, Column, LineChart, Mark, Series, Table
from datahall.answers.serving.words import BINDS, layout_words, percent
from datahall.counted import counted
from datahall.inference.simulation.histogram import TPOT, TTFT
from datahall.planner.plan import FEWEST_CHIPS, Objective
from datahall.planner.serving.candidate import Proposal
from datahall.planner.serving.plan import Lost, ServingPlan
from datahall.planner.serving.refusal import Refused
from datahall.units import fmt

MOST_ROWS = 7


def chip_table(plan: ServingPlan) -> Table:
    """The best of each chip."""
    share = plan.demand.promise.percentile
    rows: list[tuple[Cell, ...]] = [
        (
            candidate.replica.chip.name,
            layout_words(candidate.replica, candidate.precision),
            candidate.num_deployed,
            candidate.num_chips,
            candidate.run.ttft_s(share),
            candidate.run.tpot_s(share),
            candidate.held.price.level,
        )
        for candidate in plan.best
    ]
    kept = {candidate.replica.chip.name for candidate in plan.best}
    refused = {
        refusal.chip: refusal
        for refusal in plan.refusals
        if isinstance(refusal, Refused) and refusal.chip not in kept
    }
    rows += [(name, f"none: {refusal.why}", None, None, None, None, "") for name, refusal in refused.items()]
    at = fmt(share, "percentile")
    return Table(
        title="the best of each chip",
        columns=(
            Column("chip"),
            Column("one replica"),
            Column("replicas", "count"),
            Column("chips", "count"),
            Column(f"TTFT {at}", "s", key="ttft_s"),
            Column(f"TPOT {at}", "s", key="tpot_s"),
            Column("kernels"),
        ),
        rows=tuple(rows),
        marked=0,
        note=f"{plan.objective.row.first}; latencies as simulated with the headroom used up{_spare(plan.chosen)}",
    )


def _spare(best: Proposal) -> str:
    """That some of the replicas are not needed."""
    return f" and {counted(best.num_spare, 'spare replica')} out" if best.num_spare else ""


def replica_table(plan: ServingPlan) -> Table:
    """What one replica of each holds."""
    return Table(
        title="what one replica holds",
        columns=(
            Column("chip"),
            Column("in limits [1/s]", "count", key="held_per_s"),
            Column("at most [1/s]", "count", key="most_per_s"),
            Column("sequences", "count"),
            Column("cache [tokens]", "count", key="cache_tokens"),
            Column("tokens/s a chip", "count", key="chip_output_tokens_per_s"),
            Column("binds"),
        ),
        rows=tuple(
            (
                candidate.replica.chip.name,
                candidate.held_per_s,
                candidate.held.most_per_s,
                candidate.num_decoding,
                candidate.held.cache_tokens,
                candidate.chip_output_tokens_per_s,
                _short_of(candidate),
            )
            for candidate in plan.best
        ),
        note=f"in limits: {_knees(plan)}; sequences: that decode at once there; cache: in sequences of the mean length",
    )


ADDED = (
    "what each got and kept when simulated with more or fewer replicas than that asks for, where the latency nearest "
    "its limit is named"
)


def think_table(plan: ServingPlan) -> Table:
    """What the same users ask for where they pause for longer, or not at all, between their answers."""
    return Table(
        title="chips at other think times",
        columns=(
            Column("think time", "s", key="think_s"),
            Column("requests/s", "count", key="requests_per_s"),
            Column("replicas", "count"),
            Column("chips", "count"),
        ),
        rows=tuple((one.think_s, one.rate_per_s, one.num_replicas, one.num_chips) for one in plan.paces),
        marked=next(place for place, one in enumerate(plan.paces) if one.is_asked),
        note="of the same users on the same replicas, in closed form from what one of those keeps",
    )


FOUND = "; above at most where caches found more of prompts than the closed form counts"


def _knees(plan: ServingPlan) -> str:
    """Where the rates within limits are from, and why one is above the most that the closed form has."""
    above = any(candidate.held_per_s > candidate.held.most_per_s for candidate in plan.best)
    return f"{_origins(plan)}{FOUND if above else ''}"


def _origins(plan: ServingPlan) -> str:
    """The closed form, or a run where that asked for more replicas."""
    at = fmt(plan.demand.promise.percentile, "percentile")
    knee = f"the knee, where one of the latencies reaches its limit at {at}"
    added = [candidate.replica.chip.name for candidate in plan.best if candidate.num_added]
    if not added:
        return f"{knee} in closed form"
    if len(added) == len(plan.best):
        return ADDED
    return f"{knee} in closed form; of {', '.join(added)} {ADDED}"


def _short_of(candidate: Proposal) -> str:
    """What binds: the cache where that is full, otherwise the resource that takes most of a step."""
    if candidate.binds in ("cache", "sequences", "budget"):
        return BINDS[candidate.binds]
    name, share = next(iter(candidate.resource_shares.items()))
    return f"{candidate.binds}: {name} {percent(share)}"


UNSTABLE = "–: in closed form so few do not hold the load"


def crosscheck_table(plan: ServingPlan) -> Table:
    """What was simulated beside the closed form."""
    rows: list[tuple[Cell, ...]] = []
    for candidate in plan.best:
        state = candidate.full_state
        rows.append(
            (
                candidate.replica.chip.name,
                candidate.run.mean_s(TTFT),
                state.ttft_s if state.stable else None,
                candidate.run.mean_s(TPOT),
                state.tpot_s if candidate.demand.load.streams and state.stable else None,
                candidate.run.good_fraction,
                candidate.num_added,
            )
        )
    return Table(
        title="simulated event by event, and in closed form",
        columns=(
            Column("chip"),
            Column("TTFT simulated", "s", key="ttft_s"),
            Column("closed form", "s", key="closed_ttft_s"),
            Column("TPOT simulated", "s", key="tpot_s"),
            Column("closed form", "s", key="closed_tpot_s"),
            Column("keep both", "fraction", key="good_fraction"),
            Column("replicas added", "count", key="num_added"),
        ),
        rows=tuple(rows),
        note="means; replicas were added where too few requests kept both limits, and taken away where both left room"
        + ("" if all(one.full_state.stable for one in plan.best) else f"; {UNSTABLE}"),
    )


def lost_table(plan: ServingPlan) -> Table:
    """Ways that keep the limits and are not the best of their chip."""
    refused = len(plan.refusals)
    return Table(
        title="alternatives",
        columns=(Column("chip"), Column("one replica"), Column("chips", "count"), Column("why it lost")),
        rows=tuple(
            (
                lost.candidate.replica.chip.name,
                layout_words(lost.candidate.replica, lost.candidate.precision),
                lost.candidate.num_chips,
                _why(lost, plan.objective),
            )
            for lost in plan.alternatives[:MOST_ROWS]
        ),
        note=(
            f"{counted(plan.num_candidates, 'way')} {'keeps' if plan.num_candidates == 1 else 'keep'} the limits, "
            f"{refused:,} {'does' if refused == 1 else 'do'} not; chips in closed form: those that could do with fewer "
            "than the best were simulated with fewer, and did not keep them"
        ),
    )


def _why(lost: Lost, objective: Objective) -> str:
    """Why a candidate lost to the best of its chip."""
    more, by_chips = lost.more_fraction, objective == FEWEST_CHIPS
    if by_chips or more is None:
        why = counted(lost.num_more, "more chip") if lost.num_more else "as many chips"
        less = lost.num_more < 0
    else:
        some = percent(more) != percent(0.0)
        why = f"{percent(more)} more {objective.row.more}" if some else f"as much {objective.row.more}"
        less = more < 0
    if less:
        why = (
            f"{'fewer' if by_chips else 'less'} {objective.row.more} in closed form, but more when simulated"
        )
    state, streams = lost.candidate.state, lost.candidate.demand.load.streams
    name, latency_s = ("TPOT", state.tpot_high_s) if streams else ("TTFT", state.ttft_high_s)
    return f"{why}, {name} {fmt(latency_s, 's', 3)}"


def load_chart(plan: ServingPlan) -> LineChart:
    """TPOT over load in closed form, up to a few times the limit, beyond which the queue grows; knees stand on it.

    Where simulation added replicas, so does what was kept then.
    """
    promise = plan.demand.promise
    at = fmt(promise.percentile, "percentile")
    series = []
    for candidate in plan.best:
        points = candidate.load_curve
        series.append(
            Series(candidate.replica.chip.name, tuple(x for x, _ in points), tuple(y for _, y in points))
        )
    furthest = max(max(line.x, default=0.0) for line in series)
    series.append(Series("limit", (0.0, furthest), (promise.tpot_s, promise.tpot_s), dashed=True))
    knees = [Mark(f"knee, {one.replica.chip.name}", one.knee_chip_per_s) for one in plan.best]
    kept = [
        Mark(f"simulated, {one.replica.chip.name}", one.held_chip_per_s) for one in plan.best if one.num_added
    ]
    return LineChart(
        title=f"time per token at {at} as a chip is loaded, in closed form",
        x=Axis("requests/s a chip"),
        y=Axis(f"TPOT {at}", "s"),
        series=tuple(series),
        marks=(*knees, *kept),
    )

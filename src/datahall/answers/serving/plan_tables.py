"""The tables of a serving plan."""

from __future__ import annotations

from datahall.answer import Axis, Cell, Column, LineChart, Mark, Series, Table
from datahall.answers.serving.words import BINDS, layout_words
from datahall.inference.closed_form.bottleneck import mean_step, resource_shares
from datahall.inference.simulation.lifecycle import TPOT, TTFT
from datahall.planner.serve import Choice, Confirmed, ServingPlan
from datahall.units import fmt

MOST_ROWS = 7
TIMES_LIMIT = 2.5  # of the chart


def chip_table(plan: ServingPlan, played: tuple[Confirmed, ...]) -> Table:
    """The least of each chip."""
    share = plan.demand.slo.percentile
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            one.choice.replica.chip.name,
            layout_words(one.choice.replica, one.choice.precision),
            one.choice.num_replicas,
            one.choice.num_chips,
            one.run.ttft_s(share),
            one.run.tpot_s(share),
            one.choice.carried.price.level,
        )
        for one in played
    )
    refused = {one.replica.chip.name: one for one in plan.refused}
    kept = {one.choice.replica.chip.name for one in played}
    rows += tuple(
        (name, f"none: {one.why}", None, None, None, None, "")
        for name, one in refused.items()
        if name not in kept
    )
    at = f"P{share * 100:g}"
    return Table(
        title="the least of each chip",
        columns=(
            Column("chip"),
            Column("one replica"),
            Column("replicas", "count"),
            Column("chips", "count"),
            Column(f"TTFT {at}", "s", key="ttft_s"),
            Column(f"TPOT {at}", "s", key="tpot_s"),
            Column("kernels"),
        ),
        rows=rows,
        marked=0,
        note="fewest chips first; latencies as played with the headroom used up; what chips cost is not weighed",
    )


def replica_table(played: tuple[Confirmed, ...]) -> Table:
    """What one replica of each carries."""
    return Table(
        title="what one replica carries, and the knee",
        columns=(
            Column("chip"),
            Column("promised [1/s]", "count", key="promised_per_s"),
            Column("at most [1/s]", "count", key="most_per_s"),
            Column("sequences", "count"),
            Column("cache [tokens]", "count", key="cache_tokens"),
            Column("tokens/s a chip", "count", key="chip_output_tokens_per_s"),
            Column("binds"),
        ),
        rows=tuple(
            (
                one.replica.chip.name,
                round(one.carried.rate_per_s, 3),
                round(one.carried.most_per_s, 3),
                round(one.carried.state.decoding * one.replica.dp, 1),
                int(one.carried.capacity.tokens) * one.replica.dp,
                round(one.output_tokens_per_s, 1),
                _short_of(one),
            )
            for one in (each.choice for each in played)
        ),
        note="promised: the knee, where one of the limits is reached; sequences: that decode at once there",
    )


def _short_of(one: Choice) -> str:
    """What binds: the cache where that is full, otherwise the resource that takes most of a step."""
    held = one.carried
    if held.ends in ("cache", "sequences", "budget"):
        return BINDS[held.ends]
    name, share = next(iter(resource_shares(mean_step(held.replica, held.load, held.state)).items()))
    return f"{held.ends}: {name} {share:.0%}"


def crosscheck_table(played: tuple[Confirmed, ...], headroom: float) -> Table:
    """What was played beside the closed form."""

    def row(one: Confirmed) -> tuple[Cell, ...]:
        demand = one.choice.demand
        state = one.choice.carried.at(demand.rate_per_s / (1.0 - headroom) / one.choice.num_replicas)
        return (
            one.choice.replica.chip.name,
            one.run.mean_s(TTFT),
            state.ttft_s,
            one.run.mean_s(TPOT),
            state.tpot_s,
            one.run.good_fraction,
            one.num_added,
        )

    return Table(
        title="played event by event, and in closed form",
        columns=(
            Column("chip"),
            Column("TTFT played", "s", key="ttft_s"),
            Column("closed form", "s", key="closed_ttft_s"),
            Column("TPOT played", "s", key="tpot_s"),
            Column("closed form", "s", key="closed_tpot_s"),
            Column("keep both", "fraction", key="good_fraction"),
            Column("replicas added", "count", key="num_added"),
        ),
        rows=tuple(row(one) for one in played),
        note="means; replicas were added where fewer requests than promised kept both limits",
    )


def lost_table(plan: ServingPlan, played: tuple[Confirmed, ...]) -> Table:
    """Ways that keep the promise with more chips."""
    least = {one.choice.replica.chip.name: one.choice.num_chips for one in played}
    chosen = {
        (one.choice.replica.chip.name, layout_words(one.choice.replica, one.choice.precision))
        for one in played
    }
    lost = [
        one
        for one in (*plan.choices, *plan.others)
        if (one.replica.chip.name, layout_words(one.replica, one.precision)) not in chosen
    ]
    return Table(
        title="ways that lost",
        columns=(Column("chip"), Column("one replica"), Column("chips", "count"), Column("why it lost")),
        rows=tuple(
            (
                one.replica.chip.name,
                layout_words(one.replica, one.precision),
                one.num_chips,
                _why(one, least[one.replica.chip.name]),
            )
            for one in lost[:MOST_ROWS]
        ),
        note=f"{len(plan.others) + len(plan.choices):,} ways keep the promise, {len(plan.refused):,} do not",
    )


def _why(one: Choice, least: int) -> str:
    if one.num_chips < least:
        return "fewer in closed form, but more when played"
    more = f"{one.num_chips - least:+,} chips" if one.num_chips > least else "as many chips"
    return f"{more}, TPOT {fmt(one.state.tpot_high_s, 's', 3)}"


def load_chart(played: tuple[Confirmed, ...]) -> LineChart:
    """Time per token over load, up to a few times the limit: beyond it the queue grows."""
    series, choices = [], [one.choice for one in played]
    limit_s = choices[0].demand.slo.tpot_s
    for one in choices:
        found, ranks = one.carried.curve, one.replica.dp
        shown = found.tpot_s <= TIMES_LIMIT * limit_s
        per_chip = found.rate_per_s[shown] * ranks / one.replica.num_chips
        series.append(
            Series(one.replica.chip.name, tuple(map(float, per_chip)), tuple(map(float, found.tpot_s[shown])))
        )
    furthest = max(max(one.x, default=0.0) for one in series)
    series.append(Series("limit", (0.0, furthest), (limit_s, limit_s), dashed=True))
    return LineChart(
        title="time per token as a chip is loaded",
        x=Axis("requests/s a chip"),
        y=Axis("TPOT", "s"),
        series=tuple(series),
        marks=tuple(
            Mark(f"knee, {one.replica.chip.name}", one.carried.rate_per_s / one.replica.num_chips)
            for one in choices
        ),
    )

"""The ladder of serving as tables: alone, together, what changes the answers, and what stands behind some of them."""

from __future__ import annotations

from math import isfinite

from datahall.answer import Cell, Column, Table
from datahall.inference.ladder.techniques import Effect
from datahall.planner.serving.ladder.question import Climbed
from datahall.units import fmt

COST = Column("1M output tokens", "usd", key="million_tokens_usd")
COLUMNS = (
    Column("technique"),
    Column("held by a chip [1/s]", "count", key="chip_requests_per_s"),
    Column("gain", "ratio"),
    Column("mean TTFT", "s", key="ttft_s"),
    Column("mean TPOT", "s", key="tpot_s"),
    COST,
    Column("remark", aside=True),
)


def alone_table(found: Climbed) -> Table:
    """Without what an engine has, as it is, and with each technique alone."""
    steps, promise = found.ladder, found.ladder.promise
    at = fmt(promise.percentile, "percentile")
    limits = f"TTFT ≤ {fmt(promise.ttft_s, 's')} and TPOT ≤ {fmt(promise.tpot_s, 's')} at {at}"
    rows = (*steps.without, steps.reference, *steps.alone)
    return Table(
        title="alone",
        columns=COLUMNS,
        rows=tuple(_row(row, found) for row in rows),
        marked=len(steps.without),
        note=f"times at {steps.rate_per_s:,.10g} requests/s a replica; held: {limits}",
    )


def together_table(found: Climbed) -> Table:
    """The best technique, and then the best beside it."""
    return Table(
        title="together, the best next",
        columns=COLUMNS,
        rows=tuple(_row(row, found) for row in found.ladder.together),
    )


def lighter_table(found: Climbed) -> Table:
    """What is answered from less, or by less."""
    return Table(
        title="what changes the answers, each alone",
        columns=COLUMNS,
        rows=tuple(_row(row, found) for row in found.ladder.lighter),
        note="nothing here is counted as a better or a worse answer",
    )


def routed_tables(found: Climbed) -> tuple[Table, ...]:
    """Two models, by the share of the requests that the smaller one answers."""
    steps = found.ladder
    if steps.small is None:
        return ()
    rows = tuple(
        (
            one.easy_fraction, one.held_per_s, steps.gain_of(one), _known(one.ttft_s), _known(one.e2e_s),
            found.million_usd(one.held_per_s),
        )
        for one in steps.routed
    )  # fmt: skip
    return (
        Table(
            title=f"easy requests to {steps.small.replica.model.title or steps.small.replica.model.name}",
            columns=(
                Column("share", "fraction", key="easy_fraction"),
                Column("held by a chip [1/s]", "count", key="chip_requests_per_s"),
                Column("gain", "ratio"),
                Column("mean TTFT", "s", key="ttft_s"),
                Column("mean E2E", "s", key="e2e_s"),
                COST,
            ),
            rows=rows,
            note="each model on chips of its own, as many as its requests need",
        ),
    )


def tiers_tables(found: Climbed) -> tuple[Table, ...]:
    """What caches find of conversations, tier below tier; nothing where no request is a turn of one."""
    if not found.tiers:
        return ()
    return (
        Table(
            title="what is found of conversations",
            columns=(
                Column("cache"),
                Column("room", "bytes", key="size_bytes"),
                Column("found", "fraction"),
                Column("below the chips", "fraction", key="below_fraction"),
                Column("lifted in", "s", key="lifted_s"),
                Column("held by a chip [1/s]", "count", key="chip_requests_per_s"),
                Column("gain", "ratio"),
                Column("mean TTFT", "s", key="ttft_s"),
                COST,
            ),
            rows=tuple(
                (
                    one.name, _known(one.size_bytes), _known(one.found_fraction), _known(one.below_fraction),
                    _known(one.lifted_s), one.held_per_s, found.tier_gain(one),
                    _known(one.ttft_s), found.million_usd(one.held_per_s),
                )
                for one in found.tiers
            ),
            note="shares and times at the rate asked; what is held finds less, for more comes into the same room",
        ),
    )  # fmt: skip


def places_tables(found: Climbed) -> tuple[Table, ...]:
    """The cache of a rank divided in pages or not; nothing where layers keep no more than they fill."""
    places = found.ladder.places
    if not places:
        return ()
    return (
        Table(
            title="sequences that the cache of a rank has a place for",
            columns=(
                Column("set aside"),
                Column("sequences", "count"),
                Column("holds tokens", "fraction", key="used_fraction"),
            ),
            rows=tuple((one.way, float(int(one.num_sequences)), one.used_fraction) for one in places),
            note="of the mean length, of which half of the answer is there",
        ),
    )


def fading_table(found: Climbed) -> Table:
    """Speculation and graphs, by how many sequences decode."""
    launching = dict(found.ladder.graphs_ratio)
    return Table(
        title="as the batch grows",
        columns=(
            Column("sequences", "count"),
            Column("speculation", "ratio"),
            *((Column("graphs", "ratio"),) if launching else ()),
        ),
        rows=tuple(
            (batch, gain, *((launching[batch],) if launching else ()))
            for batch, gain in found.ladder.speculation_ratio
        ),
        note="times as fast as without",
    )


def _known(value: float) -> float | None:
    return value if isfinite(value) else None


def _row(effect: Effect, found: Climbed) -> tuple[Cell, ...]:
    return (
        effect.title,
        _known(effect.held_per_s),
        _known(found.ladder.gain_of(effect)),
        _known(effect.ttft_s),
        _known(effect.tpot_s),
        found.million_usd(effect.held_per_s),
        effect.note,
    )

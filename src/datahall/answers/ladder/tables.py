"""The ladder of training as tables: rung on rung, each alone, and what changes what a step learns."""

from __future__ import annotations

from datahall.answer import Cell, Column, StackChart, Table
from datahall.planner.training.ladder.question import Climbed
from datahall.training.ladder.climb import Effect, Step
from datahall.training.ladder.published import seen_of
from datahall.training.ladder.sites import Apart, SiteStep
from datahall.training.pipeline.execution import OF_WHICH, PART_NAMES
from datahall.units import fmt

LOCAL = "local steps"
UNSEEN = "nothing was found that says what it does to learning"


def together_table(found: Climbed) -> Table:
    """Each rung on top of those that were kept."""
    ladder = found.ladder
    rows = [_row("as plain as can be", ladder.plain, found, None, "", _start(found))]
    for step in ladder.together:
        kept = "taken back" if step.taken_back else "kept" if step.kept else "left"
        name = f"without {step.rung.name} again" if step.taken_back else step.rung.name
        rows.append(_row(name, step.effect, found, step.gain, kept, _remark(step)))
    return Table(
        title="one on top of the other",
        columns=(
            Column("technique"),
            Column("step", "s"),
            Column("faster", "ratio"),
            Column("MFU", "fraction"),
            Column("a chip holds", "bytes", key="memory_bytes"),
            Column("free", "bytes", key="headroom_bytes"),
            _cost(found),
            Column("kept"),
            Column("remark", aside=True),
        ),
        rows=tuple(rows),
        marked=max((place for place, step in enumerate(ladder.together, 1) if step.kept), default=0),
        note="kept: a shorter step or, by ZeRO and recomputation, less memory lacked; what follows stands on it",
    )


def _cost(found: Climbed) -> Column:
    return Column(f"{fmt(found.num_tokens, 'tokens')} cost", "usd", key="cost_usd")


def _start(found: Climbed) -> str:
    """What the plainest job is without."""
    plain = found.ladder.plain.setting
    kernels = "eager kernels" if plain.eager else "kernels as fitted"
    return f"{plain.job.precision.weights}, {kernels}, scores written, nothing hidden, nothing shared"


def _row(
    name: str, effect: Effect | None, found: Climbed, gain: float | None, kept: str, remark: str
) -> tuple[Cell, ...]:
    if effect is None:
        return (name, None, None, None, None, None, None, kept, remark)
    return (
        name,
        effect.step_s,
        gain,
        effect.run.mfu_fraction,
        effect.memory_bytes,
        effect.headroom_bytes,
        found.cost_usd(effect.step_s),
        kept,
        remark,
    )


def _remark(step: Step) -> str:
    """What a rung does, or why it is of no use here."""
    if step.effect is None:
        return step.why_not
    if step.taken_back:
        return "with what was kept after it, it is not needed"
    if step.kept:
        return step.rung.does
    slower = step.slower_fraction
    does = f"{step.rung.does}: {fmt(slower, 'fraction')} slower" if slower else f"{step.rung.does}: as fast"
    return f"{does}, {'and what is above fits without' if step.on.fits else 'and a chip lacks as much'}"


def alone_table(found: Climbed) -> Table:
    """Each rung alone, and the top without it."""
    lost = {step.rung.name: step.longer for step in found.ladder.without}
    rows = tuple(
        (
            step.rung.name,
            step.effect.step_s if step.effect is not None else None,
            step.gain,
            lost.get(step.rung.name),
            step.more_bytes,
            step.why_not or step.rung.does,
        )
        for step in found.ladder.alone
    )
    return Table(
        title="each alone on the plainest, and all that was kept without it",
        columns=(
            Column("technique"),
            Column("step", "s"),
            Column("faster alone", "ratio"),
            Column("longer without", "ratio"),
            Column("memory more", "bytes"),
            Column("remark", aside=True),
        ),
        rows=rows,
        note="without a format or a stage of ZeRO: nor those that go on from it",
    )


def learning_table(found: Climbed) -> Table:
    """What changes the gradients that are summed, or when: each on top of all that was kept."""
    rows = [
        (
            step.rung.name,
            step.effect.step_s if step.effect is not None else None,
            step.gain,
            step.fewer_bytes,
            step.more_bytes,
            found.cost_usd(step.effect.step_s) if step.effect is not None else None,
            "; ".join((*((step.why_not,) if step.why_not else ()), _seen(step.rung.name))),
        )
        for step in found.ladder.compressed
    ]
    return Table(
        title="what changes what a step learns, on top of all that was kept",
        columns=(
            Column("technique"),
            Column("step", "s"),
            Column("faster", "ratio"),
            Column("fewer bytes", "ratio"),
            Column("memory more", "bytes"),
            _cost(found),
            Column("published", aside=True),
        ),
        rows=(*rows, *_site_rows(found, found.sites)),
        note="no step is counted as better or worse than another: what was published of learning stands beside each",
    )


def _site_rows(found: Climbed, apart: Apart) -> list[tuple[Cell, ...]]:
    num = f"{apart.asked.num_sites:,} sites"
    local = f"{num}, {apart.asked.local_steps:,} {LOCAL}"
    rows = ((f"{num}, every step", apart.synchronous, "exact"), (local, apart.local, _seen(LOCAL)))
    return [_site_row(found, name, step, seen) for name, step, seen in rows]


def _site_row(found: Climbed, name: str, step: SiteStep | None, seen: str) -> tuple[Cell, ...]:
    if step is None:
        return (name, None, None, None, None, None, found.sites.why_not)
    lacks = f"{fmt(step.missing_bytes, 'bytes', 3)} are missing on a chip; " if not step.fits else ""
    return (
        name,
        step.step_s,
        step.gain,
        float(step.num_between) if step.num_between > 1 else None,
        step.more_bytes,
        found.cost_usd(step.step_s),
        f"{lacks}{fmt(step.exchange.value, 's', 3)} for an exchange, {fmt(step.busy_fraction, 'fraction')} of the "
        f"time at work; {seen}",
    )


def _seen(name: str) -> str:
    return "; ".join(one.named for one in seen_of(name)) or UNSEEN


def parts_chart(found: Climbed) -> StackChart:
    """The step on each rung that was kept, by its parts."""
    kept = [("plainest", found.ladder.plain)]
    kept += [
        (f"+ {step.rung.name}", step.effect) for step in found.ladder.together if step.kept and step.effect
    ]
    parts = {
        text: tuple(float(getattr(effect.run.parts, name)) for _, effect in kept)
        for name, text in PART_NAMES.items()
        if name not in OF_WHICH
    }
    return StackChart(
        title="a step, rung by rung",
        unit="s",
        rows=tuple(name for name, _ in kept),
        parts={text: values for text, values in parts.items() if any(values)},
    )

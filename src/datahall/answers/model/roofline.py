"""A forward pass on one chip, operator by operator: time, what binds, intensity, efficiency."""

from __future__ import annotations

from contextlib import suppress
from math import isfinite, nan

from datahall.answer import Answer, Cell, Column, Point, RooflineChart, Table
from datahall.answers.context import context_notes
from datahall.answers.follow import explained, follow, our_error
from datahall.catalog.number_formats import unit_for
from datahall.counted import counted
from datahall.errors import UnsupportedError
from datahall.inference.memory.figure import shortage_figure
from datahall.inference.step.one_pass import OnePass, OperatorShare, pass_of
from datahall.scenario.scenario import Scenario
from datahall.scenario.words import LEVEL_OF
from datahall.silicon.kernel import scalar
from datahall.units import fmt, short

_BINDS = {"memory": "Memory bandwidth", "compute": "Arithmetic", "launch": "The gap between kernels"}


def show_roofline(scenario: Scenario) -> Answer:
    """Where the time of one forward pass goes on one chip, and how far each operator is from the roofline.

    Prefill runs prompts of the context; decode adds one token to each of the sequences that hold it.
    """
    asked = pass_of(scenario)
    return _timed(scenario, asked) if asked.fits else _refused(scenario, asked)


def _timed(scenario: Scenario, asked: OnePass) -> Answer:
    other = "prefill" if asked.phase == "decode" else "decode"
    return Answer(
        kind="roofline",
        inputs={"level": LEVEL_OF[asked.times.level]},
        headline=_headline(asked),
        binding=_binding(asked),
        results=_results(asked),
        tables=(_table(asked),),
        figure=asked.figure,
        charts=(_chart(asked),),
        notes=_notes(asked),
        next_commands=(
            follow(scenario, tail="-o roofline.html"),
            explained(follow(scenario)),
            follow(scenario, changes={"phase": other}),
            our_error(scenario, "kernels"),
        ),
    )


def _refused(scenario: Scenario, asked: OnePass) -> Answer:
    """What does not fit has no speed: what is missing, and where the time would go if it were there."""
    tables: tuple[Table, ...] = ()
    with suppress(UnsupportedError):
        tables = (_table(asked, ", if there were room for it"),)
    return Answer(
        kind="roofline",
        headline=_too_large(asked),
        verdict="no",
        binding=_way_out(asked),
        results=_missing(asked),
        tables=tables,
        figure=shortage_figure(asked.fit, asked.batch),
        notes=(
            "room is made by more chips that share the layers, fewer or shorter sequences, or a narrower precision",
            *context_notes(asked.model, asked.context),
        ),
        next_commands=(
            follow(scenario, "show fit"),
            follow(scenario, "show model", {"chips": [asked.chip.name]}),
            explained(follow(scenario)),
        ),
    )


def _sequences(asked: OnePass) -> str:
    return counted(asked.batch, "sequence")


def _machine(asked: OnePass) -> str:
    return asked.chip.title if asked.tp == 1 else f"{asked.tp} × {asked.chip.title}"


def _headline(asked: OnePass) -> str:
    work, timed = "after" if asked.phase == "decode" else "of", asked.figure
    assert timed.band is not None
    return (
        f"One {asked.step} of {asked.model.title} ({_sequences(asked)} {work} {counted(asked.context, 'token')}, "
        f"{asked.precision}) on {_machine(asked)} takes {fmt(timed.value, 's', 3)} "
        f"({fmt(timed.band.low, 's', 3)} to {fmt(timed.band.high, 's', 3)}): {asked.tokens_per_s:,.0f} tokens/s."
    )


def _too_large(asked: OnePass) -> str:
    fit, each = asked.fit, " on each" if asked.tp > 1 else ""
    held, missing = (
        fmt(size, "bytes") for size in (fit.held_bytes(asked.batch), fit.missing_bytes(asked.batch))
    )
    usable = f"{fmt(fit.usable_bytes, 'bytes')} are" if fit.usable_bytes > 0 else "nothing is"
    return (
        f"{asked.model.title} in {asked.precision} does not fit on {_machine(asked)}: weights and the cache of "
        f"{_sequences(asked)} of {counted(asked.context, 'token')} take {held}{each}, {usable} usable, "
        f"{missing} are missing."
    )


def _way_out(asked: OnePass) -> str:
    if asked.fit.usable_bytes <= 0:
        return "Memory binds: the engine's activations and buffers alone take more than a chip has."
    if asked.fit.free_bytes <= 0:
        times = short(asked.fit.weight_fraction)
        return f"Memory binds: the weights alone take {times} times what is usable."
    cache = fmt(asked.fit.cache_bytes(asked.batch), "bytes")
    return f"Memory binds: the weights fit, the cache of {cache} beside them does not."


def _missing(asked: OnePass) -> dict[str, Cell]:
    fit = asked.fit
    return {
        "missing_bytes": fit.missing_bytes(asked.batch),
        "held_bytes": fit.held_bytes(asked.batch),
        "usable_bytes": fit.usable_bytes,
        "weight_bytes": fit.weight_bytes,
        "kv_cache_bytes": fit.cache_bytes(asked.batch),
    }


def _binding(asked: OnePass) -> str:
    bound, share = max(asked.times.shares().items(), key=lambda pair: pair[1])
    heaviest = asked.heaviest
    name, its = heaviest.kernel.operator.name.replace("_", " "), heaviest.share_fraction
    return (
        f"{_BINDS[bound]} binds for {_percent(share)} of the time; the largest part is {name} ({_percent(its)}). "
        f"The datasheet's roofline allows {fmt(asked.times.roofline_s, 's', 3)}, an efficiency of "
        f"{_percent(asked.roofline_fraction)}."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _results(asked: OnePass) -> dict[str, Cell]:
    times, timed = asked.times, asked.figure
    assert timed.band is not None
    return {
        "pass_s": timed.value,
        "pass_low_s": timed.band.low,
        "pass_high_s": timed.band.high,
        "roofline_s": times.roofline_s,
        "tokens_per_s": asked.tokens_per_s,
        "level": times.level,
        **{f"{bound}_bound_fraction": share for bound, share in times.shares().items()},
    }


def _table(asked: OnePass, condition: str = "") -> Table:
    columns = (
        Column("operator"),
        Column("runs", "count", "num_runs"),
        Column("time", "s"),
        Column("share", "fraction"),
        Column("bound"),
        Column("intensity", "flop_per_byte"),
        Column("efficiency", "fraction"),
    )
    return Table(
        title=f"operators of one {asked.step}{condition}",
        columns=columns,
        rows=tuple(_row(one) for one in asked.operators),
        marked=asked.times.heaviest,
        note="Time is of all runs. Efficiency is its least over predicted time, with what L2 keeps read there.",
    )


def _row(one: OperatorShare) -> tuple[Cell, ...]:
    kernel = one.kernel
    return (
        kernel.operator.name.replace("_", " "),
        int(kernel.operator.count),
        one.total_s,
        one.share_fraction,
        kernel.bound,
        scalar(kernel.operator.intensity_flop_per_byte) or None,
        one.efficiency_fraction,
    )


def _chart(asked: OnePass) -> RooflineChart:
    chip, counted = asked.chip, [one for one in asked.operators if one.is_counted]
    used = dict.fromkeys(unit_for(one.kernel.operator.precision) for one in counted)
    slopes = {chip.memory_type or "memory": chip.memory_bytes_per_s}
    cache = next((level.bytes_per_s for level in chip.levels if level.name == "l2"), nan)
    if isfinite(cache):
        slopes["L2"] = cache
    return RooflineChart(
        title=f"roofline of {chip.title}, {asked.step}",
        roofs={
            f"{name.upper()} dense": chip.peak_flop_per_s[name]
            for name in used
            if name in chip.peak_flop_per_s
        },
        slopes=slopes,
        points=tuple(_point(one) for one in counted),
        note=(
            "One point per operator; its area is its share of the time. Norms, rotations and other work without "
            f"counted arithmetic take {100 * asked.uncounted_fraction:.1f} % and are not drawn."
        ),
    )


def _point(one: OperatorShare) -> Point:
    kernel, rate = one.kernel, one.flop_per_s
    note = (
        f"{100 * one.share_fraction:.1f} % of the time, {fmt(scalar(kernel.time_s), 's', 3)} each, "
        f"{fmt(rate, 'flop_per_s', 3)}, {kernel.bound}-bound"
    )
    intensity = scalar(kernel.operator.intensity_flop_per_byte)
    return Point(
        kernel.operator.name.replace("_", " "), intensity, rate, kernel.bound, one.share_fraction, note
    )


def _notes(asked: OnePass) -> tuple[str, ...]:
    times = asked.times
    fitted_on = times.calibration.constants.fitted_on
    lines = [f"level: {times.level}; the range holds eight of ten measurements ({fitted_on})"]
    if asked.tp > 1:
        lines.append(f"one chip's share of {asked.tp}; the exchange between them is not in it")
    lines.append(
        "kernels launched one by one from the host"
        if asked.eager
        else "kernels replayed as one graph, which an eager pass does without"
    )
    if asked.block_scaled:
        lines.append("its FP8 weights have a scale per block, as its checkpoint is published")
    return (*lines, *context_notes(asked.model, asked.context))

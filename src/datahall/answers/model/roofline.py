"""A forward pass on one chip, operator by operator: time, what binds, intensity, efficiency."""

from __future__ import annotations

from math import isfinite, nan

import msgspec

from datahall.answer import Answer, Cell, Column, Point, RooflineChart, Table
from datahall.answers.follow import explained, follow
from datahall.breakdown import Breakdown
from datahall.catalog.entries.chip import Chip, canonical_precision
from datahall.catalog.entries.model import Model
from datahall.errors import UnsupportedError
from datahall.inference.memory.room import shortage_figure
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import Deployment
from datahall.scenario.sections.views import Pass, Sequences
from datahall.silicon.figure import pass_figure
from datahall.silicon.kernel import KernelTime, PassTimes, scalar, time_operators
from datahall.units import fmt
from datahall.workload.forward import forward_pass
from datahall.workload.memory.figure import derived_from, memory_figure
from datahall.workload.precision import Precision, block_scaled
from datahall.workload.sharding import Sharding

_BINDS = {"memory": "Memory bandwidth", "compute": "Arithmetic", "launch": "The gap between kernels"}


def show_roofline(scenario: Scenario) -> Answer:
    """Where the time of one forward pass goes on one chip, and how far each operator is from the roofline.

    Prefill runs prompts of the context; decode adds one token to each of the sequences that hold it.
    """
    asked = _asked(scenario)
    with scenario.at(field="tp"):
        Sharding(tp=float(asked.tp)).check(asked.model)
    held = memory_figure(
        asked.model, asked.formats, name="weights and cache on each chip", context=asked.context, batch=asked.batch,
        tp=asked.tp,
    )  # fmt: skip
    short = shortage_figure(held, asked.chip)
    return _timed(scenario, asked) if short.value <= 0 else _refused(scenario, asked, short)


def _timed(scenario: Scenario, asked: _Asked) -> Answer:
    times = _times(asked)
    figure = pass_figure(f"one {asked.step} on {asked.chip.name}", times, derived_from(asked.model))
    other = "prefill" if asked.phase == "decode" else "decode"
    return Answer(
        kind="roofline",
        headline=_headline(asked, figure),
        binding=_binding(times, figure),
        results=_results(asked, times, figure),
        tables=(_table(times, asked),),
        figure=figure,
        charts=(_chart(times, asked),),
        notes=_notes(asked, times),
        next_commands=(
            follow(scenario, tail="-o roofline.html"),
            explained(follow(scenario)),
            follow(scenario, changes={"phase": other}),
            follow(scenario, "validate", {"domain": "kernels"}),
        ),
    )


def _refused(scenario: Scenario, asked: _Asked, short: Breakdown) -> Answer:
    """What does not fit has no speed: what is missing, and where the time would go if it were there."""
    try:
        times = _times(asked)
    except UnsupportedError:
        times = None
    return Answer(
        kind="roofline",
        headline=_too_large(asked, short),
        verdict="no",
        binding=_way_out(short),
        results=_missing(short),
        tables=(_table(times, asked, ", if there were room for it"),) if times else (),
        figure=short,
        notes=(
            "room is made by more chips that share the layers, fewer or shorter sequences, or a narrower precision",
        ),
        next_commands=(
            follow(scenario, "show fit"),
            follow(scenario, "show model", {"chips": [asked.chip.name]}),
            explained(follow(scenario)),
        ),
    )


class _Asked(msgspec.Struct, frozen=True):
    """What was asked."""

    chip: Chip
    model: Model
    precision: str
    tp: int
    batch: int
    context: int
    phase: str
    level: str | None
    eager: bool

    @property
    def formats(self) -> Precision:
        return Precision.named(self.precision)

    @property
    def step(self) -> str:
        return "decode step" if self.phase == "decode" else "prefill"

    @property
    def tokens(self) -> int:
        """Tokens that one pass brings forward."""
        return self.batch if self.phase == "decode" else self.batch * self.context

    @property
    def sequences(self) -> str:
        return f"{self.batch:,} sequence{'s' if self.batch > 1 else ''}"

    @property
    def machine(self) -> str:
        return self.chip.title if self.tp == 1 else f"{self.tp} × {self.chip.title}"


def _asked(scenario: Scenario) -> _Asked:
    deployment, sequences, one_pass = scenario.one(Deployment), scenario.one(Sequences), scenario.one(Pass)
    return _Asked(
        scenario.catalog.chip(deployment.chip), scenario.model(), deployment.precision, deployment.tp or 1,
        sequences.batch, sequences.context, one_pass.phase, one_pass.level, one_pass.eager,
    )  # fmt: skip


def _times(asked: _Asked) -> PassTimes:
    query, past = (float(asked.context), 0.0) if asked.phase == "prefill" else (1.0, float(asked.context))
    operators = forward_pass(
        asked.model, batch=float(asked.batch), query=query, past=past, sharding=Sharding(tp=float(asked.tp)),
        precision=asked.formats,
    )  # fmt: skip
    return time_operators(
        asked.chip, operators, level=asked.level, graph=not asked.eager,
        block_scaled=block_scaled(asked.model, asked.formats),
    ).merged()  # fmt: skip


def _headline(asked: _Asked, timed: Breakdown) -> str:
    work = "after" if asked.phase == "decode" else "of"
    assert timed.band is not None
    return (
        f"One {asked.step} of {asked.model.title} ({asked.sequences} {work} {asked.context:,} tokens, "
        f"{asked.precision}) on {asked.machine} takes {fmt(timed.value, 's', 3)} "
        f"({fmt(timed.band.low, 's', 3)} to {fmt(timed.band.high, 's', 3)}): "
        f"{asked.tokens / timed.value:,.0f} tokens/s."
    )


def _too_large(asked: _Asked, short: Breakdown) -> str:
    held, usable = (fmt(part.value, "bytes") for part in short.parts)
    each = " on each" if asked.tp > 1 else ""
    return (
        f"{asked.model.title} in {asked.precision} does not fit on {asked.machine}: weights and the cache of "
        f"{asked.sequences} of {asked.context:,} tokens take {held}{each}, {usable} are usable, "
        f"{fmt(short.value, 'bytes')} are missing."
    )


def _way_out(short: Breakdown) -> str:
    weights, cache = (part.value for part in short.parts[0].parts)
    usable = short.parts[1].value
    if weights > usable:
        return f"Memory binds: the weights alone take {weights / usable:,.3g} times what is usable."
    return f"Memory binds: the weights fit, the cache of {fmt(cache, 'bytes')} beside them does not."


def _missing(short: Breakdown) -> dict[str, Cell]:
    held, usable = short.parts
    return {
        "missing_bytes": short.value,
        "held_bytes": held.value,
        "usable_bytes": usable.value,
        "weight_bytes": held.parts[0].value,
        "kv_cache_bytes": held.parts[1].value,
    }


def _binding(times: PassTimes, timed: Breakdown) -> str:
    bound, share = max(times.shares().items(), key=lambda pair: pair[1])
    heaviest, ideal = times.kernels[times.heaviest], times.roofline_s
    name, its = heaviest.operator.name.replace("_", " "), scalar(heaviest.total_s) / timed.value
    return (
        f"{_BINDS[bound]} binds for {_percent(share)} of the time; the largest part is {name} ({_percent(its)}). "
        f"The datasheet's roofline allows {fmt(ideal, 's', 3)}, an efficiency of {_percent(ideal / timed.value)}."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _results(asked: _Asked, times: PassTimes, timed: Breakdown) -> dict[str, Cell]:
    assert timed.band is not None
    return {
        "pass_s": timed.value,
        "pass_low_s": timed.band.low,
        "pass_high_s": timed.band.high,
        "roofline_s": times.roofline_s,
        "tokens_per_s": asked.tokens / timed.value,
        "level": times.level,
        **{f"{bound}_bound_fraction": share for bound, share in times.shares().items()},
    }


def _table(times: PassTimes, asked: _Asked, condition: str = "") -> Table:
    total = scalar(times.total_s)
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
        rows=tuple(_row(kernel, total) for kernel in times.kernels),
        marked=times.heaviest,
        note="Time is of all runs. Efficiency is roofline over predicted time; above 100 % a cache helps.",
    )


def _row(kernel: KernelTime, total: float) -> tuple[Cell, ...]:
    time = scalar(kernel.total_s)
    return (
        kernel.operator.name.replace("_", " "),
        int(kernel.operator.count),
        time,
        time / total,
        kernel.bound,
        scalar(kernel.operator.intensity_flop_per_byte) or None,
        scalar(kernel.efficiency),
    )


def _chart(times: PassTimes, asked: _Asked) -> RooflineChart:
    total, chip = scalar(times.total_s), times.chip
    counted = [kernel for kernel in times.kernels if scalar(kernel.operator.flop) > 0]
    used = dict.fromkeys(canonical_precision(kernel.operator.precision) for kernel in counted)
    slopes = {chip.memory_type or "memory": chip.memory_bytes_per_s}
    cache = next((level.bytes_per_s for level in chip.levels if level.name == "l2"), nan)
    if isfinite(cache):
        slopes["L2"] = cache
    left = 1 - sum(scalar(kernel.total_s) for kernel in counted) / total
    return RooflineChart(
        title=f"roofline of {chip.title}, {asked.step}",
        roofs={
            f"{name.upper()} dense": chip.peak_flop_per_s[name]
            for name in used
            if name in chip.peak_flop_per_s
        },
        slopes=slopes,
        points=tuple(_point(kernel, total) for kernel in counted),
        note=(
            "One point per operator; its area is its share of the time. "
            f"Norms, rotations and other work without counted arithmetic take {100 * left:.1f} % and are not drawn."
        ),
    )


def _point(kernel: KernelTime, total: float) -> Point:
    share, time = scalar(kernel.total_s) / total, scalar(kernel.time_s)
    rate = scalar(kernel.operator.flop) / time
    note = (
        f"{100 * share:.1f} % of the time, {fmt(time, 's', 3)} each, {fmt(rate, 'flop_per_s', 3)}, "
        f"{kernel.bound}-bound"
    )
    intensity = scalar(kernel.operator.intensity_flop_per_byte)
    return Point(kernel.operator.name.replace("_", " "), intensity, rate, kernel.bound, min(1.0, share), note)


def _notes(asked: _Asked, times: PassTimes) -> tuple[str, ...]:
    fitted_on = times.calibration.constants.fitted_on
    lines = [f"level: {times.level}; the range holds eight of ten measurements ({fitted_on})"]
    if asked.tp > 1:
        lines.append(f"one chip's share of {asked.tp}; the exchange between them is not in it")
    lines.append(
        "kernels launched one by one from the host"
        if asked.eager
        else "kernels replayed as one graph, which an eager pass does without"
    )
    if block_scaled(asked.model, asked.formats):
        lines.append("its FP8 weights have a scale per block, as its checkpoint is published")
    if asked.context > asked.model.max_context:
        lines.append(
            f"{asked.context:,} tokens is beyond the {asked.model.max_context:,} the model was made for"
        )
    return tuple(lines)

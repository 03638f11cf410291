"""A forward pass on one chip, operator by operator: time, what binds, intensity, efficiency."""

from __future__ import annotations

from collections import defaultdict
from math import isfinite, nan

import msgspec

from datahall.answer import Answer, Cell, Column, Point, RooflineChart, Table
from datahall.answers.bounds import find_model, opened, whole
from datahall.answers.model.pass_figure import pass_figure, scalar
from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip, canonical_precision
from datahall.catalog.entries.model import Model
from datahall.errors import ScenarioError
from datahall.inference.memory.fit import usable_bytes
from datahall.silicon.kernel import KernelTime, PassTimes, time_operators
from datahall.units import fmt
from datahall.workload.forward import forward_pass
from datahall.workload.memory.kv_cache import kv_bytes
from datahall.workload.memory.state import serving_weight_bytes
from datahall.workload.parameters import count_parameters
from datahall.workload.precision import Precision
from datahall.workload.sharding import Sharding

PHASES = ("prefill", "decode")
LARGEST_TP = 1024
_BINDS = {"memory": "Memory bandwidth", "compute": "Arithmetic", "launch": "The gap between kernels"}


def show_roofline(
    chip: str,
    *,
    model: str,
    phase: str = "decode",
    batch: int | str = 1,
    context: int | str = 4096,
    precision: str = "bf16",
    tp: int | str = 1,
    level: str | None = None,
    eager: bool = False,
    catalog: Catalog | None = None,
) -> Answer:
    """Where the time of one forward pass goes on one chip, and how far each operator is from the roofline.

    Prefill runs `batch` prompts of `context` tokens; decode adds one token to each of `batch` sequences that
    hold `context` tokens.
    """
    if phase not in PHASES:
        raise ScenarioError(f'"{phase}" is not a phase', hint=f"one of {', '.join(PHASES)}")
    num, length, group = whole("batch", batch), whole("context", context), whole("tp", tp, at_most=LARGEST_TP)
    shelf, formats = opened(catalog), Precision.named(precision)
    machine, network = shelf.chip(chip), find_model(model, shelf)
    sharding = Sharding(tp=float(group))
    sharding.check(network)
    query, past = (float(length), 0.0) if phase == "prefill" else (1.0, float(length))
    operators = forward_pass(
        network, batch=float(num), query=query, past=past, sharding=sharding, precision=formats
    )
    times = _merged(time_operators(machine, operators, level=level, graph=not eager))
    asked = _Asked(machine, network, phase, num, length, precision, group)
    figure = pass_figure(f"one {asked.step} on {machine.name}", times)
    return Answer(
        kind="roofline",
        inputs={
            "chip": machine.name,
            "model": network.name,
            "phase": phase,
            "batch_sequences": num,
            "context_tokens": length,
            "precision": precision,
            "tp": group,
            "level": level,
            "eager": eager,
        },
        headline=_headline(asked, times),
        binding=_binding(times),
        results=_results(asked, times),
        tables=(_table(times, asked),),
        figure=figure,
        charts=(_chart(times, asked),),
        notes=_notes(asked, times, formats, eager),
        next_commands=_next(asked),
    )


def _merged(times: PassTimes) -> PassTimes:
    """The same operator of different kinds of layer as one that runs more often."""
    kernels: list[KernelTime] = []
    for one in times.kernels:
        twin = next((place for place, seen in enumerate(kernels) if _same(seen, one)), None)
        if twin is None:
            kernels.append(one)
            continue
        count = kernels[twin].operator.count + one.operator.count
        operator = msgspec.structs.replace(one.operator, count=count)
        kernels[twin] = msgspec.structs.replace(one, operator=operator)
    return msgspec.structs.replace(times, kernels=tuple(kernels))


def _same(one: KernelTime, other: KernelTime) -> bool:
    return one.operator.name == other.operator.name and scalar(one.time_s) == scalar(other.time_s)


class _Asked:
    """What was asked, read and checked."""

    def __init__(
        self, chip: Chip, model: Model, phase: str, batch: int, context: int, precision: str, tp: int
    ) -> None:
        self.chip, self.model, self.phase, self.precision = chip, model, phase, precision
        self.batch, self.context, self.tp = batch, context, tp

    @property
    def step(self) -> str:
        return "decode step" if self.phase == "decode" else "prefill"

    @property
    def tokens(self) -> int:
        """Tokens that one pass brings forward."""
        return self.batch if self.phase == "decode" else self.batch * self.context


def _headline(asked: _Asked, times: PassTimes) -> str:
    total, band = scalar(times.total_s), times.band
    chips = asked.chip.title if asked.tp == 1 else f"{asked.tp} × {asked.chip.title}"
    many = f"{asked.batch:,} sequence{'s' if asked.batch > 1 else ''}"
    work = (
        f"{many} after {asked.context:,} tokens"
        if asked.phase == "decode"
        else f"{many} of {asked.context:,} tokens"
    )
    return (
        f"One {asked.step} of {asked.model.title} ({work}, {asked.precision}) on {chips} takes "
        f"{fmt(total, 's', 3)} ({fmt(band.low, 's', 3)} to {fmt(band.high, 's', 3)}): "
        f"{asked.tokens / total:,.0f} tokens/s."
    )


def _binding(times: PassTimes) -> str:
    shares = _by_bound(times)
    bound, share = max(shares.items(), key=lambda pair: pair[1])
    total = scalar(times.total_s)
    heaviest = max(times.kernels, key=lambda one: scalar(one.total_s))
    ideal = sum(one.operator.count * scalar(one.roofline_s) for one in times.kernels)
    name, its = heaviest.operator.name.replace("_", " "), scalar(heaviest.total_s) / total
    return (
        f"{_BINDS[bound]} binds for {share:.0%} of the time; the largest part is {name} ({its:.0%}). "
        f"The datasheet's roofline allows {fmt(ideal, 's', 3)}, an efficiency of {ideal / total:.0%}."
    )


def _by_bound(times: PassTimes) -> dict[str, float]:
    shares: dict[str, float] = defaultdict(float)
    total = scalar(times.total_s)
    for one in times.kernels:
        shares[one.bound] += scalar(one.total_s) / total
    return dict(shares)


def _results(asked: _Asked, times: PassTimes) -> dict[str, Cell]:
    total, band = scalar(times.total_s), times.band
    shares = _by_bound(times)
    return {
        "pass_s": total,
        "pass_low_s": band.low,
        "pass_high_s": band.high,
        "roofline_s": sum(one.operator.count * scalar(one.roofline_s) for one in times.kernels),
        "tokens_per_s": asked.tokens / total,
        "level": times.level,
        **{f"{bound}_bound_fraction": shares.get(bound, 0.0) for bound in _BINDS},
    }


def _table(times: PassTimes, asked: _Asked) -> Table:
    total = scalar(times.total_s)
    rows = tuple(_row(one, total) for one in times.kernels)
    columns = (
        Column("operator"),
        Column("runs", "count", "num_runs"),
        Column("time", "s"),
        Column("share", "fraction"),
        Column("bound"),
        Column("intensity", "flop_per_byte"),
        Column("efficiency", "fraction"),
    )
    heaviest = max(range(len(rows)), key=lambda index: scalar(times.kernels[index].total_s))
    return Table(
        title=f"operators of one {asked.step}",
        columns=columns,
        rows=rows,
        marked=heaviest,
        note="Time is of all runs. Efficiency is roofline over predicted time; above 100 % a cache helps.",
    )


def _row(one: KernelTime, total: float) -> tuple[Cell, ...]:
    time = scalar(one.total_s)
    return (
        one.operator.name.replace("_", " "),
        int(one.operator.count),
        time,
        time / total,
        one.bound,
        scalar(one.operator.intensity_flop_per_byte) or None,
        scalar(one.efficiency),
    )


def _chart(times: PassTimes, asked: _Asked) -> RooflineChart:
    total, chip = scalar(times.total_s), times.chip
    counted = [one for one in times.kernels if scalar(one.operator.flop) > 0]
    used = dict.fromkeys(canonical_precision(one.operator.precision) for one in counted)
    slopes = {chip.memory_type or "memory": chip.memory_bytes_per_s}
    cache = next((level.bytes_per_s for level in chip.levels if level.name == "l2"), nan)
    if isfinite(cache):
        slopes["L2"] = cache
    left = 1 - sum(scalar(one.total_s) for one in counted) / total
    return RooflineChart(
        title=f"roofline of {chip.title}, {asked.step}",
        roofs={
            f"{name.upper()} dense": chip.peak_flop_per_s[name]
            for name in used
            if name in chip.peak_flop_per_s
        },
        slopes=slopes,
        points=tuple(_point(one, total) for one in counted),
        note=(
            "One point per operator; its area is its share of the time. "
            f"Norms, rotations and other work without counted arithmetic take {left:.1%} and are not drawn."
        ),
    )


def _point(one: KernelTime, total: float) -> Point:
    share, time = scalar(one.total_s) / total, scalar(one.time_s)
    rate = scalar(one.operator.flop) / time
    note = (
        f"{share:.1%} of the time, {fmt(time, 's', 3)} each, {fmt(rate, 'flop_per_s', 3)}, {one.bound}-bound"
    )
    intensity = scalar(one.operator.intensity_flop_per_byte)
    return Point(one.operator.name.replace("_", " "), intensity, rate, one.bound, min(1.0, share), note)


def _notes(asked: _Asked, times: PassTimes, formats: Precision, eager: bool) -> tuple[str, ...]:
    lines = [f"level: {times.level}; the range holds eight of ten measurements ({times.band.basis})"]
    held = float(serving_weight_bytes(asked.model, count_parameters(asked.model), formats, tp=asked.tp))
    held += asked.batch * float(kv_bytes(asked.model, asked.context, formats, tp=asked.tp))
    usable = usable_bytes(asked.chip)
    if held > usable:
        lines.append(
            f"it does not fit: weights and cache take {fmt(held, 'bytes')} per chip, and "
            f"{fmt(usable, 'bytes')} are usable; raise --tp or lower --batch"
        )
    if asked.tp > 1:
        lines.append(f"one chip's share of {asked.tp}; the exchange between them is not in it")
    lines.append(
        "launched one by one from the host"
        if eager
        else "kernels replayed as one graph; --eager launches them singly"
    )
    if asked.context > asked.model.max_context:
        lines.append(
            f"{asked.context:,} tokens is beyond the {asked.model.max_context:,} the model was made for"
        )
    return tuple(lines)


def _next(asked: _Asked) -> tuple[str, ...]:
    other = "prefill" if asked.phase == "decode" else "decode"
    pair = f"{asked.chip.name} --model {asked.model.name}"
    same = f"show roofline {pair} --phase {asked.phase} --batch {asked.batch} --context {asked.context}"
    return (
        f"datahall {same} -o roofline.html",
        f"datahall explain {same}",
        f"datahall show roofline {pair} --phase {other} --context {asked.context}",
        "datahall validate kernels",
    )

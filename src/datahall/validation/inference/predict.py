"""Predict measured serving rows: read each as a run, replay it, and set what came out beside what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import isfinite

import msgspec

from datahall.errors import DatahallError
from datahall.validation.inference.assumptions import ASSUMPTIONS, Assumption
from datahall.validation.inference.energy import read_energy
from datahall.validation.inference.replay import Prices, Replayed, replay, sized
from datahall.validation.inference.run import THROUGHPUT, TPOT, TTFT, Run, latencies, lengths
from datahall.validation.inference.sources import read_run
from datahall.validation.measurement import Outcome, Row, RowError
from datahall.validation.scorecard import Prediction, Unsupported

EDGE = "a latency at the greatest rate that keeps a limit: it follows from a few per cent of capacity"
UNITS = {TPOT: "s", TTFT: "s", THROUGHPUT: "tokens/s"}


def predict_rows(rows: Sequence[Row]) -> Iterable[Outcome]:
    """Rows of published serving benchmarks."""
    return _predicted(rows, read_run)


def predict_energy(rows: Sequence[Row]) -> Iterable[Outcome]:
    """Points of the ML.ENERGY benchmark."""
    return _predicted(rows, read_energy)


def replayed(rows: Sequence[Row], read: Callable[[Row], Run]) -> Iterable[tuple[Run, Replayed] | Unsupported]:
    """Each row as a run with its figures, or why not; rows of one machine are replayed one after the other."""
    found: dict[int, tuple[Run, Replayed] | Unsupported] = {}
    runs: list[tuple[tuple[str, ...], int, Run]] = []
    for index, row in enumerate(rows):
        try:
            run = read(row)
        except (RowError, DatahallError) as problem:
            found[index] = Unsupported(_reason(problem), row.where)
            continue
        runs.append((_machine(run), index, run))
    prices = Prices()
    for _, _, run in runs:
        prices.foresee(sized(run.replica, run.traffic, run.num_replicas))
    for _, index, run in sorted(runs, key=lambda one: one[:2]):
        try:
            found[index] = run, replay(run, prices)
        except (RowError, DatahallError) as problem:
            found[index] = Unsupported(_reason(problem), run.row.where)
    return (found[index] for index in range(len(rows)))


def _predicted(rows: Sequence[Row], read: Callable[[Row], Run]) -> Iterable[Outcome]:
    found = list(replayed(rows, read))
    plain = replayed_without(ASSUMPTIONS, [one[0] for one in found if not isinstance(one, Unsupported)])
    for one in found:
        if isinstance(one, Unsupported):
            yield one
        else:
            yield from outcomes_of(*one, plain.get(one[0].row.where))


def replayed_without(assumptions: Sequence[Assumption], runs: Sequence[Run]) -> dict[str, Replayed]:
    """The runs that assumptions touch, replayed without them; by where their rows stand."""
    changed = {}
    for run in runs:
        traffic = run.traffic
        for one in assumptions:
            traffic = one.without(traffic)
        if traffic != run.traffic:
            changed[run.row.where] = msgspec.structs.replace(run, traffic=traffic)
    again = replayed([run.row for run in changed.values()], lambda row: changed[row.where])
    return {one[0].row.where: one[1] for one in again if not isinstance(one, Unsupported)}


def outcomes_of(run: Run, found: Replayed, plain: Replayed | None = None) -> Iterable[Outcome]:
    """What was measured of a run beside its replay, and beside that as its source states it."""
    if run.traffic.limits is not None:
        yield from (Unsupported(EDGE, run.row.where) for _ in latencies(run.row))
    for metric, was in run.measured.items():
        value = found.predicted[metric]
        if not isfinite(value) or value <= 0:
            yield Unsupported(f"no {metric} came out of the replay", run.row.where)
            continue
        low, high = run.replica.engine.band(metric)
        yield Prediction(
            source=_source(run), hardware=run.replica.chip.name, model=run.replica.model.name, label=_label(run),
            where=run.row.where, measured=was, predicted=value, low=value * low, high=value * high,
            unit=UNITS[metric], metric=metric, basis=found.level, fitted=run.row.fitted_on(metric),
            as_stated_ratio=None if plain is None else plain.predicted[metric] / value,
        )  # fmt: skip


def _source(run: Run) -> str:
    """The source, told apart where other tools' errors on it are published by kind of model."""
    name = run.row.text("source").split(" (")[0]
    if not name.startswith("AIConfigurator"):
        return f"{name}, {run.traffic.kind}" if name.startswith("MLPerf") else name
    kind = "pools" if run.pools is not None else "dense" if run.replica.model.moe is None else "MoE"
    return f"{name}, {kind}"


def _label(run: Run) -> str:
    replica, traffic = run.replica, run.traffic
    load = f"{traffic.users} users" if traffic.users else "greatest rate" if traffic.limits else "offline"
    split = f"TP {replica.tp}" + "".join(
        f" {name} {size}"
        for name, size in (("PP", replica.pp), ("DP", replica.dp), ("EP", replica.ep))
        if size > 1
    )
    try:
        prompt, output = (float(one) for one in lengths(run.row))
    except RowError:
        prompt, output = traffic.prompt_tokens, traffic.output_tokens
    return f"{replica.engine.name} {split}, {prompt:.0f}/{output:.0f} tokens, {load}"


def _machine(run: Run) -> tuple[str, ...]:
    replica = sized(run.replica, run.traffic, run.num_replicas)
    return (
        replica.model.name, replica.chip.name, replica.engine.name, str(replica.precision),
        f"{replica.tp} {replica.pp} {replica.dp} {replica.ep} {replica.engine.max_sequences} {replica.max_context}",
    )  # fmt: skip


def _reason(problem: Exception) -> str:
    return problem.message if isinstance(problem, DatahallError) else str(problem)

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
from datahall.validation.measurement import Outcome, Row, RowError, unless_fitted
from datahall.validation.scorecard import Fitted, Prediction, Unsupported

EDGE = "a latency at the greatest rate that keeps a limit: it follows from a few per cent of capacity"
UNITS = {TPOT: "s", TTFT: "s", THROUGHPUT: "tokens/s"}


def predict_rows(rows: Sequence[Row]) -> Iterable[Outcome]:
    """Rows of published serving benchmarks."""
    return _predicted(rows, read_run)


def predict_energy(rows: Sequence[Row]) -> Iterable[Outcome]:
    """Points of the ML.ENERGY benchmark."""
    return _predicted(rows, read_energy)


def runs_of(rows: Sequence[Row], read: Callable[[Row], Run]) -> list[Run | Unsupported]:
    """Each row as a run, or why not."""
    found: list[Run | Unsupported] = []
    for row in rows:
        try:
            found.append(read(row))
        except (RowError, DatahallError) as problem:
            found.append(Unsupported(_reason(problem), row.where))
    return found


def replayed(runs: Sequence[Run]) -> list[Replayed | Unsupported]:
    """The figures of each run, or why not; runs of one machine are replayed one after the other."""
    prices = Prices()
    for run in runs:
        prices.foresee(sized(run.replica, run.traffic, run.num_replicas))
    found: dict[int, Replayed | Unsupported] = {}
    for _, index in sorted((_machine(run), index) for index, run in enumerate(runs)):
        try:
            found[index] = replay(runs[index], prices)
        except (RowError, DatahallError) as problem:
            found[index] = Unsupported(_reason(problem), runs[index].row.where)
    return [found[index] for index in range(len(runs))]


def _predicted(rows: Sequence[Row], read: Callable[[Row], Run]) -> Iterable[Outcome]:
    known = runs_of(rows, read)
    runs = [one for one in known if isinstance(one, Run) and is_scored(one)]
    bare = {run.row.where: other for run in runs if (other := without(ASSUMPTIONS, run)) != run}
    figures = replayed([*runs, *bare.values()])  # in one go: either way a run has the tables of its machine
    plain = dict(zip(bare, figures[len(runs) :], strict=True))
    usual = iter(figures)
    for one in known:
        if isinstance(one, Unsupported):
            yield one
        elif not is_scored(one):
            yield from _edges(one)
            yield from (Fitted(one.row.where, metric) for metric in one.measured)
        elif isinstance(found := next(usual), Unsupported):
            yield found
        else:
            stated = plain.get(one.row.where)
            yield from outcomes_of(one, found, None if isinstance(stated, Unsupported) else stated)


def is_scored(run: Run) -> bool:
    """Whether a figure of the run is scored: nobody asks what is predicted of one that a constant was fitted on."""
    return not all(run.row.fitted_on(metric) for metric in run.measured)


def without(assumptions: Sequence[Assumption], run: Run) -> Run:
    """The run as its benchmark did it if it did not do what is assumed."""
    traffic = run.traffic
    for one in assumptions:
        traffic = one.without(traffic)
    return run if traffic == run.traffic else msgspec.structs.replace(run, traffic=traffic)


def outcomes_of(run: Run, found: Replayed, plain: Replayed | None = None) -> Iterable[Outcome]:
    """What was measured of a run beside its replay, and beside that as its source states it."""
    yield from _edges(run)
    for metric, was in run.measured.items():
        value = found.predicted[metric]
        if not isfinite(value) or value <= 0:
            yield Unsupported(f"no {metric} came out of the replay", run.row.where)
            continue
        low, high = run.replica.engine.band(metric)
        one = Prediction(
            source=_source(run), hardware=run.replica.chip.name, model=run.replica.model.name, label=_label(run),
            where=run.row.where, measured=was, predicted=value, low=value * low, high=value * high,
            unit=UNITS[metric], metric=metric, basis=found.level,
            as_stated_ratio=None if plain is None else plain.predicted[metric] / value,
        )  # fmt: skip
        yield unless_fitted(run.row, one)


def _edges(run: Run) -> list[Unsupported]:
    """The latencies that a run states beside the greatest rate that keeps its limits."""
    return [Unsupported(EDGE, run.row.where) for _ in latencies(run.row)] if run.traffic.limits else []


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

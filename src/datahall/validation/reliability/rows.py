"""Published failures predicted again: how often, by what, how long until repaired, and what of the time was kept.

A row is predicted from what other sources counted.  What follows from a row's own rate or restart, such as a projection
to more chips, is held against it as a check and not scored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import ceil, erfc, log, sqrt
from typing import NamedTuple

from datahall.catalog import Catalog, load
from datahall.catalog.entries.failures import FailurePreset
from datahall.errors import DatahallError
from datahall.reliability.ettr import best_interval_s, renewal_ettr, wall_rate_ettr
from datahall.reliability.process import mttf_s, process_of, repair_sigma
from datahall.training.memory.bookkeeping import Bookkeeping
from datahall.units import DAY_S, HOUR_S
from datahall.validation.measurement import Format, Outcome, Row, RowError, unless_fitted
from datahall.validation.reliability.causes import predict_causes
from datahall.validation.reliability.fleets import other_fleets, own_presets, pooled
from datahall.validation.scorecard import Fitted, Prediction, Replayed, Unsupported
from datahall.workload.parameters import count_parameters

NODE_CHIPS = 8
UNSTATED = "unstated"
OWN, OTHERS, STATED = "its own rate", "other fleets", "what the row states"
GIVEN = (OWN, STATED)  # what follows from the row itself is held against it, and is no prediction
EXACT = (0.95, 1.05)  # a projection is arithmetic, rounded by who printed it
BLOCKING_S = 1.0  # an asynchronous checkpoint, where nobody says
# a restart, where nobody says: the median of those published (1.35 to 68 min: GKE, AWS, FT-HSDP, OLMo, Unicron), and
# what fast and slow ones of the last years take
RESTART_S, FAST_RESTART_S, SLOW_RESTART_S = 222.0, 81.0, 600.0
RANGE = re.compile(r"([\d.]+)\s*-\s*([\d.]+)")
ONE = re.compile(r"~?\s*([\d.]+)")
FOREIGN = re.compile(r"tpu|trn|gaudi|intel", re.IGNORECASE)
# a count of which planned stops are a part: "planned" and "all" as words, not in "unplanned" or "wall-clock"
PLANNED = re.compile(r"(?<!un-)\bplanned\b|\ball\b(?! un)", re.IGNORECASE)
# kinds of rows that no model here has an answer to, by how they begin
BEYOND = (
    ("spot", "spot capacity is taken away, it does not fail"),
    ("job", "how jobs end is up to their owners"),
    ("GPU-time", "how jobs end is up to their owners"),
    ("checkpoint", "a checkpoint of an unstated model or storage"),
    ("recovery", "times of recovery are inputs"),
    ("repair", "a time that stands in the catalogue"),
    ("sdc", "no number of chips or days beside it"),
    ("lost work", "one incident"),
    ("lemon", "what ails bad nodes, which fail for all causes here"),
    ("defect", "a benchmark that new nodes fail"),
    ("xid", "messages of a driver, most of which stop nobody"),
    ("effect", "an effect on throughput or power"),
    ("goodput expense", "somebody else's model"),
    ("mitigation", "what a remedy did elsewhere"),
    ("spares", "advice, not a measurement"),
)


class Guess(NamedTuple):
    """What a row measured and what is expected of it."""

    metric: str
    unit: str
    measured: float
    predicted: float
    low_ratio: float
    high_ratio: float
    basis: str = OTHERS


def predict(rows: Sequence[Row]) -> Iterable[Outcome]:
    """Predict rows; the causes of one cluster are looked at together."""
    catalog = load()
    tables: dict[str, list[Row]] = {}
    for row in rows:
        if row.text("kind") == "cause" and not row.fitted_on():
            tables.setdefault(row.text("cluster"), []).append(row)
    for row in rows:
        if row.fitted_on():
            yield Fitted(row.where)
        elif row.text("kind") != "cause":
            yield from _outcomes(row, catalog)
    for table in tables.values():
        yield from predict_causes(table, catalog)


def _outcomes(row: Row, catalog: Catalog) -> Iterator[Outcome]:
    kind = row.text("kind")
    figures = FIGURES.get(kind)
    if figures is None:
        beyond = next((why for start, why in BEYOND if kind.startswith(start)), f'nothing predicts "{kind}"')
        yield Unsupported(beyond, row.where)
        return
    for figure in figures:
        try:
            guess = figure(row, catalog)
        except (RowError, DatahallError) as problem:
            reason = problem.message if isinstance(problem, DatahallError) else str(problem)
            yield Unsupported(reason, row.where)
            continue
        if guess is not None and guess.basis in GIVEN:
            yield Replayed(
                metric=guess.metric, where=row.where, measured=guess.measured, predicted=guess.predicted
            )
        elif guess is not None:
            yield unless_fitted(row, _prediction(row, guess))


def _prediction(row: Row, guess: Guess) -> Prediction:
    return Prediction(
        source=row.text("primary_source").partition(" (")[0],
        hardware=row.text("accelerator", UNSTATED),
        model=row.text("cluster"),
        label=f"{row.text('cluster')}: {row.text('cause_or_metric')}",
        where=row.where,
        measured=guess.measured,
        predicted=guess.predicted,
        low=guess.predicted * guess.low_ratio,
        high=guess.predicted * guess.high_ratio,
        unit=guess.unit,
        metric=guess.metric,
        basis=guess.basis,
    )


def figure(row: Row, column: str) -> float:
    """The one number of a cell, the geometric middle of a range; a bound or several figures are none."""
    text = row.text(column)
    if span := RANGE.fullmatch(text):
        return sqrt(float(span[1]) * float(span[2]))
    if text.startswith((">", "<")):
        raise RowError("states a bound and no figure")
    if one := ONE.fullmatch(text):
        return float(one[1])
    raise RowError(f'column "{column}" is not one number')


def _num_nodes(row: Row) -> float:
    if FOREIGN.search(row.text("accelerator")):
        raise RowError("no fleet of such chips was counted but this one")
    if not row.text("n_accelerators"):
        raise RowError("no number of chips beside it")
    return row.positive("n_accelerators") / NODE_CHIPS


def _events_per_day(row: Row, catalog: Catalog) -> tuple[float, float, float]:
    """Interruptions of a job per day by the rates of others, n·r + r_job, and the spread of r."""
    others = pooled(other_fleets(row, catalog))
    job = catalog.failure_preset("rsc-1").job_rate_per_day
    nodes = _num_nodes(row) * others.rate_per_node_day
    return (
        nodes + job,
        (nodes * others.low_ratio + job) / (nodes + job),
        (nodes * others.high_ratio + job) / (nodes + job),
    )


def _interruptions(row: Row, catalog: Catalog) -> Guess:
    if PLANNED.search(row.text("cause_or_metric")):
        raise RowError("planned stops are decided, not met")
    if re.search("fleet", row.text("cluster")):
        raise RowError("a fleet of many jobs, of which nobody says how many ran at once")
    per_day, low, high = _events_per_day(row, catalog)
    return Guess("interruptions", "count", row.positive("count"), per_day * row.positive("days"), low, high)


def _mttf(row: Row, catalog: Catalog) -> Guess | None:
    measured_s = row.positive("mttf_hours") * HOUR_S
    own = _own_fleet(row, catalog)
    if own is not None and "projection" in row.text("note"):
        predicted_s = mttf_s(process_of(own, catalog, ceil(_num_nodes(row))))
        return Guess("MTTF", "s", measured_s, predicted_s, *EXACT, OWN)
    per_day, low, high = _events_per_day(row, catalog)
    return Guess("MTTF", "s", measured_s, DAY_S / per_day, 1.0 / high, 1.0 / low)


def _own_fleet(row: Row, catalog: Catalog) -> FailurePreset | None:
    """The preset that was made of the very cluster of a row."""
    own = own_presets(row, catalog)
    return next((one for one in own if row.text("cluster").lower() in (one.name, one.title.lower())), None)


def _rate(row: Row, catalog: Catalog) -> Guess:
    others = pooled(other_fleets(row, catalog))
    unit, value = row.text("unit"), figure(row, "value")
    if value <= 0:
        raise RowError('column "value" is not above zero')
    if unit == "GPU-days":
        measured = NODE_CHIPS / value
    elif re.fullmatch(r"(failures )?per 1,?000 (node-days|servers per day)", unit):
        measured = value / 1000
    else:
        raise RowError("a rate of a part that stands in the catalogue, or of something else")
    rate = others.rate_per_node_day
    return Guess("failure rate", "per_node_day", measured, rate, others.low_ratio, others.high_ratio)


def _effective(row: Row, catalog: Catalog) -> Guess | None:
    """Share of the time that is kept: by the source's own MTTF and restart where it states both, as it defines it."""
    if not row.text("ettr_or_goodput_pct"):
        return None
    measured = figure(row, "ettr_or_goodput_pct") / 100.0
    if row.text("mttf_hours") and row.text("restart_or_recovery_min"):
        mttf, restart = row.positive("mttf_hours") * HOUR_S, figure(row, "restart_or_recovery_min") * 60.0
        share = wall_rate_ettr(1e-9 * mttf, 0.0, restart, mttf)
        return Guess("effective time", "fraction", measured, share, *EXACT, STATED)
    per_day, low, high = _events_per_day(row, catalog)
    restarts = RESTART_S, SLOW_RESTART_S, FAST_RESTART_S
    if row.text("restart_or_recovery_min"):
        restarts = (figure(row, "restart_or_recovery_min") * 60.0,) * 3
    blocking = figure(row, "checkpoint_s") if row.text("checkpoint_s") else BLOCKING_S
    share, least, most = (
        renewal_ettr(best_interval_s(blocking, DAY_S / rate), blocking, restart, DAY_S / rate)
        for rate, restart in zip((per_day, per_day * high, per_day * low), restarts, strict=True)
    )
    return Guess("effective time", "fraction", measured, share, least / share, most / share)


def _size(row: Row, catalog: Catalog) -> Guess:
    """Bytes of a checkpoint from the parameters of a model that the catalogue has."""
    name = re.sub(r"^llama3-", "llama-3.1-", row.text("cause_or_metric").lower())
    recipe = Bookkeeping().recipe
    predicted = count_parameters(catalog.model(name)).total * (recipe.weight + recipe.optimizer)
    if row.text("unit") != "GB":
        raise RowError("a checkpoint by the parameter, which is our own recipe")
    return Guess("checkpoint size", "bytes", figure(row, "value") * 1e9, predicted, 0.85, 1.1, "state recipe")


def _above_a_day(row: Row, catalog: Catalog) -> Guess:
    return _repaired(row, catalog, 0, 1.0)


def _above_two_weeks(row: Row, catalog: Catalog) -> Guess:
    return _repaired(row, catalog, 1, 14.0)


def _repaired(row: Row, catalog: Catalog, which: int, days: float) -> Guess:
    """Share of repairs that take longer, by the log-normal of the catalogue: P = erfc(ln(t/median) / (σ√2)) / 2."""
    if row.text("cause_or_metric") != "incidents >1 day / >2 weeks to resolve":
        raise RowError("a time that stands in the catalogue")
    host = catalog.component("host")
    share = erfc(log(days * DAY_S / host.repair_median_s) / (repair_sigma(host) * sqrt(2.0))) / 2.0
    measured = float(row.text("value").split("/")[which]) / 100.0
    return Guess("repairs that take long", "fraction", measured, share, 0.5, 3.0, "LANL's spread")


Figure = Callable[[Row, Catalog], Guess | None]
FIGURES: dict[str, tuple[Figure, ...]] = {
    "total": (_interruptions, _effective),
    "mttf": (_mttf, _effective),
    "rate": (_rate,),
    "ettr": (_effective,),
    "goodput": (_effective,),
    "checkpoint size": (_size,),
    "repair": (_above_a_day, _above_two_weeks),
}

FORMATS = (
    Format(
        "failures",
        frozenset(
            {
                "cluster",
                "accelerator",
                "n_accelerators",
                "days",
                "kind",
                "cause_or_metric",
                "count",
                "mttf_hours",
            }
        ),
        predict,
    ),
)

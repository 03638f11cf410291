"""A scorecard as an answer: how far off we are, by hardware, source and model, and where it is worst."""

from __future__ import annotations

from collections.abc import Mapping

from datahall.answer import Answer, Axis, Cell, Column, Point, Quantity, ScatterChart, Series, Table
from datahall.answers.follow import follow
from datahall.answers.reply import Scored
from datahall.counted import counted
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.views import Files
from datahall.validation import ledger
from datahall.validation.scorecard import (
    RIGHT_COVERAGE_PERCENT,
    Score,
    Scorecard,
    Worst,
    fraction,
    scorecard_json,
)

COLUMNS = (
    Column("rows", "count", "num_rows"),
    Column("median", "fraction", "median_ape_fraction"),
    Column("mean", "fraction", "mean_ape_fraction"),
    Column("P90", "fraction", "p90_ape_fraction"),
    Column("bias", "fraction", "bias_fraction"),
    Column("in band", "fraction", "band_coverage_fraction"),
)


# the same of shares, whose errors are differences in points
POINTS = (
    COLUMNS[0],
    Column("median", "points"),
    Column("mean", "points"),
    Column("P90", "points", "p90_points"),
    Column("bias", "points"),
    COLUMNS[-1],
)


def validate(scenario: Scenario) -> Scored:
    """Predict measured rows again and say how far off we are."""
    asked = scenario.one(Files)
    card = ledger.validate(asked.domain, asked.data or None)
    page = follow(scenario, tail=f"-o {asked.domain}.md")
    return Scored(scorecard_answer(card, page), scorecard_json(card))


def scorecard_answer(card: Scorecard, *next_commands: str) -> Answer:
    """Say a scorecard in sentences and tables."""
    metrics = card.by_metric if len(card.by_metric) > 1 else {}
    groups = (
        ("metric", metrics),
        ("hardware", card.by_hardware),
        ("source", card.by_source),
        ("model", card.by_model),
        ("basis", card.by_basis),
    )
    tables = [_groups(card, name, scores) for name, scores in groups if scores]
    return Answer(
        kind="validation",
        headline=_headline(card),
        binding=_coverage(card),
        verdict="yes" if card.scored else "no",
        results=_results(card),
        tables=(*tables, *_checks(card), *_noise(card), *_regret(card), *_worst(card), *_unsupported(card)),
        charts=_charts(card),
        notes=(
            *_meaning(card),
            *card.notes,
            "rows that a constant was fitted on are counted and never scored",
            *(("a row that states several figures is counted once for each",) if metrics else ()),
            *(
                ("repeated measurements: distance of runs of one configuration from their median",)
                if card.noise
                else ()
            ),
            *_apart(card),
            *_as_stated(card),
            *(
                ("regret: measured time of the way predicted fastest / best measured − 1",)
                if card.regret
                else ()
            ),
        ),
        next_commands=next_commands,
    )


def _in_points(card: Scorecard) -> bool:
    return card.unit == "points"


def _meaning(card: Scorecard) -> tuple[str, ...]:
    """What an error is."""
    size = "median, mean and P90 are of its size, bias is signed"
    if _in_points(card):
        return (f"error: predicted − measured, in points of a share, not in percent of it; {size}",)
    some = (f"{', '.join(card.in_points)}: errors in points, predicted − measured",) if card.in_points else ()
    return (f"error: predicted / measured − 1; {size}", *some)


def _apart(card: Scorecard) -> tuple[str, ...]:
    """What the share inside the bands is worth: they are made of rows of the same sources."""
    if not card.apart:
        return ()
    shares = sorted({f"{one.apart_percent:.0f}" for one in card.apart.values()}, key=float)
    held = shares[0] if len(shares) == 1 else f"{shares[0]} to {shares[-1]}"
    return (
        "bands are the spread of errors on rows of these sources; made of the other sources alone they hold "
        f"{held} % of the rows of one (of those with many rows)",
    )


def _as_stated(card: Scorecard) -> tuple[str, ...]:
    """What the score rests on besides the rows: what benchmarks are taken to have done."""
    if card.as_stated is None:
        return ()
    each = ", ".join(
        f"{metric} {one.mean_ape:.1f} % (as scored {card.by_metric[metric].mean_ape:.1f} %)"
        for metric, one in card.as_stated.by_metric.items()
    )
    return (
        f"{card.as_stated.figures:,} figures are replayed with what their benchmark is taken to have done and does not "
        f"state; without that the mean error would be: {each}",
    )


def _headline(card: Scorecard) -> str:
    if not card.scored:
        return f"No measured row of {card.domain} could be scored."
    all_rows = card.overall
    if len(card.by_metric) > 1:
        each = "; ".join(
            f"{metric} {one.median_ape:.1f} {_sign(card, metric)} (mean {one.mean_ape:.1f} {_sign(card, metric)}, "
            f"{counted(one.rows, 'row')})"
            for metric, one in card.by_metric.items()
        )
        return f"Median error on {card.scored:,} measured figures of {card.domain}: {each}."
    (metric,) = card.by_metric
    sign = _sign(card, metric)
    return (
        f"On {card.scored:,} measured rows of {card.domain} the median error is {all_rows.median_ape:.1f} {sign} "
        f"(mean {all_rows.mean_ape:.1f} {sign}, P90 {all_rows.p90_ape:.1f} {sign}, bias {all_rows.bias:+.1f} {sign})."
    )


def _sign(card: Scorecard, metric: str) -> str:
    """What stands behind an error."""
    return "points" if metric in card.in_points else "%"


def _coverage(card: Scorecard) -> str:
    again = f"{card.num_replayed:,} played again as a check, " if card.num_replayed else ""
    counted = (
        f"{card.rows:,} rows in all, {card.fitted:,} used for fitting, {again}"
        f"{card.num_unsupported:,} that cannot be expressed."
    )
    if not card.scored:
        return counted
    inside = f"{card.overall.band_coverage:.0f} % lie inside their P10–P90 band"
    return f"{inside} ({RIGHT_COVERAGE_PERCENT:.0f} % would be right). {counted}"


def _results(card: Scorecard) -> dict[str, Cell]:
    known = dict(
        zip((column.key for column in _columns(card)), _cells(card.overall, _in_points(card)), strict=True)
    )
    return {"num_scored": card.scored, "num_fitted": card.fitted, **known}


def _columns(card: Scorecard) -> tuple[Column, ...]:
    return POINTS if _in_points(card) else COLUMNS


def _groups(card: Scorecard, name: str, scores: Mapping[str, Score]) -> Table:
    rows = tuple((group or "–", *_cells(score, _in_points(card))) for group, score in scores.items())
    return Table(title=f"error by {name}", columns=(Column(name), *_columns(card)), rows=rows)


def _cells(score: Score, in_points: bool) -> tuple[Cell, ...]:
    errors = (score.median_ape, score.mean_ape, score.p90_ape, score.bias)
    shown = errors if in_points and score.rows else map(fraction, errors)
    return (score.rows, *shown, fraction(score.band_coverage))


def _charts(card: Scorecard) -> tuple[ScatterChart, ...]:
    """What was predicted against what was measured, each metric by itself; the rows furthest off are named."""
    metrics = dict.fromkeys((cloud.metric, cloud.unit) for cloud in card.clouds)
    return tuple(_chart(card, metric, unit) for metric, unit in metrics)


def _chart(card: Scorecard, metric: str, unit: str) -> ScatterChart:
    return ScatterChart(
        title=f"{metric}, predicted against measured" if metric else "predicted against measured",
        x=Axis("measured", unit, log=metric not in card.in_points),
        y=Axis("predicted", unit, log=metric not in card.in_points),
        series=tuple(
            Series(cloud.hardware, cloud.measured, cloud.predicted)
            for cloud in card.clouds
            if (cloud.metric, cloud.unit) == (metric, unit)
        ),
        points=tuple(
            Point(one.label, one.measured, one.predicted, note=_far(one))
            for one in card.worst
            if (one.metric, one.unit) == (metric, unit)
        ),
    )


def _far(one: Worst) -> str:
    return f"{one.error_percent:+.0f} {'points' if one.in_points else '%'}, {one.where}"


def _checks(card: Scorecard) -> tuple[Table, ...]:
    rows = tuple(
        (metric, one.rows, fraction(one.p90_ape), fraction(one.worst_ape))
        for metric, one in card.checks.items()
    )
    columns = (
        Column("metric"),
        COLUMNS[0],
        COLUMNS[3],
        Column("furthest", "fraction", "worst_ape_fraction"),
    )
    note = "Played again from what the rows themselves say: a check of the model, and no prediction, so not scored."
    return (Table(title="played again", columns=columns, rows=rows, note=note),) if rows else ()


def _noise(card: Scorecard) -> tuple[Table, ...]:
    rows = tuple(
        (metric, one.groups, one.rows, *map(fraction, (one.median_ape, one.mean_ape, one.p90_ape)))
        for metric, one in card.noise.items()
    )
    columns = (Column("metric"), Column("groups", "count", "num_groups"), *COLUMNS[:4])
    return (Table(title="repeated measurements", columns=columns, rows=rows),) if rows else ()


def _regret(card: Scorecard) -> tuple[Table, ...]:
    rows = tuple(
        (source or "–", one.jobs, one.ways, fraction(one.mean_percent), fraction(one.worst_percent))
        for source, one in card.regret.items()
    )
    columns = (
        Column("source"),
        Column("jobs", "count", "num_jobs"),
        Column("ways", "count", "num_ways"),
        Column("mean", "fraction", "mean_regret_fraction"),
        Column("worst", "fraction", "worst_regret_fraction"),
    )
    return (Table(title="regret of choosing by prediction", columns=columns, rows=rows),) if rows else ()


def _worst(card: Scorecard) -> tuple[Table, ...]:
    rows = tuple(
        (
            one.label,
            one.hardware,
            Quantity(one.measured, one.unit),
            Quantity(one.predicted, one.unit),
            Quantity(one.error_percent, "points") if one.in_points else fraction(one.error_percent),
            one.where,
        )
        for one in card.worst
    )
    columns = (
        Column("row"),
        Column("hardware"),
        Column("measured"),
        Column("predicted"),
        Column("error", "fraction"),
        Column("where"),
    )
    return (Table(title="furthest off", columns=columns, rows=rows),) if rows else ()


def _unsupported(card: Scorecard) -> tuple[Table, ...]:
    rows = tuple((reason.reason, reason.rows) for reason in card.unsupported)
    columns = (Column("reason"), Column("rows", "count", "num_rows"))
    return (Table(title="not scored", columns=columns, rows=rows),) if rows else ()

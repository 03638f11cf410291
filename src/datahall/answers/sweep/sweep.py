"""A sweep: one question at many points, the best of them and by how much, and all of them for a program."""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

from datahall.answer import Answer, Cell, Quantity
from datahall.answers.ask import form_of
from datahall.answers.compare.spoken import percent, shown, spoken
from datahall.answers.follow import follow
from datahall.answers.sweep.asked import Swept, key_of, swept
from datahall.answers.sweep.charts import charts
from datahall.answers.sweep.judged import Judged, judged
from datahall.answers.sweep.point import Found
from datahall.answers.sweep.tables import tables, unit
from datahall.counted import counted
from datahall.errors import ScenarioError
from datahall.planner.sweep.best import Ranking
from datahall.planner.sweep.journal import Journal
from datahall.planner.sweep.run import run
from datahall.scenario.read import read_document
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.comparing import Sweep

log = logging.getLogger("datahall")


def sweep(scenario: Scenario) -> Answer:
    """Every value of some inputs with every value of the others, each asked as it would be alone."""
    asked, found = scenario.one(Sweep), swept(scenario)
    points = _points(scenario, asked, found)
    _check_file(found, points)
    seen = judged(asked, found.verb, points)
    return Answer(
        kind="sweep",
        inputs={"asks": found.verb.name},
        headline=_headline(found, seen),
        binding=_binding(seen),
        verdict="yes" if seen.answered else "no",
        results=_results(found, seen),
        tables=tables(found, seen),
        charts=charts(found, seen),
        notes=_notes(found, seen),
        next_commands=_next(scenario, found, seen),
    )


def _points(scenario: Scenario, asked: Sweep, found: Swept) -> list[Found]:
    path = Path(asked.journal) if asked.journal else None
    key = key_of(found, scenario) if path else ""
    with Journal(path, key, found.grid.num) as journal:
        if journal.found:
            log.info("%s of %s points are in %s", f"{len(journal.found):,}", f"{found.grid.num:,}", path)
        try:
            answers = run(found.work, journal, asked.workers)
        except KeyboardInterrupt:
            if path:
                log.info("%s points are kept in %s: ask again to go on", f"{len(journal.found):,}", path)
            raise
    return [msgspec.json.decode(one, type=Found) for one in answers]


def _check_file(found: Swept, points: list[Found]) -> None:
    """Refuse a file that is wrong whatever the point: all are refused, for one reason."""
    reasons = {one.said for one in points}
    if len(reasons) == 1 and all(one.verdict == "refused" for one in points):
        raise ScenarioError(
            f"no point can be asked: {reasons.pop()}",
            where=found.file.path,
            hint="right alone: datahall check FILE",
        )


def _headline(found: Swept, seen: Judged) -> str:
    num, ranked = counted(found.grid.num, "point"), seen.ranking
    if not seen.answered:
        first = seen.points[0].said
        return f"None of {num} has an answer; the first ({found.called(0)}): {first}"
    without = f"; {len(seen.without):,} have none" if seen.without else ""
    if ranked is None:
        return f"{counted(len(seen.answered), 'point')} of {found.grid.num:,} have an answer{without}."
    best = _value(ranked, 0, seen)
    name = spoken(ranked.lead.key)
    shared = f", as {counted(ranked.num_others, 'other')} have" if ranked.num_others else ""
    whole = f"{found.called(ranked.places[0])}{' has' if found.moving else ''}"
    margin = ""
    if ranked.margin_fraction is not None and ranked.next_place is not None:
        than = found.called(ranked.next_place)
        less = "less" if ranked.lead.is_least else "more"
        margin = f", {percent(ranked.margin_fraction)} {less} than the next best ({than})"
    return f"Of {num} {whole} the {ranked.lead.word} {name}: {best}{shared}{margin}{without}."


def _value(ranked: Ranking, place: int, seen: Judged) -> str:
    return shown(Quantity(ranked.values[place], unit(ranked.lead.key, seen)))


def _binding(seen: Judged) -> str:
    """What the inputs are worth together."""
    if seen.ranking is None or len(set(seen.ranking.values)) < 2:
        return ""
    name = spoken(seen.ranking.lead.key)
    return f"From best to worst, {name} goes from {_value(seen.ranking, 0, seen)} to {_value(seen.ranking, -1, seen)}."


def _results(found: Swept, seen: Judged) -> dict[str, Cell]:
    results: dict[str, Cell] = {
        "num_points": found.grid.num,
        "num_answered": len(seen.answered),
        "num_no": len([one for one in seen.points if one.verdict == "no"]),
        "num_refused": len([one for one in seen.points if one.verdict == "refused"]),
    }
    ranked = seen.ranking
    if ranked is None or not ranked.places:
        return results
    best = ranked.places[0]
    results["best_point"] = best
    results |= {
        f"best_input_{field.attribute}": value
        for field, value in zip(found.fields, found.point_cells(best), strict=True)
    }
    results["judged_by"] = f"{ranked.lead.word} {ranked.lead.key}"
    results["num_others_as_good"] = ranked.num_others
    results["margin_fraction"] = ranked.margin_fraction
    return results | {f"best_{key}": value for key, value in seen.points[best].results.items()}


def _notes(found: Swept, seen: Judged) -> tuple[str, ...]:
    words = [f"each point is what datahall {found.verb.name} answers of {found.file.path} with its inputs"]
    if seen.ranking is None and seen.answered:
        words.append("nobody said what the best point has the least or the most of")
    return tuple(words)


def _next(scenario: Scenario, found: Swept, seen: Judged) -> tuple[str, ...]:
    """The best point alone, and all of them as a spreadsheet."""
    place = seen.ranking.places[0] if seen.ranking else next(iter(seen.answered), 0)
    commands = [follow(scenario, tail="-o sweep.csv")]
    if seen.answered:
        form = form_of(found.verb.name)
        commands.insert(
            0, follow(read_document(form, found.file, scenario.catalog, found.given(place), bare=True))
        )
    return tuple(commands)

"""Questions, saved answers or things side by side: who is better in what, and by how much."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from datahall.answer import Answer, Cell, keyed
from datahall.answers.ask import verb_named
from datahall.answers.compare.had import had
from datahall.answers.compare.idle import refuse_unsupplied
from datahall.answers.compare.questions import ENDINGS, sides_of_files
from datahall.answers.compare.side import Side, told_apart
from datahall.answers.compare.spoken import percent, shown, spoken
from datahall.answers.compare.tables import charts, tables
from datahall.answers.compare.things import CLOUDS, LEADS, kind_of, sides_of_names, unknown
from datahall.answers.follow import follow
from datahall.answers.verbs import BY_NAME
from datahall.breakdown import Source
from datahall.counted import counted
from datahall.economics.market import day_of
from datahall.errors import ScenarioError, option
from datahall.planner.compare.difference import Figure, figures, worded
from datahall.planner.compare.lead import leads_of
from datahall.scenario.kinds import Raw
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.comparing import Comparison
from datahall.scenario.sections.money.purchase import Purchase

FILE = "file"
MOST_SIDES = 24
MOST_NAMED = 3  # results of one side that the headline names
GIVEN = ("model", "chip", "tp", "precision", "context", "batch")


def compare(scenario: Scenario) -> Answer:
    """What inputs differ, and what that did to every result, first what matters most."""
    asked, given = scenario.one(Comparison), _given(scenario)
    kind = _kind(asked, scenario)
    refuse_unsupplied(scenario, kind)
    notes: tuple[str, ...] = ()
    if kind == FILE:
        found = sides_of_files(asked.things, asked.variants, given, scenario.catalog)
    else:
        names, left = had(scenario, asked.things, kind)
        found, notes = sides_of_names(names, kind, given, scenario.one(Purchase), scenario.catalog)
        notes = (*left, *notes)
    sides = told_apart(found)
    _check_number(sides, notes)
    results = [one.results for one in sides]
    verb = sides[0].asks
    leads = leads_of(verb_named(verb).leads) if verb in BY_NAME else {}
    numbers = figures(results, leads if kind == FILE else leads | LEADS)
    words = list(worded(results))
    return Answer(
        kind="compare",
        headline=_headline(sides, numbers, words),
        binding=_alike(sides, numbers),
        results=_results(sides, numbers),
        tables=tables(sides, numbers, words, few=kind != FILE),
        charts=charts(sides, numbers) if kind == FILE else (),
        notes=(
            *notes,
            *dict.fromkeys(note for one in sides for note in one.notes),
            *_says(scenario, sides, kind),
        ),
        sources=tuple(dict.fromkeys(_sources(sides, kind))),
        next_commands=(
            *dict.fromkeys(filter(None, (one.command for one in sides))),
            follow(scenario, tail="-o compare.html"),
        ),
    )


def _given(scenario: Scenario) -> dict[str, Raw]:
    """The inputs that a person gave for all sides."""
    fields = scenario.form.fields
    return {
        name: scenario.said[fields[name].section][0][fields[name].key]
        for name in GIVEN
        if scenario.given(name)
    }


def _kind(asked: Comparison, scenario: Scenario) -> str:
    """What the things are, which is the same of all."""
    kinds = {
        name: FILE if name.endswith(ENDINGS) else kind_of(name, scenario.catalog) for name in asked.things
    }
    several = {kind for kind in kinds.values() if kind}
    clouds = several == {CLOUDS}
    wrong = next((name for name, kind in kinds.items() if not kind and not clouds), None)
    if wrong is not None:
        raise unknown(wrong, scenario.catalog)
    if len(several) > 1:
        said = ", ".join(f"{name} is a {kind.removesuffix('s')}" for name, kind in kinds.items())
        raise ScenarioError(
            f"things of several kinds: {said}", field="things", hint="compare things of one kind"
        )
    (kind,) = several
    if asked.variants and kind != FILE:
        raise ScenarioError(
            f"{option('set')} changes a scenario file, and none is named", field="set", hint="leave it out"
        )
    return kind


def _check_number(sides: Sequence[Side], notes: Sequence[str]) -> None:
    if len(sides) < 2:
        hint = "; ".join(notes) or f"two or more, or one scenario file and {option('set', 'chips=2048')}"
        raise ScenarioError("there is only one thing to compare", field="things", hint=hint)
    if len(sides) > MOST_SIDES:
        raise ScenarioError(
            f"{len(sides)} things are more than can be read side by side", field="things",
            hint=f"at most {MOST_SIDES}; many values of an input: datahall sweep",
        )  # fmt: skip


def _headline(sides: Sequence[Side], found: Sequence[Figure], words: Sequence[object]) -> str:
    differing = [one for one in found if one.differs]
    names = f"{', '.join(one.name for one in sides[:-1])} and {sides[-1].name}"
    if not differing and not words:
        return f"{names} differ in nothing: all {counted(len(found), 'number')} are alike."
    judged = [one for one in differing if one.best is not None]
    if not judged:
        main = ", ".join(spoken(one.key) for one in differing[:MOST_NAMED])
        of = f", most of all in {main}" if main else ", in words only"
        return f"{names} differ in {len(differing)} of {counted(len(found), 'number')}{of}."
    if len(sides) == 2:
        return _of_two(sides, judged)
    parts: list[str] = []
    for place in dict.fromkeys(one.best for one in judged):
        own = [_margin(one) for one in judged if one.best == place][:MOST_NAMED]
        assert place is not None
        parts.append(f"{sides[place].name} {'in' if parts else 'leads in'} {_listed(own)}")
    return f"{'; '.join(parts)}."


def _of_two(sides: Sequence[Side], judged: Sequence[Figure]) -> str:
    """What the second is better and worse in."""
    first, second = (one.name for one in sides)
    better, worse = ([one for one in judged if one.best == place][:MOST_NAMED] for place in (1, 0))
    ways = [
        f"{word} in {_listed(map(_change, some))}"
        for word, some in (("better", better), ("worse", worse))
        if some
    ]
    return f"{second} is {', and '.join(ways)} than {first}."


def _change(one: Figure) -> str:
    """What became of a result: by how much more or less, and what it is now."""
    before, now = one.values[0], one.values[1]
    assert before is not None
    assert now is not None
    less = "less" if now.value < before.value else "more"
    by = f"{percent(one.share_fraction)} {less}, " if one.share_fraction is not None else ""
    return f"{spoken(one.key)} ({by}{shown(now)})"


def _margin(one: Figure) -> str:
    """What the best has, and by how much it is better than the next."""
    assert one.best is not None
    value = one.values[one.best]
    assert value is not None
    assert one.lead is not None
    less = "less" if one.lead.is_least else "more"
    by = f", {percent(one.margin_fraction)} {less} than the next" if one.margin_fraction is not None else ""
    return f"{spoken(one.key)} ({shown(value)}{by})"


def _listed(parts: Iterable[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def _alike(sides: Sequence[Side], found: Sequence[Figure]) -> str:
    """How much of it differs at all, and whether the bands of the first result keep it apart."""
    differing = [one for one in found if one.differs]
    if not differing:
        return ""
    said = f"{len(differing)} of {counted(len(found), 'number')} differ."
    main = next((one for one in differing if one.best is not None), None)
    if main is None or len(sides) != 2 or not main.bands_meet:
        return said
    return (
        f"{said} The bands of {spoken(main.key)} overlap: both rest on the same models, which err together."
    )


def _results(sides: Sequence[Side], found: Sequence[Figure]) -> dict[str, Cell]:
    """Every number of every side, who has the best, and by how much."""
    results: dict[str, Cell] = {
        "num_sides": len(sides),
        "num_results": len(found),
        "num_differing": len([one for one in found if one.differs]),
    }
    for one in found:
        for side, value in zip(sides, one.values, strict=True):
            results[f"{keyed(side.name)}_{one.key}"] = value
        if one.best is not None:
            results[f"best_{one.key}"] = sides[one.best].name
            results[f"margin_{one.key}_fraction"] = one.margin_fraction
        if len(sides) == 2 and one.differs:
            results[f"change_{one.key}_fraction"] = one.share_fraction
    return results


def _says(scenario: Scenario, sides: Sequence[Side], kind: str) -> tuple[str, ...]:
    """What each says alone."""
    if kind == FILE:
        return tuple(f"{one.name}: {one.says}" for one in sides if one.says)
    day = day_of(scenario.one(Purchase), scenario.catalog)
    prices = f"prices by the hour are medians of fresh offers as of {day}, without auctions and outliers"
    power = "operations of a joule are dense peaks at the power limit"
    return (prices, power) if kind == "chip" else (prices,) if kind == CLOUDS else ()


def _sources(sides: Sequence[Side], kind: str) -> Iterable[Source]:
    """What things are cited from; a question has its own, in its own answer."""
    return () if kind == FILE else (source for one in sides for source in one.sources)

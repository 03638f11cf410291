"""What the points of a sweep are judged by: the result that the best has the least or the most of, and those shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from datahall.answer import Cell, Quantity
from datahall.answers.sweep.point import Found
from datahall.answers.verb import Verb
from datahall.errors import ScenarioError, nearest
from datahall.planner.compare.lead import LEAST, MOST, Lead, leads_of
from datahall.planner.sweep.best import Ranking, ranking
from datahall.scenario.sections.comparing import Sweep


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """The points in the order in which they were asked, their ranking, and the results worth a column."""

    points: tuple[Found, ...]
    ranking: Ranking | None
    columns: tuple[str, ...]
    keys: tuple[str, ...]  # every result that any point has

    @property
    def answered(self) -> tuple[int, ...]:
        """The points that have a yes."""
        return tuple(place for place, one in enumerate(self.points) if one.verdict == "yes")

    @property
    def without(self) -> tuple[int, ...]:
        """The others: a no, or refused."""
        return tuple(place for place, one in enumerate(self.points) if one.verdict != "yes")


def number(found: Found, key: str) -> float | None:
    """A result of a point as a number."""
    value = found.results.get(key)
    if isinstance(value, Quantity):
        return value.value
    return None if isinstance(value, str | bool) or value is None else float(value)


def judged(asked: Sweep, verb: Verb, points: Sequence[Found]) -> Judged:
    """Rank the points that have a yes, and choose what is shown of each."""
    keys = tuple(dict.fromkeys(key for one in points for key in one.results))
    good = [one for one in points if one.verdict == "yes"]
    numeric = [key for key in keys if any(number(one, key) is not None for one in good)]
    leads = leads_of(verb.leads)
    main = [key for key in leads if key in numeric]
    usual = Counter(one.main for one in good if one.main).most_common(1)
    lead = (
        _lead(asked.best, leads, numeric) if asked.best and good else next((leads[key] for key in main), None)
    )
    first = [lead.key] if lead else []
    chosen = (
        _known(asked.show, keys) if asked.show and good else [*main, *(key for key, _ in usual), *numeric]
    )
    values = [number(one, lead.key) if lead and one.verdict == "yes" else None for one in points]
    return Judged(
        points=tuple(points),
        ranking=ranking(lead, values) if lead and good else None,
        columns=tuple(dict.fromkeys([*first, *chosen])),
        keys=keys,
    )


def _lead(text: str, leads: dict[str, Lead], numeric: Sequence[str]) -> Lead:
    """The result that a person wants the least or the most of."""
    word, _, rest = text.partition(" ")
    said, key = (word, rest.strip()) if word in (LEAST, MOST) and rest else ("", text)
    if key not in numeric:
        raise _unknown(key, numeric, "best")
    if said:
        return Lead(key, said == LEAST)
    if key not in leads:
        raise ScenarioError(
            f"whether less or more of {key} is better is not known",
            field="best",
            hint=f"{LEAST} {key}, or {MOST} {key}",
        )
    return leads[key]


def _known(names: Sequence[str], keys: Sequence[str]) -> list[str]:
    unknown = next((name for name in names if name not in keys), None)
    if unknown is not None:
        raise _unknown(unknown, keys, "show")
    return list(names)


def _unknown(name: str, keys: Sequence[str], field: str) -> ScenarioError:
    close = nearest(name, keys)
    guess = f"did you mean {', '.join(close)}?" if close else f"results: {', '.join(keys)}"
    return ScenarioError(f"no point has a result {name}", field=field, hint=guess)


def cell(found: Found, key: str) -> Cell:
    """A result as it stands in a table: a number without its unit, which the head of its column has."""
    value = found.results.get(key)
    return value.value if isinstance(value, Quantity) else value

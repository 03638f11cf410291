"""What the words mean: unit, definition, whose meaning it is and what it is easily taken for."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import msgspec

from datahall.answer import Answer, Column, Table
from datahall.answers.follow import follow
from datahall.errors import UnknownNameError
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.views import Files

UNITS = {
    "s": "seconds",
    "bytes": "bytes",
    "bytes_per_s": "bytes per second",
    "fraction": "share of 1",
    "count": "a count",
    "flop_per_s": "FLOP per second",
    "flop_per_byte": "FLOP per byte",
    "tokens_per_s": "tokens per second",
    "usd": "US dollars",
    "ratio": "ratio",
    "parameters": "a count",
}


class Term(msgspec.Struct, frozen=True):
    """One word of the nomenclature."""

    name: str
    meaning: str
    unit: str = ""
    like: str = ""
    beware: str = ""

    @property
    def unit_in_words(self) -> str:
        return UNITS.get(self.unit, self.unit)


@cache
def terms() -> dict[str, Term]:
    """Every term under its short name."""
    text = Path(__file__).with_name("nomenclature.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, Term])


def explain(scenario: Scenario) -> Answer:
    """What a term means; without one, all of them."""
    word = scenario.one(Files).term
    if not word:
        return _all(scenario)
    key = _find(word)
    term = terms()[key]
    rows = (
        ("unit", term.unit_in_words or "none"),
        ("meaning as in", term.like),
        ("beware", term.beware),
    )
    return Answer(
        kind="term",
        inputs={"term": key},
        headline=f"{key}: {term.name}."
        if term.name.lower() != key.lower()
        else f"{key[:1].upper()}{key[1:]}.",
        binding=term.meaning,
        results={"unit": term.unit, "name": term.name},
        tables=(
            Table(
                title="in use",
                columns=(Column("of it"), Column("is")),
                rows=tuple(row for row in rows if row[1]),
            ),
        ),
        next_commands=(follow(scenario, changes={"term": None}),),
    )


def _find(word: str) -> str:
    wanted = _folded(word)
    for key, term in terms().items():
        if wanted in {_folded(key), _folded(term.name)}:
            return key
    known = [*terms(), *(term.name for term in terms().values())]
    raise UnknownNameError("term", word, known, field="term", hint="all of them: datahall explain")


def _folded(word: str) -> str:
    return "".join(letter for letter in word.lower() if letter.isalnum())


def _all(scenario: Scenario) -> Answer:
    named = terms().items()
    meanings = Table(
        title="nomenclature",
        columns=(Column("term"), Column("in full"), Column("unit"), Column("meaning")),
        rows=tuple((key, term.name, term.unit_in_words, term.meaning) for key, term in named),
    )
    origins = Table(
        title="whose meaning it is, and what it is taken for",
        columns=(Column("term"), Column("as in"), Column("beware")),
        rows=tuple((key, term.like, term.beware) for key, term in named),
    )
    return Answer(
        kind="nomenclature",
        headline=f"{len(terms())} terms, each with one meaning here.",
        tables=(meanings, origins),
        next_commands=(follow(scenario, changes={"term": "MFU"}),),
    )

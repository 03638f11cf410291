"""Random questions, drawn from the declarations: a verb of the table, some of its inputs, values by their kinds.

A newly declared input is drawn without a word here, unless its kind is new or its values must be chosen to be cheap.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tests.answers.sayable import (
    ALWAYS,
    BY_KIND,
    BY_UNIT,
    CHEAP,
    COMPANY,
    MOST_AT_ONCE,
    NOT_ASKED,
    OF_VERB,
    ONE_OF,
    PARTS,
    REFUSED,
    ROWS,
)

from datahall.answers.ask import form_of
from datahall.answers.catalog.names import names
from datahall.answers.verbs import VERBS
from datahall.catalog import load
from datahall.errors import DatahallError
from datahall.scenario.field import Field
from datahall.scenario.form import Form
from datahall.scenario.kinds import (
    Choice,
    Flag,
    Kind,
    Listed,
    Name,
    Quantity,
    Reading,
)
from datahall.scenario.sections.failure import FABRIC_PARTS, SERVICE_PARTS


class Asked(NamedTuple):
    """A question: inputs by name, and rows of tables that flags give whole, in the types that a file would have."""

    verb: str
    said: dict[str, Any]
    tables: dict[str, list[dict[str, Any]]]


def value_of(field: Field, verb: str, draw: random.Random) -> Any:
    """A value that the input may have."""
    kind, name = field.kind, field.name
    if isinstance(kind, Flag):
        return field.default is False or draw.random() < 0.5  # nobody types the false that it is anyway
    known = OF_VERB.get((verb, name), CHEAP.get(name, ()))
    return draw.choice(legal(kind, known) or legal(kind, samples(kind)))


def legal(kind: Kind, values: Sequence[Any]) -> list[Any]:
    """Those that the declaration allows."""
    found = []
    for value in values:
        try:
            kind.read(value, Reading(catalog=load()))
        except DatahallError:
            continue
        found.append(value)
    return found


def samples(kind: Kind) -> Sequence[Any]:
    """Some values of a kind."""
    if type(kind) in BY_KIND:
        return BY_KIND[type(kind)]
    if isinstance(kind, Choice):
        return kind.options
    if isinstance(kind, Name):
        return sorted(names(kind))
    if isinstance(kind, Listed):
        return [[one] for one in samples(kind.of)]
    if isinstance(kind, Quantity):
        return BY_UNIT[kind.unit]
    assert kind.sample, f"say in BY_KIND how to draw a {type(kind).__name__}"
    return [kind.sample.strip('"')]


def inputs(form: Form) -> list[str]:
    """Every declared input of a verb: by name, and table.key where flags give a table whole."""
    tables = [
        f"{concept.name}.{field.key}" for concept in form.tables for field in form.sections[concept.name]
    ]
    return [*form.fields, *tables]


def questions(verb: str, draw: random.Random, least: int) -> Iterator[Asked]:
    """Questions of a verb that together say each of its inputs, in random company."""
    form = form_of(verb)
    fixed = {*form.required, *ALWAYS.get(verb, ())}
    waiting = [name for name in inputs(form) if name not in fixed]
    for name in [name for name in waiting if (verb, name) in REFUSED]:
        waiting.remove(name)
        yield question(form, [name], draw)
    draw.shuffle(waiting)
    num, most = 0, MOST_AT_ONCE.get(verb, 4)
    while waiting or num < (1 if verb in MOST_AT_ONCE else least):
        some = [waiting.pop() for _ in range(min(draw.randint(1, most), len(waiting)))]
        asked = question(form, some, draw)
        yield asked
        num += 1
        lost = set(some) - said_in(asked)  # what cannot stand beside another of them is said alone
        waiting = [*waiting, *sorted(lost)] if len(some) > 1 else waiting


def said_in(asked: Asked) -> set[str]:
    """The inputs that a question says."""
    rows = {f"{table}.{key}" for table, rows in asked.tables.items() for row in rows for key in row}
    return {*asked.said, *rows}


def question(form: Form, names: Sequence[str], draw: random.Random) -> Asked:
    """A question that says some inputs, and what must stand beside them."""
    asked = Asked(form.verb, {}, {})
    for name in (*form.required, *ALWAYS.get(form.verb, ()), *names):
        say(form, asked, name, draw)
    rows = asked.tables.get("failure", ())
    if (any("cubes" in row for row in rows) and not has_cubes(form, asked)) or (
        any({*FABRIC_PARTS} & {*row} for row in rows) and "on" not in asked.said
    ):
        asked.tables.pop("failure")
    while lost := [name for name in asked.said if not is_needed(form, asked, name)]:
        asked.said.pop(lost[0])  # what it says something about was taken away again
    if form.verb in ONE_OF and not {*ONE_OF[form.verb]} & {*asked.said}:
        say(form, asked, ONE_OF[form.verb][0], draw)
    if form.verb == "simulate run" and "chips" not in asked.said:
        asked.said["chips"] = 8  # a plan by a deadline finds them
    if form.verb == "show collective" and not {"size", "experts"} & {*asked.said}:
        asked.said["size"] = "1GB"
    return asked


def has_cubes(form: Form, asked: Asked) -> bool:
    """Whether the machine is still the torus that was said for its cubes; a plan of a service weighs kinds of chips."""
    wanted = COMPANY["failure.cubes"]
    own = [
        name
        for name in ("on", "chips")
        if name in form.fields and legal(form.fields[name].kind, [wanted[name]])
    ]
    return all(asked.said.get(name) == wanted[name] for name in own)


def is_needed(form: Form, asked: Asked, name: str) -> bool:
    """Whether an input stands beside one of those that it needs, or needs none."""
    needs = taken_needs(form, form.fields[name])
    return not needs or any(
        str(asked.said[other]) == wanted
        if wanted and other in asked.said
        else other in {*asked.said, *asked.tables}
        for other, _, wanted in needs
    )


def taken_needs(form: Form, field: Field) -> list[tuple[str, str, str]]:
    """What an input needs beside it, of what the verb takes."""
    taken = {*form.fields, *(concept.name for concept in form.tables)}
    return [need.partition("=") for need in field.kind.needs if need.partition("=")[0] in taken]


def say(form: Form, asked: Asked, name: str, draw: random.Random, value: Any = None) -> None:
    """Add an input with what it needs, and take away what it cannot stand beside."""
    table, _, key = name.partition(".")
    if table in {concept.name for concept in form.tables}:
        say_in_table(form, asked, table, key, draw)
    else:
        field = form.fields[name]
        apart = {
            *field.kind.against,
            *(other for other in asked.said if name in form.fields[other].kind.against),
        }
        for other in apart:
            asked.said.pop(other, None)
        say_needed(form, asked, field, draw)
        given = value_of(field, form.verb, draw) if value is None else value
        for other in [other for other in asked.said if COMPANY.get(other, {}).get(name, given) != given]:
            asked.said.pop(other)  # it wants other company, and is said without this
        asked.said[name] = given
    for other, wanted in {**COMPANY.get(table, {}), **COMPANY.get(name, {})}.items():
        if wanted is None and other not in form.required:
            asked.said.pop(other, None)
            asked.tables.pop(other, None)
        elif other in form.fields and other != name and legal(form.fields[other].kind, [wanted]):
            for one in [
                one for one in asked.said if one != name and COMPANY.get(one, {}).get(other, wanted) != wanted
            ]:
                asked.said.pop(one)  # it wants another company
            asked.said[other] = wanted
        elif other in {concept.name for concept in form.tables}:
            asked.tables.setdefault(other, wanted)


def say_needed(form: Form, asked: Asked, field: Field, draw: random.Random) -> None:
    needs = taken_needs(form, field)
    met = [other for other, _, wanted in needs if other in {*asked.said, *asked.tables} and not wanted]
    if needs and not met:
        other, _, wanted = needs[0]
        say(form, asked, other, draw, wanted or None)


def say_in_table(form: Form, asked: Asked, table: str, key: str, draw: random.Random) -> None:
    row = asked.tables.setdefault(table, [dict(ROWS[form.verb][table])])[0]
    if not key:
        return
    field = form.of(table)[key]
    for other in {*field.kind.against, *(one for one in row if key in form.of(table)[one].kind.against)}:
        row.pop(other, None)
    own = form.of(table)  # what stands elsewhere is in its company
    needs = [need.partition("=") for need in field.kind.needs if need.partition("=")[0] in own]
    if needs and not any(other in row and not wanted for other, _, wanted in needs):
        other, _, wanted = needs[0]
        row[other] = wanted or value_of(form.of(table)[other], form.verb, draw)
        drop_misled(form, table, row, other)
    if table == "failure" and (key in FABRIC_PARTS or key == "left"):
        part = "links" if key == "left" else key
        for other in (
            {*FABRIC_PARTS, *SERVICE_PARTS, "drain"} - {part} if key == "cubes" or part not in row else ()
        ):
            row.pop(other, None)
        row |= {part: draw.choice(PARTS)} | ({"left": "50 %"} if "left" in own else {})
        for other in ("start", "duration") if form.verb == "simulate serve" else ():
            row.pop(other, None)
        return
    row[key] = value_of(field, form.verb, draw)
    if table == "failure" and not {*FABRIC_PARTS} & {*row}:
        row.pop("left", None)
    if form.verb == "simulate serve" and table == "failure" and key in ("start", "duration"):
        for other in (*FABRIC_PARTS, "left"):  # which a service lacks from the beginning and for good
            row.pop(other, None)
        if not {*SERVICE_PARTS} & {*row}:
            row["replicas"] = "0"
    drop_misled(form, table, row, key)


def drop_misled(form: Form, table: str, row: dict[str, Any], key: str) -> None:
    """Take away the keys of a row that need another value of one of them."""
    for other in list(row):
        if (needed := of_key(form, table, other, key)) and f"{key}={row[key]}" not in needed:
            row.pop(other)


def of_key(form: Form, table: str, other: str, key: str) -> list[str]:
    """The values of a key that another key of its table needs."""
    return [need for need in form.of(table)[other].kind.needs if need.startswith(f"{key}=")]


def all_questions(seed: int, least: int) -> list[Asked]:
    """Questions of every verb; the same for one seed, whatever other verbs there are."""
    return [
        asked for verb in asked_verbs() for asked in questions(verb, random.Random(f"{seed} {verb}"), least)
    ]


def asked_verbs() -> list[str]:
    """The verbs that are asked: those that a file may ask, and that take anything."""
    return [verb.name for verb in VERBS if verb.name not in NOT_ASKED and verb.takes]

"""The reference of verbs and inputs as a page, drawn from the table of verbs and the declarations."""

from __future__ import annotations

from math import isfinite

from datahall.answers.ask import form_of
from datahall.answers.verb import Verb
from datahall.answers.verbs import GROUPS, VERBS, words
from datahall.scenario.field import CONCEPTS, Concept, Field, fields
from datahall.scenario.kinds import (
    LARGEST,
    Choice,
    Count,
    Kind,
    Listed,
    Mapped,
    Name,
    Percentile,
    Quantity,
    Rate,
    Share,
    Text,
)
from datahall.units import fmt

OPENING = """# Reference

Every verb with its inputs, and every section of a scenario file with its keys, drawn from the declarations in
`src/datahall/scenario/` and the table of verbs in `src/datahall/answers/verbs/`.

An input has one name: `{flag}` on the command line is `{keyword}=` in Python and `{key}` in a file, which
begins with `version = 1` and may say `ask = "{verb}"`. Quantities bring their unit ("50 ms", "80 GB", "400 Gb/s"); in
Python a bare number is in SI. Shares are "80 %" or 0.8.
"""


def reference() -> str:
    """The page."""
    form = form_of("plan serve")
    parts = [OPENING.format(flag=form.flag("ttft"), keyword="ttft", key=form.key("ttft"), verb=form.verb)]
    for group in GROUPS:
        parts += [f"## {group.name}", f"{group.about[:1].upper()}{group.about[1:]}."]
        parts += [_verb(verb) for verb in VERBS if verb.group == group.name]
    parts += [
        "## Sections of a file",
        "A scenario is TOML or JSON. Which verbs take a section stands beside it.",
    ]
    parts += [_section(concept) for concept in CONCEPTS.values() if _takers(concept)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _verb(verb: Verb) -> str:
    form = form_of(verb.name)
    lines = [f"### {verb.name}", "", f"{verb.about[:1].upper()}{verb.about[1:]}. {verb.details}".strip(), ""]
    lines += ["```text", *words(verb), "```"]
    rows = [
        f"| `{form.flag(name)}` | {_needed(verb, name)} | {_cell(allowed(field.kind))} | {_cell(field.shown_default)} "
        f"| {_cell(field.kind.help)} |"
        for name, field in form.fields.items()
    ]
    rows += [
        f"| `{form.flag(concept.name)}` | `{concept.name}=` | table, or several |  | {_cell(_about(concept))} |"
        for concept in form.tables
    ]
    head = ["", "| input | in Python | may be | default | |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([*lines, *head, *rows] if rows else lines)


def _needed(verb: Verb, name: str) -> str:
    return f"`{name}=`" + (", required" if name in verb.required else "")


def _section(concept: Concept) -> str:
    title = f"`[{concept.name}]`" if concept.name else "the head of a file"
    takers = ", ".join(f"`{verb.name}`" for verb in _takers(concept))
    by_some = [
        f"`{verb.name}`"
        for verb in _takers(concept)
        for takes in verb.takes
        if takes.section == concept.name and takes.many
    ]
    several = f", or several `[[{concept.name}]]`" if concept.many or by_some else ""
    several += f" ({', '.join(by_some)})" if by_some else ""
    lines = [f"### {title}{several}", "", f"{_about(concept)} Taken by {takers}.", ""]
    lines += ["| key | may be | default | |", "| --- | --- | --- | --- |"]
    lines += [_key(field) for field in fields(concept.name)]
    return "\n".join(lines)


def _key(field: Field) -> str:
    return f"| `{field.key}` | {_cell(allowed(field.kind))} | {_cell(field.shown_default)} | {_cell(_words(field))} |"


def _words(field: Field) -> str:
    text = field.kind.help
    if field.kind.needs:
        text += f" Beside {' or '.join(field.kind.needs)}."
    if field.kind.against:
        text += f" Not beside {', '.join(field.kind.against)}."
    return text


def _takers(concept: Concept) -> list[Verb]:
    return [
        verb for verb in VERBS if verb.by_file and concept.name in {takes.section for takes in verb.takes}
    ]


def _about(concept: Concept) -> str:
    return (concept.struct().__doc__ or "").strip().split("\n")[0]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def allowed(kind: Kind) -> str:
    """What an input may hold, with its unit and bounds."""
    match kind:
        case Count():
            noun = "tokens" if kind.unit == "tokens" else "whole number"
            most = f" to {kind.most:,}" if kind.most < LARGEST else ""
            return f"{noun}, from {kind.least:,}{most}"
        case Rate():
            return "number per second" + (", or inf" if kind.endless else "")
        case Quantity():
            return _quantity(kind)
        case Percentile():
            return "of a hundred, e.g. 95"
        case Share():
            low, high = (f"{100 * bound:g} %" for bound in (kind.least, kind.most))
            return f"share {'above' if kind.above else 'from'} {low} {'and below' if kind.below else 'to'} {high}"
        case Choice():
            return ", ".join(kind.options)
        case Listed():
            return f"list: {allowed(kind.of)}"
        case Name():
            return f"name of {'an' if kind.of[0] in 'aeiou' else 'a'} {kind.of}"
        case Mapped():
            return f"table: {allowed(kind.of)}"
    if type(kind) is Text:
        return "text"
    about = (type(kind).__doc__ or "").strip().split("\n")[0].rstrip(".")
    return f"{about[:1].lower()}{about[1:]}"


def _quantity(kind: Quantity) -> str:
    names = {
        "s": "time",
        "bytes": "size",
        "bytes_per_s": "rate",
        "tokens": "tokens",
        "w": "power",
        "usd": "US dollars",
    }
    noun = names.get(kind.unit, "number")
    low = (
        f" {'above' if kind.above else 'from'} {fmt(kind.least, kind.unit)}"
        if kind.least or kind.above
        else ""
    )
    high = f" to {fmt(kind.most, kind.unit)}" if isfinite(kind.most) else ""
    return f"{noun}{low}{high}"

"""The forms of the page: every verb with its inputs as they were declared."""

from __future__ import annotations

from functools import cache

import msgspec

from datahall.answers.ask import form_of
from datahall.answers.catalog.names import inner
from datahall.answers.verb import Verb
from datahall.answers.verbs import BY_NAME, GROUPS, words
from datahall.scenario.field import Concept, Field
from datahall.scenario.kinds import Choice, Listed, Name, Plain
from datahall.scenario.read import VERSION


class Input(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One input of a form."""

    name: str
    section: str
    key: str
    help: str
    placeholder: str
    kind: str
    default: str = ""
    words: tuple[str, ...] = ()
    example: str = ""
    group: str = ""
    names: bool = False  # whether there is a list to choose from
    listed: bool = False  # whether it takes several, with commas between
    is_required: bool = False
    is_argument: bool = False
    is_rare: bool = False
    needs: tuple[str, ...] = ()
    against: tuple[str, ...] = ()


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A section of a form: what it is about, and its inputs; an `inline` one is a table."""

    name: str
    about: str
    is_inline: bool
    inputs: tuple[Input, ...]


class VerbForm(msgspec.Struct, frozen=True, kw_only=True):
    """One question that can be asked."""

    name: str
    about: str
    details: str
    group: str
    parts: tuple[Part, ...]
    artefacts: tuple[str, ...]
    is_traced: bool
    examples: tuple[str, ...]  # lines to copy


class Heading(msgspec.Struct, frozen=True):
    """Verbs that begin with one word."""

    name: str
    about: str
    verbs: tuple[str, ...]


class Forms(msgspec.Struct, frozen=True):
    """All that a page can ask."""

    version: int
    groups: tuple[Heading, ...]
    verbs: dict[str, str]  # by name, what each is about


ALSO = ("validate",)  # beside those that a file may ask: others write, or read what only their caller has
ASKED = tuple(verb.name for verb in BY_NAME.values() if verb.by_file or verb.name in ALSO)


@cache
def forms() -> Forms:
    """The verbs by their groups."""
    headings = tuple(
        Heading(group.name, group.about, tuple(name for name in ASKED if BY_NAME[name].group == group.name))
        for group in GROUPS
    )
    return Forms(VERSION, tuple(one for one in headings if one.verbs), {n: BY_NAME[n].about for n in ASKED})


@cache
def form_for(name: str) -> VerbForm:
    """The form of a verb."""
    verb, form = BY_NAME[name], form_of(name)
    return VerbForm(
        name=name,
        about=verb.about,
        details=verb.details,
        group=verb.group,
        parts=tuple(
            Part(
                name=concept.name,
                about=_about(concept),
                is_inline=concept.inline,
                inputs=tuple(_input(verb, field) for field in form.of(concept.name).values()),
            )
            for concept in form.concepts
        ),
        artefacts=verb.artefacts,
        is_traced=verb.traced,
        examples=tuple(words(verb)),
    )


def _about(concept: Concept) -> str:
    return (concept.struct().__doc__ or "").strip().split("\n")[0]


def _input(verb: Verb, field: Field) -> Input:
    kind = field.kind
    default: Plain = field.shown_default
    return Input(
        name=field.name,
        section=field.section,
        key=field.key,
        help=kind.help,
        placeholder=field.placeholder,
        kind=type(kind).__name__.lower(),
        default=str(default),
        words=kind.words,
        example=kind.sample,
        group=kind.group,
        names=isinstance(inner(kind), Name | Choice),
        listed=isinstance(kind, Listed),
        is_required=field.name in verb.required,
        is_argument=field.name in verb.arguments,
        is_rare=kind.rare,
        needs=kind.needs,
        against=kind.against,
    )

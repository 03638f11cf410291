"""The form of a question: which inputs a verb takes, which it must have, and how each border spells them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

import msgspec

from datahall.errors import ScenarioError, nearest
from datahall.scenario.field import CONCEPTS, Concept, Field, fields
from datahall.scenario.kinds import Flag
from datahall.scenario.takes import Takes

# names that every question has at some border
CATALOG = "catalog"
RESERVED = {CATALOG, "format", "json", "output", "quiet", "color", "debug", "help", "scenario"}


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of one verb."""

    verb: str
    arguments: tuple[str, ...] = ()  # inputs that need no flag, in this order
    required: tuple[str, ...] = ()
    sections: dict[str, tuple[Field, ...]]  # what it takes of each
    several: tuple[str, ...] = ()  # sections of which a file may have several tables

    @property
    def concepts(self) -> tuple[Concept, ...]:
        """The sections it takes, in order."""
        return tuple(
            msgspec.structs.replace(CONCEPTS[name], many=CONCEPTS[name].many or name in self.several)
            for name in self.sections
        )

    @property
    def tables(self) -> tuple[Concept, ...]:
        """Those that flags and keywords give whole, one table each."""
        return tuple(concept for concept in self.concepts if concept.inline)

    @property
    def fields(self) -> dict[str, Field]:
        """Its inputs by the name of flag and keyword."""
        return {
            field.name: field
            for section, found in self.sections.items()
            if not CONCEPTS[section].inline
            for field in found
        }

    def of(self, section: str) -> dict[str, Field]:
        """The inputs of one section by their keys in a file."""
        return {field.key: field for field in self.sections.get(section, ())}

    def named(self, word: str) -> Field:
        """An input by the name of its flag or keyword, or by its place in a file: "chips", "fabric.chips"."""
        name, own = word.strip().replace("-", "_"), self.fields
        found = own.get(name) or next((field for field in own.values() if field.path == name), None)
        if found is None:
            close = nearest(word, [*own, *(field.path for field in own.values())])
            guess = f"did you mean {', '.join(close)}?" if close else f"known: {', '.join(own)}"
            raise ScenarioError(f"{self.verb} takes no {word}", hint=guess)
        return found

    def flag(self, name: str, value: str | None = None) -> str:
        """An input as the command line spells it."""
        field = self.fields.get(name)
        if field is not None and name in self.arguments:
            return field.placeholder if value is None else quoted(value)
        if field is None and name not in {concept.name for concept in self.tables}:
            return name if value is None else f"{name} {value}"
        if field is not None and isinstance(field.kind, Flag):
            return flag_of(f"no_{name}" if value == str(False) else name)
        return flag_of(name) if value is None else f"{flag_of(name)} {quoted(value)}"

    def key(self, name: str, value: str | None = None) -> str:
        """An input as a file spells it."""
        field = self.fields.get(name)
        table = next((concept for concept in self.tables if concept.name == name), None)
        if table is not None:
            head = f"[[{name}]]" if table.many else f"[{name}]"
            return head if value is None else f"{head} with {value}"
        path = field.path if field else name
        if value is None:
            return path
        if field is not None and isinstance(field.kind, Flag):
            value = value.lower()
        bare = value.replace(".", "", 1).isdecimal() or value in ("true", "false")
        return f"{path} = {value}" if bare else f'{path} = "{value}"'


def form(
    verb: str,
    takes: Sequence[Takes],
    arguments: Sequence[str] = (),
    required: Sequence[str] = (),
    means: Mapping[str, str] | None = None,
) -> Form:
    """The form of a verb; a name stands for one input only, and `means` what the verb's own help says of it."""
    made = Form(
        verb=verb,
        arguments=tuple(arguments),
        required=tuple(required),
        sections={one.section: _taken(one, means or {}) for one in takes},
        several=tuple(one.section for one in takes if one.many),
    )
    names = [
        field.name for concept in made.concepts if not concept.inline for field in made.sections[concept.name]
    ]
    names += [concept.name for concept in made.tables]
    twice = {name for name in names if names.count(name) > 1}
    needed = {need.partition("=")[0] for one in takes for _, needs in one.needs for need in needs}
    missing = {*arguments, *required, *(means or ()), *needed} - set(names)
    assert not twice, f"{verb} takes {twice} twice"
    assert not RESERVED & set(names), f"{verb} takes {RESERVED & set(names)}, which every question has"
    assert not missing, f"{verb} does not take {missing}"
    return made


def _taken(takes: Takes, means: Mapping[str, str]) -> tuple[Field, ...]:
    found = fields(takes.section)
    words = {field.key: {field.name, f"{field.kind.group}…"} for field in found}
    unknown = {*takes.only, *takes.without} - set().union(*words.values())
    assert not unknown, f"[{takes.section}] has no {unknown}"
    inline = CONCEPTS[takes.section].inline
    taken = [
        field if inline or field.name not in means else field.with_help(means[field.name])
        for field in found
        if not words[field.key] & {*takes.without} and (not takes.only or words[field.key] & {*takes.only})
    ]
    needs = dict(takes.needs)
    unknown = {*takes.anyway, *needs} - {field.name for field in taken}
    assert not unknown, f"[{takes.section}] is not taken with {unknown}"
    taken = [field.needing(needs[field.name]) if field.name in needs else field for field in taken]
    taken = [field.of_several() if field.name in takes.several else field for field in taken]
    return tuple(field.beside({one.key for one in taken}, takes.anyway) for field in taken)


def flag_of(name: str) -> str:
    """A name as the flag of the command line.

    >>> flag_of("global_batch")
    '--global-batch'
    """
    return f"--{name.replace('_', '-')}"


def quoted(value: str) -> str:
    """A value as a shell reads it.

    >>> quoted("h100-sxm"), quoted("0.5 %"), quoted("it's")
    ('h100-sxm', '"0.5 %"', '"it\\'s"')
    """
    safe = shlex.quote(value)
    return f'"{value}"' if safe.startswith(("'", '"')) and not set(value) & set('"$`\\!') else safe

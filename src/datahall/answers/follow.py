"""The next command: the same question changed, or another one about the same thing, with all that was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from datahall.answers.ask import form_of
from datahall.errors import DatahallError
from datahall.scenario.field import CONCEPTS, Field, Section, fields
from datahall.scenario.form import CATALOG, Form, flag_of, quoted
from datahall.scenario.kinds import Flag, Plain, Reading
from datahall.scenario.scenario import Scenario
from datahall.scenario.words import Domain

MOST_INLINE = 3  # tables of one kind that flags give whole: more of them are asked for by their file
Tables = Mapping[str, Sequence[Mapping[str, Plain]]]


def follow(
    scenario: Scenario,
    verb: str = "",
    changes: Mapping[str, Plain | None] | None = None,
    tail: str = "",
    *,
    tables: Tables | None = None,
) -> str:
    """A command that asks `verb` with what was given and some changes, by the names of its inputs; None leaves one out.

    What was given and the verb does not take falls away.  A file that flags cannot express is asked again as a file.
    `tables` stand in place of those that were given, by their section.  Paths are as they were given, counted from the
    folder that the question was asked in.
    """
    form = form_of(verb or scenario.verb)
    changed = dict(changes or {})
    kept = _kept(scenario, form)
    long = has_several(scenario) or any(len(said) > MOST_INLINE for said in scenario.said.values())
    if scenario.path and form.verb == scenario.verb and long:
        beside = {name: value for name, value in kept.items() if name in scenario.beside}
        values, words = {**beside, **changed}, [quoted(scenario.path)]
        words += _tables({**scenario.said, **(tables or {})}, form, scenario.beside)
    else:
        values, words = {**kept, **changed}, []
        words += [_word(values[name]) for name in form.arguments if values.get(name) is not None]
        words += _tables({**scenario.said, **(tables or {})}, form)
    words += [
        _flag(form, field, values[name])
        for name, field in form.fields.items()
        if values.get(name) is not None and name not in form.arguments
    ]
    words += [f"{flag_of(CATALOG)} {quoted(folder)}" for folder in scenario.catalog.extra]
    return " ".join(word for word in ("datahall", form.verb, *words, tail) if word)


def kept_of(scenario: Scenario, section: str, left: Sequence[Section | None]) -> Tables:
    """The tables of a section as they were given, with what is left of each; None: nothing."""
    written = {field.key: field for field in fields(section)}
    return {
        section: [
            {
                key: written[key].kind.write(value)
                for key in table
                if (value := getattr(one, written[key].attribute)) != ()
            }
            for table, one in zip(scenario.said.get(section, ()), left, strict=True)
            if one is not None
        ]
    }


def explained(command: str) -> str:
    """The command that shows the chain behind the answer to another.

    >>> explained("datahall show chip h200-sxm")
    'datahall explain show chip h200-sxm'
    """
    return command.replace("datahall", "datahall explain", 1)


def our_error(scenario: Scenario, domain: Domain) -> str:
    """The command that says how far off we are where such answers were measured."""
    return follow(scenario, "validate", {"domain": domain})


def has_several(scenario: Scenario) -> bool:
    """Whether it has several tables of one kind that flags give once only."""
    return any(len(tables) > 1 for section, tables in scenario.said.items() if not CONCEPTS[section].inline)


def _kept(scenario: Scenario, form: Form) -> dict[str, Plain]:
    """What was given and the other verb takes."""
    found: dict[str, Plain] = {}
    for name, field in form.fields.items():
        tables = scenario.said.get(field.section, ())
        if field.kind.manner:
            continue
        if tables and field.key in tables[0] and _takes(field, tables[0][field.key], scenario):
            found[name] = tables[0][field.key]
    return found


def _takes(field: Field, value: Plain, scenario: Scenario) -> bool:
    """Whether a verb takes a value for its input that another one was given: one without end may be none for it."""
    try:
        field.kind.read(value, Reading(catalog=scenario.catalog))
    except DatahallError:
        return False
    return True


def _tables(said: Tables, form: Form, only: Sequence[str] | None = None) -> list[str]:
    words = []
    for concept in form.tables:
        if only is not None and concept.name not in only:
            continue
        for table in said.get(concept.name, ()):
            inside = ",".join(f"{key}={_inline(value)}" for key, value in table.items())
            words.append(form.flag(concept.name, inside))
    return words


def _word(value: Plain | None) -> str:
    assert value is not None
    if isinstance(value, list):
        return " ".join(quoted(str(one)) for one in value)
    return quoted(str(value))


def _flag(form: Form, field: Field, value: Plain | None) -> str:
    assert value is not None
    if isinstance(field.kind, Flag):
        unsaid = not value and field.default is False  # there is no word for it
        return "" if unsaid else form.flag(field.name, str(value))
    if isinstance(value, list) and any(isinstance(one, dict) for one in value):
        return " ".join(form.flag(field.name, _inline(one)) for one in value)
    return form.flag(field.name, _inline(value))


def _inline(value: Plain) -> str:
    """A value as one word."""
    if isinstance(value, list):
        return ",".join(_inline(one) for one in value)
    if isinstance(value, dict):
        if any(isinstance(one, list | dict) for one in value.values()):
            return "{" + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + "}"
        return ",".join(f"{key}={_inline(one)}" for key, one in value.items())
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _toml(value: Plain) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(one) for one in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + "}"
    return f'"{value}"' if isinstance(value, str) else str(value)

"""The one rule for inputs that say nothing where they stand, and for pairs of which one would win.

A declaration says what an input needs beside it (`needs=("autoscale",)`; `needs=("routing=prefix-affinity",)` for a
value; any one of several is enough, of the same section or another, unless it is what it is anyway) and what it cannot
stand beside (`against`).  What one verb alone needs beside an input, such as a seed, that verb says (`Takes.needs`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from datahall.errors import ScenarioError, option
from datahall.scenario.field import Concept, Field
from datahall.scenario.form import Form
from datahall.scenario.idle import do_nothing
from datahall.scenario.kinds import Raw


def given_names(form: Form, tables: Mapping[str, Sequence[Mapping[str, Raw]]]) -> frozenset[str]:
    """What a person said, by name, whichever section it stands in; tables that flags give whole by theirs."""
    names = {
        field.name
        for section, rows in tables.items()
        for key, field in form.of(section).items()
        if any(key in row for row in rows)
    }
    return frozenset(names | {concept.name for concept in form.tables if tables.get(concept.name)})


def broken_rules(
    form: Form,
    concept: Concept,
    row: Mapping[str, Raw],
    values: Mapping[str, object],
    given: frozenset[str],
) -> Iterator[tuple[str, ScenarioError]]:
    """The keys of a table that break a rule, each with its error."""
    known = form.of(concept.name)
    by_name = {field.name: field for field in known.values()}
    for key in row:
        field = known.get(key)
        if field is None:
            continue
        own = _word(concept, field.name)
        excluded = field.kind.excludes(values.get(key))
        beside = [name for name in excluded if name in by_name and by_name[name].key in row]
        for other in beside:
            message = f"{own} and {_word(concept, other)} do not go together"
            yield key, _error(concept, field, message, "say one of them")
        if beside:
            continue
        needs = taken_needs(form, field)
        if needs and not any(_is_met(need, by_name, row, values, given) for need in needs):
            words = " or ".join(_need(concept, need, by_name, values) for need in needs)
            whole = f"{own} of {option(concept.name)}" if concept.inline else own
            why = do_nothing([whole], f"it needs {words}")
            yield key, _error(concept, field, why, f"add {words}, or leave it out")


def taken_needs(form: Form, field: Field) -> list[str]:
    """What an input needs beside it, of what its verb takes."""
    beside = {one.name for one in form.of(field.section).values()}
    return [need for need in field.kind.needs if _name(need) in beside or _is_taken(form, need)]


def _name(need: str) -> str:
    return need.partition("=")[0]


def _is_taken(form: Form, need: str) -> bool:
    return _name(need) in form.fields or any(_name(need) == concept.name for concept in form.tables)


def _is_met(
    need: str,
    by_name: Mapping[str, Field],
    row: Mapping[str, Raw],
    values: Mapping[str, object],
    given: frozenset[str],
) -> bool:
    name, _, wanted = need.partition("=")
    field = by_name.get(name)
    if field is None:
        return name in given
    if wanted:
        return values.get(field.key, field.default) == wanted or (
            field.key in row and field.key not in values
        )
    if (
        field.key in values
    ):  # as it is anyway, it gives nothing to say more of: a failure at 0 s, a cache of 0 answers
        return field.default in (None, "", ()) or values[field.key] != field.default
    return field.key in row


def _word(concept: Concept, name: str, value: str | None = None) -> str:
    """An input as a border spells it; a key of a table that flags give whole is spelled alike at all."""
    if not concept.inline:
        return option(name, value)
    return name if value is None else f"{name} = {value}"


def _need(concept: Concept, need: str, by_name: Mapping[str, Field], values: Mapping[str, object]) -> str:
    """What an input needs, which may stand in another section than its own, or be said and say nothing."""
    name, *value = need.split("=", 1)
    if name not in by_name:
        return option(name, *value)
    field = by_name[name]
    idle = ""
    if field.key in values and not value:
        said = field.kind.write(values[field.key])
        idle = f" other than {', '.join(map(str, said)) if isinstance(said, list) else said}"
    return f"{_word(concept, name, *value)}{idle}"


def _error(concept: Concept, field: Field, message: str, hint: str) -> ScenarioError:
    return ScenarioError(message, field=concept.name if concept.inline else field.name, hint=hint)

"""What a file or a JSON body may ask, as JSON Schema, from the declarations of the inputs."""

from __future__ import annotations

from datahall.answers.ask import form_of, verb_named
from datahall.scenario.field import Concept, Field
from datahall.scenario.form import Form
from datahall.scenario.read import VERSION

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(verb: str) -> dict[str, object]:
    """The JSON Schema of a question: its sections with their keys, what each may hold, and what must be there."""
    asked, form = verb_named(verb), form_of(verb)
    tables = {concept.name: _section(form, concept) for concept in form.concepts if concept.name}
    needed = [name for name in form.required if name in form.of("")]
    needed += sorted({section for section in tables if _required(form, section)})
    return {
        "$schema": DIALECT,
        "title": f"datahall {verb}",
        "description": f"{asked.about[:1].upper()}{asked.about[1:]}.",
        "type": "object",
        "properties": {
            "version": {"const": VERSION},
            "ask": {"const": verb},
            **{key: _field(field) for key, field in form.of("").items()},
            **tables,
        },
        "required": ["version", *needed],
        "additionalProperties": False,
    }


def _section(form: Form, concept: Concept) -> dict[str, object]:
    table: dict[str, object] = {
        "type": "object",
        "description": (concept.struct().__doc__ or "").strip().split("\n")[0],
        "properties": {key: _field(field) for key, field in form.of(concept.name).items()},
        "additionalProperties": False,
    }
    if required := _required(form, concept.name):
        table["required"] = required
    return {"anyOf": [table, {"type": "array", "items": table}]} if concept.many else table


def _required(form: Form, section: str) -> list[str]:
    homes = [form.fields[name] for name in form.required]
    return [field.key for field in homes if field.section == section]


def _field(field: Field) -> dict[str, object]:
    found = {"description": field.kind.help, **field.kind.schema()}
    if field.default is not None and field.default not in ("", (), {}):
        found["default"] = field.kind.write(field.default)
    return found

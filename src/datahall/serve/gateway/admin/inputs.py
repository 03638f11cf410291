"""What the admin's bodies may hold: the inputs of the verbs, from where those are declared."""

from __future__ import annotations

from collections.abc import Mapping

from datahall.catalog import Catalog
from datahall.errors import DatahallError, DocumentError
from datahall.scenario.field import Field
from datahall.scenario.form import Form, form
from datahall.scenario.read import read_names
from datahall.scenario.sections.operations.gateway import KeyTerms
from datahall.scenario.takes import Takes
from datahall.serve.gateway.refusing import Refused

NEW_KEY = form("keys", (Takes("key"),), (), ("name",), {})
LIMITS = form("limits", (Takes("key", only=("limits…",)),), (), (), {})
OF_CUSTOMER = form("limits", (Takes("key", only=("customer", "limits…")),), (), ("customer",), {})
NOTHING: Mapping[str, object] = {"type": "object", "additionalProperties": False}


def terms(asked: Form, said: dict[str, object], catalog: Catalog) -> KeyTerms:
    """What a body says, read as a verb reads it; all that is wrong with it at once."""
    try:
        return read_names(asked, said, catalog, bare=True).one(KeyTerms)  # type: ignore[arg-type]
    except DatahallError as error:
        error.at_border(lambda name, value: f'"{name}"' if value is None else f'"{name}": {value}')
        raise Refused(400, words(error), "invalid_value", param=error.field or None) from None


def words(error: DatahallError) -> str:
    """All that an error says, on one line."""
    if isinstance(error, DocumentError):
        return "; ".join(line.strip() for line in error.lines()[1:])
    return f"{error.message} ({error.hint})" if error.hint else error.message


def schema(asked: Form) -> Mapping[str, object]:
    """The JSON Schema of such a body."""
    fields = asked.fields
    return {
        "type": "object",
        "properties": {name: _described(field) for name, field in fields.items()},
        "required": [*asked.required],
        "additionalProperties": False,
    }


def _described(field: Field) -> Mapping[str, object]:
    return {"description": field.kind.help, **field.kind.schema()}

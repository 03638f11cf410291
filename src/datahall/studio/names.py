"""The names that inputs of the forms may be."""

from __future__ import annotations

from datahall.answers.ask import form_of
from datahall.answers.catalog.names import inner, names
from datahall.scenario.kinds import Kind, Name
from datahall.studio.forms import ASKED


def names_of(verb: str, name: str) -> list[str] | None:
    """Those of an input of a verb; nothing where there is no such input, or nothing to choose from."""
    if verb not in ASKED:
        return None
    field = form_of(verb).fields.get(name)
    kind: Kind | None = None if field is None else inner(field.kind)
    if kind is None or not (kind.words or isinstance(kind, Name)):
        return None
    return sorted(names(kind))

"""Names for shell completion: what the field says it completes."""

from __future__ import annotations

from collections.abc import Callable

import click

from datahall.answers.names import inner, names
from datahall.errors import DatahallError
from datahall.scenario.field import Field
from datahall.scenario.kinds import Choice, Listed, Name

Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def completer(field: Field) -> Completer | None:
    """The function that completes an input; None where there is nothing to complete."""
    if not isinstance(inner(field.kind), Name | Choice):
        return None

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        del context, parameter
        head, comma, last = (
            incomplete.rpartition(",") if isinstance(field.kind, Listed) else ("", "", incomplete)
        )
        try:
            found = sorted(name for name in names(inner(field.kind)) if name.startswith(last.lower()))
        except DatahallError:  # a broken overlay must not break the shell
            return []
        return [f"{head}{comma}{name}" for name in found]

    return complete

"""Names for shell completion: what the field says it completes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click

from datahall.errors import DatahallError
from datahall.scenario.field import Field
from datahall.scenario.kinds import Choice, Kind, Listed, Name

Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def completer(field: Field) -> Completer | None:
    """The function that completes an input; None where there is nothing to complete."""
    if not isinstance(_inner(field.kind), Name | Choice):
        return None

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        del context, parameter
        head, comma, last = (
            incomplete.rpartition(",") if isinstance(field.kind, Listed) else ("", "", incomplete)
        )
        try:
            found = sorted(name for name in names(_inner(field.kind)) if name.startswith(last.lower()))
        except DatahallError:  # a broken overlay must not break the shell
            return []
        return [f"{head}{comma}{name}" for name in found]

    return complete


def _inner(kind: Kind) -> Kind:
    return kind.of if isinstance(kind, Listed) else kind


def names(kind: Kind) -> Iterable[str]:
    """All values that an input may have by name."""
    from datahall.catalog import load

    if kind.words:
        return kind.words
    assert isinstance(kind, Name)
    match kind.of:
        case "entry":
            return load().names("chip")
        case "fabric":
            from datahall.scenario.words import TOPOLOGIES

            return (*TOPOLOGIES, *load().names("fabric"))
        case "priced":
            return (*load().names("model"), *load().names("chip"))
        case "provider":
            return sorted({offer.provider for offer in load().offers()})
        case "workload":
            return (*load().names("dataset"), *load().names("model"))
        case "framework":
            from datahall.training.step.framework import frameworks

            return frameworks()
        case "traffic":
            from datahall.workload.traffic.presets import presets

            return presets()
    return load().names(kind.of)

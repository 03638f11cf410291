"""Names of the catalogue for shell completion."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click

from datahall.errors import DatahallError


def chip_names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Chips that begin with what is typed."""
    del context, parameter
    from datahall.catalog import load

    return _beginning(incomplete, lambda: (chip.name for chip in load().chips()))


def model_names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Models that begin with what is typed."""
    del context, parameter
    from datahall.catalog import load

    return _beginning(incomplete, lambda: (model.name for model in load().models()))


def fabric_names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Topologies and published fabrics that begin with what is typed."""
    del context, parameter
    from datahall.catalog import load
    from datahall.fabric.design.design import TOPOLOGIES

    return _beginning(incomplete, lambda: (*TOPOLOGIES, *(fabric.name for fabric in load().known_fabrics())))


def _beginning(incomplete: str, names: Callable[[], Iterable[str]]) -> list[str]:
    try:
        return sorted(name for name in names() if name.startswith(incomplete.lower()))
    except DatahallError:  # a broken overlay must not break the shell
        return []

"""`datahall check`: every problem of a file, before it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from datahall.cli.question import question

if TYPE_CHECKING:
    from datahall.answer import Answer
    from datahall.catalog import Catalog


@question(None, "check", examples="datahall check my-chip.toml scenario.toml path/to/config.json")
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
def command(files: tuple[str, ...], catalog: Catalog) -> Answer:
    """All problems of catalogue files, scenarios and model configs, each with file:line.

    Exit code 1 where there are any.
    """
    from datahall.show.verdict import check

    return check(files, catalog=catalog)

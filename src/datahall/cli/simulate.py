"""`datahall simulate`: watch it happen, event by event."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from datahall.cli.question import question, say
from datahall.cli.verbs import Verbs
from datahall.errors import OutputError

if TYPE_CHECKING:
    from datahall.answer import Answer
    from datahall.catalog import Catalog

GROUP_EXAMPLES = """
datahall simulate fabric scenario.toml
"""


@click.group("simulate", cls=Verbs, examples=GROUP_EXAMPLES)
def command() -> None:
    """The same questions, answered by playing every event."""


@question(
    command,
    "fabric",
    examples="""
    datahall simulate fabric scenario.toml
    datahall simulate fabric scenario.toml --level full --check-with symmetric
    datahall simulate fabric scenario.toml --trace run.perfetto-trace
    """,
)
@click.argument("file", metavar="SCENARIO")
@click.option(
    "--level",
    default="symmetric",
    show_default=True,
    metavar="LEVEL",
    help="symmetric folds alike flows; full plays every message.",
)
@click.option(
    "--check-with",
    default="",
    metavar="LEVEL",
    help="Show the difference from closed-form, symmetric or full.",
)
@click.option("--trace", default="", metavar="FILE", help="Also write a trace for ui.perfetto.dev.")
def fabric(file: str, level: str, check_with: str, trace: str, catalog: Catalog) -> Answer:
    """Jobs, background traffic and failures on a fabric, flow by flow."""
    from datahall.simulate.fabric import fabric_answer, fabric_trace, simulated

    outcome, other = simulated(file, level=level, check_with=check_with, catalog=catalog)
    if trace:
        try:
            Path(trace).write_bytes(fabric_trace(outcome))
        except OSError as error:
            raise OutputError(f"{trace} could not be written: {error.strerror or error}") from error
        say(f"wrote {trace}")
    return fabric_answer(outcome, other)

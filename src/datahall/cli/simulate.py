"""`datahall simulate`: watch it happen, event by event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from datahall.cli.question import Traced, question
from datahall.cli.verbs import Verbs

if TYPE_CHECKING:
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
    datahall simulate fabric scenario.toml -o run.perfetto-trace
    """,
    traced=True,
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
def fabric(file: str, level: str, check_with: str, catalog: Catalog) -> Traced:
    """Jobs, background traffic and failures on a fabric, flow by flow."""
    from datahall.simulate.fabric import fabric_answer, fabric_trace, simulated

    outcome, other = simulated(file, level=level, check_with=check_with, catalog=catalog)
    return Traced(fabric_answer(outcome, other), lambda: fabric_trace(outcome))

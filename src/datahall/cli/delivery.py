"""The way of an answer out of the process: to the terminal or a file, as text or as a trace, with its exit code."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from datahall.answers.reply import Scored, Traced, answer_of
from datahall.cli.streams import put
from datahall.errors import OutputError, ScenarioError

if TYPE_CHECKING:
    from datahall.answers.reply import Reply

WIDTH = 100
WIDEST = 120
TRACE_ENDING = ".perfetto-trace"


class Delivery(NamedTuple):
    """How and where an answer goes."""

    form: str | None
    output: str
    quiet: bool
    color: bool | None
    explain: bool = False

    @property
    def target(self) -> Path | None:
        """The file, or None for standard output."""
        return Path(self.output) if self.output not in ("", "-") else None

    def check(self, *, json: bool) -> None:
        """Refuse a format beside a file whose name asks for another."""
        from datahall.report.output import format_of

        if self.form is None or self.target is None or not self.target.suffix:
            return
        try:
            ending = "perfetto" if self.output.endswith(TRACE_ENDING) else format_of(self.target)
        except OutputError:  # an ending that asks for nothing
            return
        if ending != self.form:
            said = "--json" if json else f"--format {self.form}"
            raise ScenarioError(f"{said} beside -o {self.output}", where="-o", hint="say one of them")


def deliver(reply: Reply, way: Delivery) -> None:
    """Write the answer where it was asked for; a "no" ends with exit code 1."""
    traced = way.form == "perfetto" or (way.form is None and way.output.endswith(TRACE_ENDING))
    if traced and isinstance(reply, Traced):
        _deliver_trace(reply, way)
    else:
        _deliver_text(reply, way)
    if answer_of(reply).verdict == "no":
        click.get_current_context().exit(1)


def _deliver_text(reply: Reply, way: Delivery) -> None:
    from datahall.report.output import format_of, render, write

    answer, target = answer_of(reply), way.target
    form = way.form or (format_of(target) if target else "table")
    if way.explain and form == "table":
        form = "explain"
    color = target is None and wants_color(way.color)
    own = reply.json if isinstance(reply, Scored) and form == "json" else ""
    text = own or render(answer, form, width=width(), color=color, quiet=way.quiet, explain=way.explain)
    if target is None:
        put(text)
    else:
        write(text, target)
        say(f"wrote {target}", quiet=way.quiet)
    if form == "csv" and len(answer.tables) > 1:
        say(
            f"CSV holds the first of {len(answer.tables)} tables; --format json has them all", quiet=way.quiet
        )


def _deliver_trace(reply: Traced, way: Delivery) -> None:
    data = reply.trace()
    if way.target is None:
        put(data)
        return
    try:
        way.target.write_bytes(data)
    except OSError as error:
        raise OutputError(f"{way.output} could not be written: {error.strerror or error}") from error
    say(f"wrote {way.output}; open it at https://ui.perfetto.dev", quiet=way.quiet)


def say(text: str, *, quiet: bool = False) -> None:
    """Write a remark to standard error."""
    if not quiet:
        print(f"datahall: {text}", file=sys.stderr)


def wants_color(asked: bool | None) -> bool:
    """Whether to colour: as asked, else on a terminal that can and whose owner does not mind."""
    if asked is not None:
        return asked
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout.isatty()


def width() -> int:
    """Columns to write for: the terminal's, within reason, or 100 where there is none."""
    import shutil

    if not sys.stdout.isatty() and not os.environ.get("COLUMNS"):
        return WIDTH
    return max(60, min(WIDEST, shutil.get_terminal_size((WIDTH, 24)).columns))


def talk() -> None:
    """Let the rooms below say on standard error what takes long."""
    import logging

    logging.basicConfig(level=logging.INFO, format="datahall: %(message)s", stream=sys.stderr)

"""The way of an answer out of the process: to the terminal or a file, as text or as a trace, with its exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from datahall.answers.reply import Deployable, Scored, Traced, answer_of
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

    def check(self, *, json: bool, traced: bool, artefacts: Sequence[str] = ()) -> None:
        """Refuse a file that nothing can be written to, or whose name asks for no format, or not for the one said."""
        from datahall.report.output import check_place, format_of

        if self.target is None:
            return
        try:
            others = (*((TRACE_ENDING,) if traced else ()), *artefacts)
            file = self.artefact(artefacts)
            if file and (self.named(artefacts) or self.target.suffix == Path(file).suffix):
                ending = tool_of(file)
            else:
                ending = "perfetto" if traced and self.is_trace else format_of(self.target, *others)
        except OutputError:
            if self.form is None:
                raise
            ending = self.form  # an ending that asks for nothing
        if self.form not in (None, ending) and self.target.suffix:
            said = "--json" if json else f"--format {self.form}"
            raise ScenarioError(f"{said} beside -o {self.output}", where="-o", hint="say one of them")
        check_place(self.target)

    def artefact(self, artefacts: Sequence[str]) -> str:
        """Which file that runs the answer is asked for, of those there are: by its name, or by the format."""
        return self.named(artefacts) or next((one for one in artefacts if tool_of(one) == self.form), "")

    def named(self, artefacts: Sequence[str]) -> str:
        """The file whose name stands at the end of that which was given."""
        name = self.target.name if self.target is not None else ""
        return next((one for one in artefacts if name == one or name.endswith((f".{one}", f"-{one}"))), "")

    @property
    def is_trace(self) -> bool:
        """Whether the name of the file asks for what happened, not for the answer."""
        return self.output.endswith(TRACE_ENDING)


def tool_of(artefact: str) -> str:
    """The format that a file goes by: its name without the ending.

    >>> tool_of("ray-serve.yaml")
    'ray-serve'
    """
    return artefact.partition(".")[0]


def deliver(reply: Reply, way: Delivery, artefacts: Sequence[str] = ()) -> None:
    """Write the answer where it was asked for; a "no" ends with exit code 1, said where a file has the rest.

    What would run it is not written where the answer is no.
    """
    artefact = way.artefact(artefacts)
    traced = way.form == "perfetto" or (way.form is None and way.is_trace)
    if artefact and isinstance(reply, Deployable):
        _deliver_artefact(reply, way, artefact)
    elif traced and isinstance(reply, Traced):
        _deliver_trace(reply, way)
    else:
        _deliver_text(reply, way)
    answer = answer_of(reply)
    if answer.verdict == "no":
        if way.target is not None or artefact:
            say(answer.headline, quiet=way.quiet)
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
    from datahall.report.output import write

    data = reply.trace()
    if way.target is None:
        put(data)
        return
    write(data, way.target)
    say(f"wrote {way.output}; open it at https://ui.perfetto.dev", quiet=way.quiet)


def _deliver_artefact(reply: Deployable, way: Delivery, name: str) -> None:
    from datahall.report.output import write

    if reply.answer.verdict == "no":
        return
    text = reply.artefact(name)
    if way.target is None:
        put(text)
        return
    write(text, way.target)
    say(f"wrote {way.target}: {reply.answer.headline}", quiet=way.quiet)


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

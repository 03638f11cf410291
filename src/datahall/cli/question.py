"""The options that every question has, and the way its answer leaves the process."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from datahall.cli.verbs import Question
from datahall.errors import CatalogError, OutputError
from datahall.report.output import FORMATS

if TYPE_CHECKING:
    from datahall.answer import Answer
    from datahall.catalog import Catalog

WIDTH = 100
WIDEST = 120


class Delivery(NamedTuple):
    """How and where an answer goes."""

    form: str | None
    output: str
    quiet: bool
    color: bool | None
    explain: bool = False


class Scored(NamedTuple):
    """An answer whose JSON has a shape of its own."""

    answer: Answer
    json: str


class Traced(NamedTuple):
    """An answer that was played, and what happened as a trace for ui.perfetto.dev."""

    answer: Answer
    trace: Callable[[], bytes]


TRACE_ENDING = ".perfetto-trace"


def _formats(formats: tuple[str, ...]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        "--format",
        "form",
        type=click.Choice(formats),
        metavar="FORMAT",
        help=f"One of {', '.join(formats)} (default: table).",
    )


OPTIONS = (
    click.option("--json", "form", flag_value="json", help="Same as --format json."),
    click.option(
        "-o", "--output", default="", metavar="FILE", help="Write to FILE; its ending chooses the format."
    ),
    click.option(
        "--catalog",
        "folders",
        multiple=True,
        metavar="DIR",
        help="Your own catalogue entries, over the shipped.",
    ),
    click.option("--quiet", is_flag=True, help="No remarks, only the answer."),
    click.option("--color/--no-color", default=None, help="Colour, or none (default: on a terminal)."),
    click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error."),
)


def question(
    group: click.Group | None, name: str, *, examples: str, catalog: bool = True, traced: bool = False
) -> Callable[[Callable[..., Answer | Scored | Traced]], click.Command]:
    """Make a command of a function that answers: common options, examples in its help, delivery.

    With `traced` the answer is `Traced`, and can be had in the format "perfetto" too.
    """

    def wrap(function: Callable[..., Answer | Scored | Traced]) -> click.Command:
        @functools.wraps(function)
        def ask(
            form: str | None,
            output: str,
            folders: tuple[str, ...],
            quiet: bool,
            color: bool | None,
            **asked: Any,
        ) -> None:
            context = click.get_current_context()
            explain = bool((context.find_root().obj or {}).get("explain"))
            if not quiet:
                _talk()
            if catalog:
                asked["catalog"] = open_catalog(folders)
            found = function(**asked)
            if isinstance(found, Traced):
                if form == "perfetto" or (form is None and output.endswith(TRACE_ENDING)):
                    deliver_trace(found, output, quiet=quiet)
                    return
                found = found.answer
            answer, own_json = found if isinstance(found, Scored) else (found, "")
            deliver(answer, Delivery(form, output, quiet, color, explain), own_json)

        for option in reversed((_formats((*FORMATS, "perfetto") if traced else FORMATS), *OPTIONS)):
            ask = option(ask)
        settings: dict[str, Any] = {"cls": Question, "examples": examples}
        made: click.Command = (click if group is None else group).command(name, **settings)(ask)
        return made

    return wrap


def open_catalog(folders: tuple[str, ...]) -> Catalog:
    """The catalogue, with the user's folders over it."""
    from datahall.catalog import Catalog, load

    for folder in folders:
        if not Path(folder).is_dir():
            raise CatalogError(
                f"{folder} is not a folder", where="--catalog", hint="name a folder with TOML files in it"
            )
    return Catalog(extra=folders) if folders else load()


def deliver(answer: Answer, way: Delivery, own_json: str = "") -> None:
    """Write the answer where it was asked for; a "no" ends with exit code 1."""
    from datahall.report.output import format_of, render, write

    target = Path(way.output) if way.output not in ("", "-") else None
    form = way.form or (format_of(target) if target else "table")
    if way.explain and form == "table":
        form = "explain"
    color = target is None and wants_color(way.color)
    own = own_json if form == "json" else ""
    text = own or render(answer, form, width=width(), color=color, quiet=way.quiet)
    if target is None:
        put(text)
    else:
        write(text, target)
        say(f"wrote {target}", quiet=way.quiet)
    if form == "csv" and len(answer.tables) > 1:
        say(
            f"CSV holds the first of {len(answer.tables)} tables; --format json has them all", quiet=way.quiet
        )
    if answer.verdict == "no":
        click.get_current_context().exit(1)


def deliver_trace(found: Traced, output: str, *, quiet: bool) -> None:
    """Write the trace to a file, or to standard output; a "no" ends with exit code 1."""
    data = found.trace()
    if output in ("", "-"):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        try:
            Path(output).write_bytes(data)
        except OSError as error:
            raise OutputError(f"{output} could not be written: {error.strerror or error}") from error
        say(f"wrote {output}; open it at https://ui.perfetto.dev", quiet=quiet)
    if found.answer.verdict == "no":
        click.get_current_context().exit(1)


def put(text: str) -> None:
    """Write data to standard output."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"standard output could not be written: {error.strerror or error}") from error


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


def _talk() -> None:
    """Let the rooms below say on standard error what takes long."""
    import logging

    logging.basicConfig(level=logging.INFO, format="datahall: %(message)s", stream=sys.stderr)

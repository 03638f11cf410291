"""Wrong use of the command line in the shape of our other errors: what, where, what to write instead."""

from __future__ import annotations

from collections.abc import Iterable

import click

from datahall.errors import nearest


class UnknownCommand(click.UsageError):
    """A verb that does not exist; carries the nearest ones."""

    def __init__(self, name: str, known: Iterable[str], context: click.Context) -> None:
        super().__init__(f'"{name}" is not a command', context)
        self.nearest = nearest(name, known)


def lines(error: click.ClickException) -> list[str]:
    """The error as it is printed."""
    text = [f"error[usage]: {_message(error)}"]
    context = error.ctx if isinstance(error, click.UsageError) else None
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and isinstance(error.ctx.command, click.Group):
        known = ", ".join(error.ctx.command.list_commands(error.ctx))
        path = error.ctx.command_path
        return [
            f"error[usage]: {path}: what?",
            f"  --> {path}",
            f"  one of {known}   how to use it: {path} --help",
        ]
    if context is not None:
        text.append(f"  --> {context.command_path}")
    hint = "   ".join(
        filter(None, (_guess(error), f"how to use it: {context.command_path} --help" if context else ""))
    )
    return [*text, f"  {hint}"] if hint else text


def _message(error: click.ClickException) -> str:
    message = error.format_message().rstrip(".")
    if isinstance(error, click.NoSuchOption):
        return f"no option {error.option_name}"
    return message[:1].lower() + message[1:]


def _guess(error: click.ClickException) -> str:
    close: Iterable[str] = ()
    if isinstance(error, UnknownCommand):
        close = error.nearest
    elif isinstance(error, click.NoSuchOption) and error.ctx is not None:
        options = [one for one in error.ctx.command.params if isinstance(one, click.Option)]
        denied = f"--{error.option_name.removeprefix('--no-')}"
        if any(one.is_flag and denied in one.opts for one in options) and denied != error.option_name:
            return f"leave it out: it is so without {denied}"
        known = [name for one in options for name in (*one.opts, *one.secondary_opts)]
        close = nearest(error.option_name, (name for name in known if name.startswith("--")))
    return f"did you mean: {', '.join(close)}?" if close else ""

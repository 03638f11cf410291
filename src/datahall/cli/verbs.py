"""A group of commands that loads each one only when it is called, and lists them in sections."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click


class Verb(NamedTuple):
    """A command: its name and what it does, known without loading it."""

    name: str
    about: str


class Verbs(click.Group):
    """Commands by section; the module of each has its name, in the package `home`.

    A section without a title is not listed.  `examples` stand first in the help.
    """

    def __init__(
        self,
        *args: Any,
        home: str = "",
        sections: Mapping[str, tuple[Verb, ...]] | None = None,
        examples: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.home = home
        self.sections = dict(sections or {})
        self.examples = examples

    def verbs(self) -> Iterator[Verb]:
        """Every command that can be loaded."""
        for verbs in self.sections.values():
            yield from verbs

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        loaded = [name for name in self.commands if not any(verb.name == name for verb in self.verbs())]
        return [*(verb.name for title, verbs in self.sections.items() if title for verb in verbs), *loaded]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if any(verb.name == cmd_name for verb in self.verbs()):
            command = import_module(f"{self.home}.{cmd_name}").command
            assert isinstance(command, click.Command)
            return command
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and not name.startswith("-") and self.get_command(ctx, name) is None:
            from datahall.cli.usage import UnknownCommand

            known = [*(verb.name for verb in self.verbs()), *super().list_commands(ctx)]
            raise UnknownCommand(name, known, ctx)
        return super().resolve_command(ctx, args)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        write_examples(self.examples, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not any(self.sections):
            super().format_commands(ctx, formatter)
            return
        for title, verbs in self.sections.items():
            if title:
                with formatter.section(title.capitalize()):
                    formatter.write_dl([(verb.name, verb.about) for verb in verbs])


class Question(click.Command):
    """A command whose help shows examples first, then its own options, then those that every question has."""

    def __init__(self, *args: Any, examples: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        write_examples(self.examples, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        shared = {"form", "output", "folders", "quiet", "color", "debug", "help"}
        records: dict[str, list[tuple[str, str]]] = {"Options": [], "Options of every question": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                title = "Options of every question" if parameter.name in shared else "Options"
                records[title].append(record)
        if not records["Options"]:
            records = {"Options": records["Options of every question"]}
        for title, lines in records.items():
            if lines:
                with formatter.section(title):
                    formatter.write_dl(lines)


def write_examples(examples: str, formatter: click.HelpFormatter) -> None:
    """Write lines to copy, as they are."""
    lines = inspect.cleandoc(examples).strip().splitlines()
    if lines:
        with formatter.section("Examples"):
            for line in lines:
                formatter.write(f"{'':>{formatter.current_indent}}{line.strip()}\n")

"""A shell script that runs as it stands: where it is from, its variables, and a command an option a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import NamedTuple

from datahall.catalog.entries.tool import Tool

WIDTH = 108


class Variable(NamedTuple):
    """A variable of the environment: its usual value, or what must be said where it has none."""

    name: str
    usual: str = ""
    about: str = ""

    @property
    def line(self) -> str:
        if not self.usual:
            return f'{self.name}=${{{self.name}:?"{self.about}"}}'
        return f"{self.name}=${{{self.name}:-{self.usual}}}" + (f"  # {self.about}" if self.about else "")

    @property
    def filled(self) -> str:
        """As it stands in a file that no shell reads: its usual value, or its name, to be filled in."""
        return self.usual or f"${{{self.name}}}"


def to_fill(variable: Variable) -> str:
    """What is to be done about a variable in such a file."""
    return f"set {variable.name} before it is applied, e.g. by envsubst: {variable.about}"


class Origin(NamedTuple):
    """Where an artefact is from."""

    question: str  # the command that made it
    version: str


def head(origin: Origin, tools: Sequence[Tool], notes: Iterable[str]) -> list[str]:
    """The lines before all others, as comments: question and version on one, the releases, what is to know."""
    releases = ", ".join(f"{one.title} {one.release}" for one in tools)
    return [
        f"# made by datahall {origin.version}: {origin.question}",
        *([f"# options as in {releases}"] if tools else []),
        *(f"# {line}" for note in notes for line in wrap(note, WIDTH)),
    ]


def script(comments: Sequence[str], variables: Sequence[Variable], body: Sequence[str]) -> str:
    """The whole file.  It stops at the first command that fails, and where a variable that it needs is not set."""
    shebang, *options = ["#!/usr/bin/env bash", *[line for line in comments if line.startswith("#SBATCH")]]
    said = [line for line in comments if not line.startswith("#SBATCH")]
    lines = [shebang, *options, *said, "set -euo pipefail", "", *(one.line for one in variables), "", *body]
    return "\n".join(lines) + "\n"


def command(first: str, words: Sequence[str], *, indent: int = 0, tail: str = "") -> list[str]:
    """A command with an option to a line."""
    before = " " * indent
    lines = [f"{before}{first}", *(f"{before}  {word}" for word in words)]
    return [*(f"{line} \\" for line in lines[:-1]), lines[-1] + tail]

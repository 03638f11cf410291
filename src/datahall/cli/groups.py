"""Groups of commands, made from the table of verbs; a command is made only when it is called."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from functools import cache

import click

from datahall.answers.verb import Verb
from datahall.answers.verbs import GROUPS, VERBS, words

FILES = (".toml", ".json")
SECTIONS = tuple(dict.fromkeys(group.section for group in GROUPS))
MOST_EXAMPLES = 7
WIDEST_EXAMPLE = 96
BEFORE_OPTION = re.compile(r" (?=-)")
DELIVERED = ("-o", "--output", "--format", "--json", "--quiet", "--color", "--no-color")
# of every command, since one may be made before the root or without it, and is kept as it was made
UNBROKEN = "\u2011"  # a hyphen at which no line ends: a word of two parts can be found and copied
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
RUN = ("studio", "serve")
# not questions
SPECIAL = {
    "studio": "every question in a browser, the hall and its network as pictures",
    "serve": "an endpoint for models of many servers",
    "completion": "completion script for a shell",
}


class Root(click.Group):
    """`datahall`: the groups of verbs in their sections."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return [*(group.name for group in GROUPS), *SPECIAL]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name == "explain":
            from datahall.cli.explain import explain

            return explain
        if cmd_name == "serve":
            from datahall.cli.serve import serve

            return serve
        if cmd_name == "studio":
            from datahall.cli.studio import studio

            return studio
        if cmd_name == "completion":
            from datahall.cli.completion import completion

            return completion
        mine = [verb for verb in VERBS if verb.group == cmd_name]
        if not mine:
            return None
        return command(mine[0]) if not mine[0].word else Verbs(cmd_name, mine)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        _check_known(self, ctx, args)
        return super().resolve_command(ctx, args)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        chosen = [
            verb
            for name in ("plan serve", "plan train", "show fit", "simulate serve")
            for verb in VERBS
            if verb.name == name
        ]
        write_examples([words(verb)[0] for verb in chosen], formatter)

    def get_help(self, ctx: click.Context) -> str:
        return super().get_help(ctx).replace(UNBROKEN, "-")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for section in SECTIONS:
            with formatter.section(section.capitalize()):
                formatter.write_dl(
                    [
                        *((name, SPECIAL[name]) for name in RUN if section == "run"),
                        *(
                            (group.name, _listed(group.name, group.about))
                            for group in GROUPS
                            if group.section == section
                        ),
                    ]
                )


def _listed(name: str, about: str) -> str:
    """What a group is for, and the words that follow it."""
    second = [verb.word for verb in VERBS if verb.group == name and verb.word]
    listed = ", ".join(second).replace("-", UNBROKEN)
    return f"{about}: {listed}" if second and name != "catalog" else about


class Verbs(click.Group):
    """The verbs that begin with one word."""

    def __init__(self, name: str, verbs: Sequence[Verb]) -> None:
        first, _, rest = name.partition(" ")
        about = next(group.about for group in GROUPS if group.name == first)
        if rest:
            about = f"{rest} of a {first}"
        self.verbs = {verb.name.removeprefix(f"{name} "): verb for verb in verbs}
        self.golden = golden_words(first) if not rest else []
        self.spoken = name
        text = f"{about[:1].upper()}{about[1:]}."
        if self.golden:
            text = (
                f"{text}\n\nAlone it answers the first of the examples; a scenario file says what it plans."
            )
        super().__init__(name.rpartition(" ")[2], help=text, context_settings=SETTINGS)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Alone, or with where the answer goes, the golden question is asked."""
        if self.golden and (not args or args[0].partition("=")[0] in DELIVERED):
            args = [*self.golden, *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(dict.fromkeys(word.partition(" ")[0] for word in self.verbs))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name in self.verbs:
            return command(self.verbs[cmd_name])
        below = [verb for word, verb in self.verbs.items() if word.startswith(f"{cmd_name} ")]
        return Verbs(f"{self.spoken} {cmd_name}", below) if below else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0].endswith(FILES) and self.get_command(ctx, args[0]) is None:
            from datahall.cli.command import verb_of_file

            verb = verb_of_file(args[0], tuple(self.verbs.values()))
            return verb.word, command(verb), args
        _check_known(self, ctx, args)
        other, left = turned(tuple(self.verbs.values()), args)
        return super().resolve_command(ctx, [other, *left])

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        write_examples([words(verb)[0] for verb in self.verbs.values()][:MOST_EXAMPLES], formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Questions"):
            formatter.write_dl([(word, verb.about) for word, verb in self.verbs.items()])


def turned(verbs: Sequence[Verb], args: Sequence[str]) -> tuple[str, list[str]]:
    """The verb that some words ask, as a flag among them may turn it, and what is left of them."""
    word, *left = args
    verb = next((one for one in verbs if one.word == word), None)
    if verb is None or not verb.turned[0]:
        return word, left
    flag, other = f"--{verb.turned[0]}", verb.turned[1].partition(" ")[2]
    return (other, [one for one in left if one != flag]) if flag in left else (word, left)


def golden_words(name: str) -> list[str]:
    """What is asked where nothing follows the first word of a verb, as it would be typed after it; often nothing."""
    golden = next(group.golden for group in GROUPS if group.name == name)
    verb = next((verb for verb in VERBS if verb.name == golden), None)
    return [] if verb is None else [verb.word, *shlex.split(verb.examples[0])]


@cache
def command(verb: Verb) -> click.Command:
    """The command of a verb."""
    from datahall.cli.command import Question

    return Question(verb)


def _check_known(group: click.Group, ctx: click.Context, args: list[str]) -> None:
    """A command that is not there is an error with the nearest."""
    name = args[0] if args else ""
    if name and not name.startswith("-") and group.get_command(ctx, name) is None:
        from datahall.cli.usage import UnknownCommand

        raise UnknownCommand(name, group.list_commands(ctx), ctx)


def write_examples(lines: Sequence[str], formatter: click.HelpFormatter) -> None:
    """Write lines to copy; one that is wider than a screen goes on below, as a shell reads it."""
    if lines:
        with formatter.section("Examples"):
            indent = " " * formatter.current_indent
            for line in lines:
                formatter.write(indent + f" \\\n{indent}    ".join(_wrapped(line)) + "\n")


def _wrapped(line: str) -> list[str]:
    """The line cut before options, where it is wider than a screen."""
    parts = [""]
    for option in BEFORE_OPTION.split(line):
        if parts[-1] and len(parts[-1]) + len(option) >= WIDEST_EXAMPLE:
            parts.append("")
        parts[-1] += f" {option}" if parts[-1] else option
    return parts

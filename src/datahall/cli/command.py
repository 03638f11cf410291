"""A verb as a command: options made from the fields it takes, what was typed asked, the answer delivered."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from datahall.answers.ask import ask, form_of, scenario_file, views
from datahall.answers.catalog.names import inner, names
from datahall.answers.file import verb_of
from datahall.answers.verb import Verb
from datahall.answers.verbs import words
from datahall.cli.delivery import Delivery, deliver, talk, tool_of
from datahall.cli.groups import SETTINGS, write_examples
from datahall.cli.kept import kept_beside
from datahall.cli.live import draw, is_live
from datahall.cli.process import keep_memory
from datahall.errors import CatalogError, DatahallError, OutputError, ScenarioError
from datahall.report.output import FORMATS
from datahall.scenario.field import Concept, Field
from datahall.scenario.form import CATALOG, flag_of
from datahall.scenario.kinds import Choice, Flag, Listed, Name, Raw, Text, listed

if TYPE_CHECKING:
    from datahall.catalog import Catalog

Completer = Callable[[click.Context, click.Parameter, str], list[str]]
PAIR = re.compile(r"[A-Za-z][\w.-]*=")
COMMANDLINE = click.core.ParameterSource.COMMANDLINE
OF_EVERY = ("form", "as_json", "output", "folders", "quiet", "color", "debug", "help")


class Question(click.Command):
    """A command whose help shows examples first, then its own options by section, then those of every question."""

    def __init__(self, verb: Verb) -> None:
        self.verb = verb
        self.form = form_of(verb.name)
        about = f"{verb.about[:1].upper()}{verb.about[1:]}."
        super().__init__(
            verb.word or verb.name.rpartition(" ")[2],
            params=[*self._arguments(), *self._options(), *_turned(verb), *_once(verb), *_common(verb)],
            callback=self.run,
            context_settings=SETTINGS,
            help=f"{about}\n\n{verb.details}" if verb.details else about,
        )

    def _arguments(self) -> list[click.Parameter]:
        arguments: list[click.Parameter] = []
        for place, name in enumerate(self.form.arguments):
            field = self.form.fields[name]
            many = self.verb.several and place == len(self.form.arguments) - 1
            metavar = f"{field.placeholder}…" if many else field.placeholder
            arguments.append(
                click.Argument(
                    [name],
                    nargs=-1 if many else 1,
                    required=False,
                    metavar=metavar,
                    shell_complete=completer(field),
                )
            )
        if not arguments and self.verb.by_file and self.form.fields:
            arguments.append(click.Argument(["scenario"], required=False, metavar="[SCENARIO]"))
        return arguments

    def _options(self) -> list[click.Parameter]:
        fields = [field for name, field in self.form.fields.items() if name not in self.form.arguments]
        tables = [_table_option(concept, self.form.sections[concept.name]) for concept in self.form.tables]
        usual = [_option(field) for field in fields if not field.kind.rare]
        rare = [_option(field) for field in fields if field.kind.rare]
        return [*usual, *tables, *rare]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse an option that is said twice: click would let the last one win."""
        args = self._gathered(args)
        _, _, order = self.make_parser(ctx).parse_args(list(args))
        once = [one for one in order if isinstance(one, click.Option) and not (one.multiple or one.count)]
        twice = next((one for place, one in enumerate(once) if one in once[:place]), None)
        if twice is not None:
            both = (twice.opts[-1], *twice.secondary_opts)
            flag, *other = [word for word in both if word in args] or both[:1]
            if other:
                message, hint = f"{flag} and {other[0]} do not go together", "say one of them"
            else:
                message, hint = f"{flag} is said twice", "say it once"
            raise ScenarioError(message, where=flag, hint=hint)
        return super().parse_args(ctx, args)

    def _gathered(self, args: Sequence[str]) -> list[str]:
        """Words key=value that follow the value of a flag which takes such, put to it with a comma."""
        flags = {flag_of(name) for name, field in self.form.fields.items() if field.kind.is_gathered}
        words: list[str] = []
        value = False  # whether the word before is the value of such a flag
        for word in args:
            if value and PAIR.match(word) and words[-1] not in flags:
                words[-1] += f",{word}"
                continue
            value = (bool(words) and words[-1] in flags) or word.partition("=")[0] in flags
            words.append(word)
        return words

    def run(
        self,
        form: str | None,
        as_json: bool,
        output: str,
        folders: tuple[str, ...],
        quiet: bool,
        color: bool | None,
        once: bool = False,
        **typed: Any,
    ) -> None:
        """Ask what was typed, and send the answer where it was asked for."""
        context = click.get_current_context()
        if not quiet:
            talk()
        given = self._given(context, typed)
        file = self._file(given)
        if as_json and form not in (None, "json"):
            raise ScenarioError(f"--format {form} beside --json", where="--format", hint="say one of them")
        if not output and context.get_parameter_source("output") is COMMANDLINE:
            raise OutputError('"" is not the path of a file', where="-o", hint="e.g. -o answer.html")
        way = Delivery(
            form="json" if as_json else form, output=output, quiet=quiet, color=color,
            explain=bool((context.find_root().obj or {}).get("explain")),
        )  # fmt: skip
        way.check(json=as_json, traced=self.verb.traced, artefacts=self.verb.artefacts)
        catalog = open_catalog(folders)
        keep_memory()
        if self.verb.views and not once and is_live(way):
            draw(views(self.verb.name, given, catalog=catalog, spell=self.form.flag), way)
            return
        with kept_beside(way.target, given, self.form):
            deliver(
                ask(self.verb.name, given, document=file, catalog=catalog, spell=self.form.flag),
                way,
                self.verb.artefacts,
            )

    def _given(self, context: click.Context, typed: dict[str, Any]) -> dict[str, Raw]:
        """What a person typed, by the names of inputs."""
        given: dict[str, Raw] = {}
        for name, value in typed.items():
            if context.get_parameter_source(name) is not COMMANDLINE:
                continue
            given[name] = _joined(self.form.fields.get(name), value) if isinstance(value, tuple) else value
        return given

    def _file(self, given: dict[str, Raw]) -> Any:
        """The scenario file that stands in place of the first argument, if one does."""
        first = self.form.arguments[0] if self.form.arguments else "scenario"
        value = given.get(first)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if not self.verb.by_file or not isinstance(value, str):
            return None
        found = scenario_file(value)
        if found is not None or first == "scenario":
            del given[first]
        if found is None and first == "scenario":
            raise ScenarioError(f'"{value}" is not a scenario', hint="a .toml or .json file")
        return found

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        pieces = self.collect_usage_pieces(ctx)
        formatter.write_usage(ctx.command_path, " ".join(pieces))

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        write_examples(words(self.verb), formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rare = {field.name for field in self.form.fields.values() if field.kind.rare}
        titles = {"Options": [], "Rarely needed": [], "Options of every question": []}  # type: dict[str, list[tuple[str, str]]]
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None or not isinstance(parameter, click.Option):
                continue
            every = parameter.name in OF_EVERY
            titles[
                "Options of every question"
                if every
                else "Rarely needed"
                if parameter.name in rare
                else "Options"
            ].append(record)
        for title, lines in titles.items():
            if lines:
                with formatter.section(title):
                    formatter.write_dl(lines)


def _joined(field: Field | None, values: tuple[str, ...]) -> Raw:
    """What was given several times: the tables, the words of a text, or lists with commas put together."""
    if field is not None and isinstance(field.kind, Text):
        return " ".join(values)
    if field is None or not isinstance(field.kind, Listed):
        return list(values) if len(values) > 1 or field is None else values[0]
    return [word for value in values for word in listed(value)]


def _option(field: Field) -> click.Option:
    flag = flag_of(field.name)
    default = f"  [default: {field.shown_default}]" if field.shown_default else ""
    text = f"{field.kind.help}{default}"
    if isinstance(field.kind, Flag):
        spelled = flag if field.default is False else f"{flag}/{flag_of(f'no_{field.name}')}"
        return click.Option([field.name, spelled], is_flag=True, default=None, help=text)
    return click.Option(
        [field.name, flag], metavar=field.placeholder, help=text, multiple=field.kind.is_repeated,
        shell_complete=completer(field),
    )  # fmt: skip


def _table_option(concept: Concept, taken: Sequence[Field]) -> click.Option:
    about = (concept.struct().__doc__ or "").strip().split("\n")[0]
    keys = ", ".join(field.key for field in taken)
    return click.Option(
        [concept.name, flag_of(concept.name)], multiple=True, metavar="KEY=VALUE,…",
        help=f"{about} Keys: {keys}.",
    )  # fmt: skip


def _turned(verb: Verb) -> list[click.Parameter]:
    """The flag that asks another verb: taken before the command is chosen, and only told here."""
    flag, other = verb.turned
    if not flag:
        return []
    return [
        click.Option(
            [flag_of(flag)], is_flag=True, expose_value=False, help=f"Ask datahall {other} in its place."
        )
    ]


def _once(verb: Verb) -> list[click.Parameter]:
    """The flag that has one answer of a verb that a terminal shows again and again."""
    if not verb.views:
        return []
    return [click.Option(["--once"], is_flag=True, help="One view, as where there is no terminal.")]


def _common(verb: Verb) -> list[click.Parameter]:
    formats = (*FORMATS, *(("perfetto",) if verb.traced else ()), *map(tool_of, verb.artefacts))
    files = f" Or what runs it: {', '.join(verb.artefacts)}." if verb.artefacts else ""
    return [
        click.Option(
            ["form", "--format"], type=click.Choice(formats), metavar="FORMAT",
            help=f"One of {', '.join(formats)} (default: table).",
        ),
        click.Option(["as_json", "--json"], is_flag=True, help="Same as --format json."),
        click.Option(
            ["output", "-o", "--output"], default="", metavar="FILE",
            help=f"Write to FILE; its ending chooses the format.{files}",
        ),
        click.Option(
            ["folders", flag_of(CATALOG)], multiple=True, metavar="DIR",
            help="Your own catalogue entries, over the shipped.",
        ),
        click.Option(["--quiet"], is_flag=True, help="No remarks, only the answer."),
        click.Option(["--color/--no-color"], default=None, help="Colour, or none (default: on a terminal)."),
        click.Option(["--debug"], is_flag=True, expose_value=False, help="Show the traceback of an error."),
    ]  # fmt: skip


def open_catalog(folders: tuple[str, ...]) -> Catalog:
    """The catalogue, with the user's folders over it."""
    from datahall.catalog import Catalog, load

    for folder in folders:
        if not folder or not Path(folder).is_dir():
            raise CatalogError(
                f'"{folder}" is not a folder',
                where=flag_of(CATALOG),
                hint="name a folder with TOML files in it",
            )
    return Catalog(extra=folders) if folders else load()


def verb_of_file(path: str, verbs: Sequence[Verb]) -> Verb:
    """Which of some verbs a file asks: the one it names, or the one whose sections it has."""
    found = scenario_file(path)
    if found is None:
        raise ScenarioError(f"{path} is not a scenario", hint="a .toml or .json file with version = 1")
    return verb_of(found, verbs)


def completer(field: Field) -> Completer | None:
    """The function that completes an input; None where there is nothing to complete."""
    if not isinstance(inner(field.kind), Name | Choice):
        return None

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        del context, parameter
        head, comma, last = (
            incomplete.rpartition(",") if isinstance(field.kind, Listed) else ("", "", incomplete)
        )
        try:
            found = sorted(name for name in names(inner(field.kind)) if name.startswith(last.lower()))
        except DatahallError:  # a broken overlay must not break the shell
            return []
        return [f"{head}{comma}{name}" for name in found]

    return complete

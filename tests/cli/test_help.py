"""Every command has help that shows how to use it."""

from collections.abc import Callable, Iterator

import click
import pytest

from datahall.answers.ask import form_of
from datahall.answers.verbs import VERBS, Verb
from datahall.cli.main import root
from datahall.cli.names import completer
from datahall.scenario.kinds import Flag


def below(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from below(found, (*path, name))


COMMANDS = [*below(root, ())]


def test_the_verbs_are_those_of_the_design() -> None:
    assert root.list_commands(click.Context(root)) == [
        "plan", "explain", "show", "simulate", "validate", "check", "catalog", "completion",
    ]  # fmt: skip


def test_every_verb_of_the_table_is_a_command() -> None:
    assert {tuple(verb.name.split()) for verb in VERBS} <= set(COMMANDS)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_help_shows_every_input_with_its_default(datahall: Callable, verb: Verb) -> None:
    out = " ".join(datahall(*verb.name.split(), "--help").out.split())
    form = form_of(verb.name)
    if verb.name == "explain":
        return
    for name, field in form.fields.items():
        assert form.flag(name) in out, name
        if field.shown_default and name not in form.arguments and not isinstance(field.kind, Flag):
            assert "".join(f"[default: {field.shown_default}]".split()) in "".join(out.split()), name
    assert all(f"--{concept.name.replace('_', '-')}" in out for concept in form.tables)


@pytest.mark.parametrize("flag", ["--help", "-h"])
@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help(datahall: Callable, path: tuple[str, ...], flag: str) -> None:
    code, out, err = datahall(*path, flag)
    assert (code, err) == (0, "")
    assert "Examples:" in out
    assert out.index("Examples:") < out.index("Options")
    assert f"datahall {' '.join(path)}".strip() in out
    assert max(map(len, out.splitlines())) <= 100


def test_no_arguments_print_the_help(datahall: Callable) -> None:
    assert datahall() == datahall("--help")


def test_help_lists_verbs_in_groups(datahall: Callable) -> None:
    out = datahall("--help").out
    places = [out.index(word) for word in ("Decide:", "Look:", "Trust:")]
    assert places == sorted(places)
    assert "Run:" not in out


def test_version(datahall: Callable) -> None:
    assert datahall("--version").out == "datahall 0.1.0\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(datahall: Callable, shell: str) -> None:
    code, out, _ = datahall("completion", shell)
    assert code == 0
    assert "_DATAHALL_COMPLETE" in out


def test_names_are_completed() -> None:
    context = click.Context(root)
    parameter = click.Argument(["name"])

    def completed(verb: str, name: str, begun: str) -> list[str]:
        complete = completer(form_of(verb).fields[name])
        assert complete is not None
        return complete(context, parameter, begun)

    assert "h100-sxm" in completed("show roofline", "chip", "h1")
    models = completed("show model", "model", "qwen3")
    assert models
    assert all(name.startswith("qwen3") for name in models)
    assert completed("show roofline", "phase", "p") == ["prefill"]
    assert "h200,l40s" in completed("show model", "chips", "h200,l4")
    assert completer(form_of("show model").fields["context"]) is None

"""Every command has help that shows how to use it."""

from collections.abc import Callable, Iterator

import click
import pytest

from datahall.cli.main import root


def below(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from below(found, (*path, name))


COMMANDS = [*below(root, ()), ("completion",)]


def test_the_verbs_are_those_of_the_design() -> None:
    assert root.list_commands(click.Context(root)) == [
        "plan", "explain", "show", "simulate", "validate", "check", "catalog",
    ]  # fmt: skip


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
    from datahall.cli.names import chip_names, model_names

    context = click.Context(root)
    parameter = click.Argument(["name"])
    assert "h100-sxm" in chip_names(context, parameter, "h1")
    assert all(name.startswith("qwen3") for name in model_names(context, parameter, "qwen3"))

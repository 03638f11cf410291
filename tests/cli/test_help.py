"""Every command has help that shows how to use it."""

from collections.abc import Callable, Iterator

import click
import pytest

from datahall.answers.ask import ask, form_of
from datahall.answers.catalog.names import names
from datahall.answers.reply import answer_of
from datahall.answers.verb import Verb
from datahall.answers.verbs import BY_NAME, GROUPS, VERBS, words
from datahall.catalog import Catalog
from datahall.cli.command import Question, completer
from datahall.cli.main import root
from datahall.scenario.kinds import Flag, Listed, Name
from datahall.scenario.usual import USUAL_PRECISION, USUAL_SEQ


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
        "plan", "compare", "sweep", "explain", "show", "simulate", "validate", "check", "catalog", "gateway",
        "studio", "serve", "completion",
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


ON = {  # a fabric that is made of a chip of its own
    "simulate serve": {"model": "llama-3.1-8b", "rate": 2, "requests": 20},
    "show techniques": {"model": "llama-3.1-8b", "rate": 2},
    "show collective": {"collective": "all-reduce", "chips": 72, "size": "1GB"},
    "show memory": {"model": "llama-3.1-8b", "chips": 72},
    "simulate train": {"model": "llama-3.1-8b", "chips": 72, "global_batch": 72},
}


@pytest.mark.parametrize("verb", ON)
def test_help_says_where_a_default_does_not_hold_on_a_fabric(verb: str) -> None:
    answer = answer_of(ask(verb, {**ON[verb], "on": "nvl72"}, catalog=Catalog(user=False)))
    changed = [
        field
        for name, field in form_of(verb).fields.items()
        if name not in ON[verb]
        and field.shown_default
        and field.attribute in answer.inputs
        and answer.inputs[field.attribute] != field.default
        and isinstance(field.kind, Name)
    ]
    assert [field.name for field in changed if "fabric" not in field.kind.help] == []


@pytest.mark.parametrize("flag", ["--help", "-h"])
@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help(datahall: Callable, path: tuple[str, ...], flag: str) -> None:
    code, out, err = datahall(*path, flag)
    assert (code, err) == (0, "")
    assert "Examples:" in out
    assert out.index("Examples:") < out.index("Options")
    assert f"datahall {' '.join(path)}".strip() in out
    assert max(map(len, out.splitlines())) <= 100


def test_a_wide_example_can_be_copied_as_it_stands(datahall: Callable) -> None:
    """What is shown on several lines is, to a shell, the line that the table of verbs has."""
    _, out, _ = datahall("plan", "serve", "--help")
    shown = out.split("Examples:\n")[1].split("\n\n")[0]
    assert "\\\n" in shown
    lines = [" ".join(line.split()) for line in shown.replace("\\\n", " ").splitlines()]
    assert lines == words(BY_NAME["plan serve"])


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_a_command_that_is_made_alone_takes_short_help_too(
    verb: Verb, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands are kept as they were made, be it by the root or by nobody above them."""
    Question(verb).main(["-h"], prog_name="alone", standalone_mode=False)
    assert "-h, --help" in capsys.readouterr().out


@pytest.mark.parametrize("name", [group.name for group in GROUPS] + ["serve", "completion"])
def test_a_group_that_is_made_alone_takes_short_help_too(name: str) -> None:
    found = root.get_command(click.Context(root), name)
    assert found is not None
    assert click.Context(found, **found.context_settings).help_option_names == ["-h", "--help"]


def test_no_arguments_print_the_help(datahall: Callable) -> None:
    assert datahall() == datahall("--help")


def test_help_lists_verbs_in_groups(datahall: Callable) -> None:
    out = datahall("--help").out
    places = [out.index(word) for word in ("Decide:", "Look:", "Trust:", "Run:", "serve  ")]
    assert places == sorted(places)


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


def test_every_name_has_something_to_complete() -> None:
    for verb in VERBS:
        for field in form_of(verb.name).fields.values():
            kind = field.kind.of if isinstance(field.kind, Listed) else field.kind
            if isinstance(kind, Name):
                assert [*names(kind)], f"{verb.name}: {field.name}"


HELP = {
    (verb.name, name): field.kind.help
    for verb in VERBS
    for name, field in form_of(verb.name).fields.items()
}  # fmt: skip
# names that mean one thing to a verb and another to the next, and what each must say
MEANINGS = (
    ("plan serve", "chips", "Kinds of chip"),
    ("show model", "chips", "fits on"),
    ("plan train", "chips", "deadline"),
    ("show memory", "chips", "layout"),
    ("show fabric", "chips", "joins"),
    ("show collective", "chips", "take part"),
    ("show fit", "context", "Tokens of a sequence"),
    ("show roofline", "context", "decode"),
    ("show roofline", "level", "kernels"),
    ("show collective", "level", "network"),
    ("show fabric", "domain", "no network"),
    ("validate", "domain", "measured"),
    ("simulate serve", "routing", "requests"),
    ("simulate fabric", "routing", "paths"),
    ("show hierarchy", "offload", "does not fit"),
    ("plan train", "offload", "may leave"),
    ("show memory", "offload", "Off the chips"),
)


@pytest.mark.parametrize(("verb", "name", "words"), MEANINGS)
def test_a_flag_says_what_it_means_to_its_verb(verb: str, name: str, words: str) -> None:
    assert words in HELP[verb, name]


@pytest.mark.parametrize("verb", [verb.name for verb in VERBS])
def test_no_flag_speaks_of_a_layout_file_where_none_is_taken(verb: str) -> None:
    said = [name for (asked, name), words in HELP.items() if asked == verb and "layout file" in words]
    assert not said or "layout" in form_of(verb).fields


def test_a_plan_of_training_says_the_defaults_that_it_has() -> None:
    usual = {"seq": USUAL_SEQ, "precision": USUAL_PRECISION}
    for name, value in usual.items():
        assert f"(default {value})" in HELP["plan train", name]


def test_a_flag_of_two_sections_is_not_explained_alike() -> None:
    by_name: dict[str, dict[str, set[str]]] = {}
    for verb in VERBS:
        for name, field in form_of(verb.name).fields.items():
            by_name.setdefault(name, {}).setdefault(field.path, set()).add(field.kind.help)
    alike = {
        name
        for name, paths in by_name.items()
        if any(one & other for a, one in paths.items() for b, other in paths.items() if a < b)
    }
    assert alike <= {"as_of"}  # the day that ages are counted from, for two lists


@pytest.mark.parametrize(("verb", "name"), HELP)
def test_help_speaks_of_its_own_verb_alone(verb: str, name: str) -> None:
    text = HELP[verb, name]
    others = {"a plan": "plan", "a roofline": "show roofline"}
    assert not [word for word, own in others.items() if word in text and not verb.startswith(own)], text
    if name in form_of(verb).required:
        assert "(default" not in text, "it has none: it must be said"

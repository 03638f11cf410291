"""One declaration, one answer: flags, options, defaults and vocabularies stand in one place each."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
from tests.house import HOUSE, MODULES, called, each, each_module, inside, parsed, texts

from datahall.answers.ask import form_of
from datahall.answers.catalog.listing import CHIP_KEYS, MODEL_PLACES
from datahall.answers.verb import Verb
from datahall.answers.verbs import BY_NAME, GROUPS, SUBJECTS, VERBS
from datahall.inference.engine.engine import Engine
from datahall.scenario import words
from datahall.scenario.field import CONCEPTS, Concept, fields
from datahall.scenario.sections.deployment import ENGINE
from datahall.scenario.sections.views import CHIP_ORDERS, MODEL_ORDERS

# the table has lines to copy; the flags of others are what `file.py` reads, what artefacts write, and what pip is
# run with to fetch the weights
SPELLS_FLAGS = (
    "cli/",
    "answers/verbs/",
    "training/layout/file.py",
    "planner/artefacts/",
    "serve/modelserver/llm/weights.py",
)
FLAG = re.compile(r"(?<![\w(-])--[a-z]")


@each([path for path in MODULES if path not in inside(*SPELLS_FLAGS)])
def test_no_flag_is_spelled_but_at_the_command_line(path: Path) -> None:
    found = [f"{path.relative_to(HOUSE)}:{line} {text!r}" for line, text in texts(path) if FLAG.search(text)]
    assert not found


def test_those_who_may_spell_flags_do_and_are_on_the_map() -> None:
    page = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    (said,) = re.findall(r"nothing but (.+?) spells a flag", " ".join(page.split()))
    assert tuple(re.findall(r"`(.+?)`", said)) == SPELLS_FLAGS
    for place in SPELLS_FLAGS:
        assert any(FLAG.search(text) for path in inside(place) for _, text in texts(path)), place


def test_the_folder_of_a_catalogue_has_one_name() -> None:
    """Read by a command and written into the next one, as a flag that is made of it."""
    typed = [path for path in MODULES for _, text in texts(path) if re.search(r"--catalog\b", text)]
    assert typed == []


WRITES_COMMANDS = ("answers/follow.py", "answers/verbs/")
COMMAND = re.compile(rf"datahall ({'|'.join(group.name for group in GROUPS)})\b")


@each([path for path in inside("answers") if path not in inside(*WRITES_COMMANDS)])
def test_no_next_command_is_typed_by_hand(path: Path) -> None:
    """`follow` keeps what was given, the catalogue with it; a hint may name a verb."""
    found = [f"{path.relative_to(HOUSE)}:{line}" for line, text in texts(path) if COMMAND.match(text)]
    assert not found, "say it by `follow`, `explained` or `our_error`"


@pytest.mark.parametrize(
    ("text", "is_flag"),
    [("say --tp 4", True), ("--json", True), ("var(--c1)", False), ("a -- b", False), ("--", False)],
)
def test_a_flag_is_known_when_seen(text: str, is_flag: bool) -> None:
    assert bool(FLAG.search(text)) is is_flag


# beside those that are made from the fields of sections: which modules declare options, and how many.  `serve` and
# `studio` are processes and no questions: no file of a scenario has their inputs, no keyword, no explanation
DECLARES_OPTIONS = {"cli/main.py": 1, "cli/serve.py": 16, "cli/studio.py": 4}


@each_module
def test_an_option_is_declared_in_one_place(path: Path) -> None:
    """Options of the command line are made from the fields of sections, by one function."""
    if path == HOUSE / "cli" / "command.py":
        return
    options = [name for _, name in called(path) if name in {"click.option", "click.Option", "option.Option"}]
    assert len(options) == DECLARES_OPTIONS.get(path.relative_to(HOUSE).as_posix(), 0), (
        "declare it in scenario/"
    )


def test_the_verbs_of_every_subject_are_in_the_table() -> None:
    files = [path.stem for path in inside("answers/verbs/") if path.stem != "__init__"]
    assert sorted(one.__name__.rpartition(".")[2] for one in SUBJECTS) == sorted(files)
    assert len(BY_NAME) == len(VERBS) == sum(len(one.VERBS) for one in SUBJECTS)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_no_verb_takes_a_name_twice(verb: Verb) -> None:
    form = form_of(verb.name)  # refuses what stands twice
    names = [
        field.name
        for section in form.sections
        if not CONCEPTS[section].inline
        for field in form.sections[section]
    ]
    assert len(names) == len(set(names))
    assert not set(names) & {concept.name for concept in form.tables}


@pytest.mark.parametrize("section", CONCEPTS)
def test_an_input_is_declared_once_in_its_section(section: str) -> None:
    declared = fields(section)
    assert declared
    for names in ([one.key for one in declared], [one.name for one in declared]):
        assert len(names) == len(set(names))
    for one in declared:
        assert one.kind.help.strip().endswith((".", "…")), f"{one.path}: help is a sentence"
        assert not one.kind.help.startswith(LEANS), f"{one.path}: its help says nothing alone"


def shown_texts(section: str) -> dict[str, set[str]]:
    """The help that some verb shows of each input of a section."""
    found: dict[str, set[str]] = {}
    for verb in VERBS:
        for key, one in form_of(verb.name).of(section).items():
            found.setdefault(key, set()).add(one.kind.help)
    return found


@pytest.mark.parametrize("section", CONCEPTS)
def test_help_that_is_declared_is_shown(section: str) -> None:
    """What every verb replaces by words of its own says nothing to anybody."""
    shown = shown_texts(section)
    assert [one.path for one in fields(section) if one.kind.help not in shown[one.key]] == []


def test_words_that_a_verb_has_of_its_own_are_its_own() -> None:
    for verb in VERBS:
        for section in form_of(verb.name).sections:
            for one in fields(section):
                assert dict(verb.means).get(one.name) != one.kind.help, f"{verb.name}: {one.path}"
    typed = Counter(text for path in inside("answers/verbs/") for _, text in texts(path))
    said = {text for verb in VERBS for _, text in verb.means}
    assert [text for text in said if typed[text] > 1] == [], "type it once"


LEANS = ("…", "The same", "Or ", "And ", "Of ")  # on the help of the input before it
# a default is a constant's value, wherever it is spoken of
TYPED_DEFAULT = re.compile(r"(default:?|else) [\d.]+(?![\w.])|(default:?|else) (bf16|h100-sxm|1f1b)")


@each(inside("scenario/sections"))
def test_a_default_is_typed_once(path: Path) -> None:
    found = [
        f"{path.relative_to(HOUSE)}:{line} {text!r}"
        for line, text in texts(path)
        if TYPED_DEFAULT.search(text)
    ]
    assert not found, "draw it from the constant"


def vocabularies() -> dict[tuple[str, ...], str]:
    """The closed vocabularies of `scenario/words.py`, by their words."""
    levels = {"LEVELS": tuple(words.LEVELS), "values of LEVELS": tuple(words.LEVELS.values())}
    return {
        value: name
        for name, value in {**vars(words), **levels}.items()
        if isinstance(value, tuple) and len(value) > 1 and all(isinstance(word, str) for word in value)
    }


# the workload has a word for what it recomputes, and stands above the scenario
SPELLS_WORDS = ("scenario/words.py", "workload/memory/recompute.py")


@each([path for path in MODULES if path not in inside(*SPELLS_WORDS)])
def test_a_closed_vocabulary_is_written_once(path: Path) -> None:
    known = vocabularies()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Tuple | ast.List):
            texts = tuple(one.value for one in node.elts if isinstance(one, ast.Constant))
            whole = len(texts) == len(node.elts)
            assert not (whole and texts in known), (
                f"{path.relative_to(HOUSE)}:{node.lineno} repeats {known[texts]}"
            )


def redeclared(tree: ast.Module) -> list[str]:
    """Names of closed vocabularies that a module gives to something of its own."""
    found = []
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        found += [
            one.id for one in targets if isinstance(one, ast.Name) and one.id in set(vocabularies().values())
        ]
    return found


@each([path for path in MODULES if path not in inside(*SPELLS_WORDS)])
def test_the_name_of_a_vocabulary_means_nothing_else(path: Path) -> None:
    assert redeclared(parsed(path)) == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('ENGINES = ("vllm", "other")', ["ENGINES"]),
        ("ENGINES: dict[str, int] = {}", ["ENGINES"]),
        ("from datahall.scenario.words import ENGINES", []),
        ("def f():\n    ENGINES = 1", []),
        ("READERS = ()", []),
    ],
)
def test_a_second_meaning_is_known_when_seen(text: str, names: list[str]) -> None:
    assert redeclared(ast.parse(text)) == names


# which inputs say something of a fabric is declared with them, in groups; what a topology has is in its own table
LISTS_WIRING = ("scenario/sections", "answers/verbs/", "fabric/design/topologies.py")
WIRED = ({"domain", "oversubscription"}, {"radix", "tiers"}, {"sides", "switch"})


@each([path for path in MODULES if path not in inside(*LISTS_WIRING)])
def test_what_is_said_of_a_fabric_is_listed_once(path: Path) -> None:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            words = {one.value for one in node.elts if isinstance(one, ast.Constant)}
            assert not any(some <= words for some in WIRED), f"{path.relative_to(HOUSE)}:{node.lineno}"


def test_the_options_of_an_engine_are_declared_once() -> None:
    """A person's options replace the engine's own; verbs take them as a group."""
    options = {field.attribute for field in fields("deployment") if field.kind.group == ENGINE}
    assert options
    assert options <= set(Engine.__struct_fields__)
    taken = {
        verb.name: {field.attribute for field in form_of(verb.name).sections.get("deployment", ())}
        for verb in VERBS
    }
    continuous = {"batching", "wait_s"}  # a closed form is of continuous batching
    for verb, without in (
        ("plan serve", continuous),
        ("show techniques", continuous),
        ("simulate serve", set()),
    ):
        assert options - taken[verb] == without


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb.check], ids=lambda verb: verb.name)
def test_what_a_room_refuses_before_it_is_loaded_stands_in_a_file_of_that_name(verb: Verb) -> None:
    """`asked` makes something of what was asked; `early` refuses it."""
    module, _, name = verb.check.partition(":")
    assert module.rpartition(".")[2] == "early"
    assert name.startswith("check_")


def test_every_order_of_a_list_is_one_that_the_list_knows() -> None:
    assert tuple(CHIP_KEYS) == CHIP_ORDERS
    assert tuple(MODEL_PLACES) == MODEL_ORDERS


def test_a_table_of_words_stands_in_one_module() -> None:
    tables = Counter[str]()
    for path in MODULES:
        for node in parsed(path).body:
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            if isinstance(value, ast.Dict) and len(value.keys) > 2:
                cells = sorted(map(ast.unparse, (*filter(None, value.keys), *value.values)))
                tables[" ".join(cells)] += 1
    assert not [table for table, count in tables.items() if count > 1]


LITERALS = {get_args(kind) for kind in vars(words).values() if get_origin(kind) is Literal}
TYPED = [one for one in CONCEPTS.values() if one.home.startswith("operations.") or one.name == "network"]


@pytest.mark.parametrize("concept", TYPED, ids=lambda one: one.name)
def test_a_word_is_declared_as_one_of_the_words_it_may_be(concept: Concept) -> None:
    """So that nobody who reads it has to say again what it is."""
    hints = get_type_hints(concept.struct(), include_extras=True)
    for field in fields(concept.name):
        kind, *_ = get_args(hints[field.attribute])
        options = tuple(getattr(getattr(field.kind, "of", field.kind), "options", ()))
        assert options not in LITERALS or "Literal" in str(kind), f"{concept.name}.{field.attribute}: {kind}"


# names that mean two things, which happen to have one value
TWO_IDEAS = {
    "ADAPTERS", "CAPITAL", "CHIPS", "COMPUTE", "LIMITS", "SPACE",  # groups of inputs, parts of a bill, things that bind
    "BLOCK", "FILLS", "MOST_LINES", "NODE_CHIPS", "NONE", "SMALL", "TINY", "WIDTH",
}  # fmt: skip
SERVER = inside("serve/")  # a program of its own, whose limits happen to be alike


def constants(tree: ast.Module) -> list[tuple[str, str]]:
    """The constants of a module, by name and value."""
    found = []
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        for target in targets if value is not None else ():
            several = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            pairs = zip(target.elts, value.elts, strict=True) if several else [(target, value)]  # type: ignore[union-attr]
            found += [
                (one.id, ast.unparse(what))
                for one, what in pairs
                if isinstance(one, ast.Name) and one.id.isupper()
            ]
    return [(name, value) for name, value in found if len(name) > 1]


def test_a_constant_is_written_once() -> None:
    """The same name with the same value in two modules is one thing that is declared twice."""
    places: dict[tuple[str, str], list[str]] = {}
    for path in MODULES:
        for one in set(constants(parsed(path))) if path not in SERVER else ():
            places.setdefault(one, []).append(path.relative_to(HOUSE).as_posix())
    twice = {one: where for one, where in places.items() if len(where) > 1}
    assert not {one: where for one, where in twice.items() if one[0] not in TWO_IDEAS}, "import it"
    assert {name for name, _ in twice} == TWO_IDEAS


def test_what_is_usual_is_declared_once() -> None:
    """A default has one home, whatever its value; the name of one in another module is that of another thing."""
    usual = Counter(
        name
        for path in MODULES
        if path not in SERVER
        for name in {name for name, _ in constants(parsed(path))}
        if name.startswith("USUAL_")
    )
    assert [name for name, count in usual.items() if count > 1] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("USUAL_MODEL = 'a'", [("USUAL_MODEL", "'a'")]),
        ("FAR: int = 3\nx = 4", [("FAR", "3")]),
        ("MANY, FEW = 9, 2", [("MANY", "9"), ("FEW", "2")]),
        ("def f():\n    FAR = 1", []),
    ],
)
def test_a_constant_is_known_when_seen(text: str, found: list[tuple[str, str]]) -> None:
    assert constants(ast.parse(text)) == found


def stands_in(tree: ast.AST) -> list[int]:
    """Lines where a number is taken for what nobody said."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or)
        for last in node.values[-1:]
        if isinstance(last, ast.Constant) and isinstance(last.value, int | float) and last.value > 1
    ]


@each([path for path in MODULES if path not in SERVER])
def test_what_stands_where_nobody_says_has_a_name(path: Path) -> None:
    assert stands_in(parsed(path)) == [], "it is a default: name it where the input is declared"


@pytest.mark.parametrize(
    ("text", "lines"), [("said or 1024", [1]), ("high - low or 1.0", []), ("said or USUAL_CHIPS", [])]
)
def test_a_number_that_stands_in_is_known_when_seen(text: str, lines: list[int]) -> None:
    assert stands_in(ast.parse(text)) == lines


# which say one thing of two, or lead to another remedy
REFUSED_TWICE = {
    "a failure names what is out",  # of a fabric, or of a service too
    "nobody published a scale-up bandwidth for {chip.name}",  # that a fabric is made of, or that is timed
    "{name} is {value:g}", "{twice} is said twice", "nothing is named", "nothing is said",
}  # fmt: skip


def refusals(tree: ast.AST) -> Iterator[str]:
    """What is said where something is refused, and why an input does nothing: sentences, not the names of kinds."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name, place = ast.unparse(node.func), 0
            if name in {"does_nothing", "do_nothing"}:
                place = 1
            elif name not in {"ScenarioError", "InfeasibleError", "UnsupportedError"}:
                continue
            for said in node.args[place : place + 1]:
                text = ast.unparse(said)[1 if isinstance(said, ast.Constant) else 2 : -1]
                if isinstance(said, ast.Constant | ast.JoinedStr) and len(text.split()) > 2:
                    yield text


def test_a_refusal_is_worded_once() -> None:
    """Whoever refuses the same has it from one function; rows of the ledger are refused by their readers."""
    own = [path for path in MODULES if path not in SERVER and path not in inside("validation/")]
    said = Counter(text for path in own for text in refusals(parsed(path)))
    assert {text for text, count in said.items() if count > 1} == REFUSED_TWICE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('raise ScenarioError("there are no chips")', ["there are no chips"]),
        ('ScenarioError(f"{num} are too many", field="chips")', ["{num} are too many"]),
        ('does_nothing("chips", "there are no chips")', ["there are no chips"]),
        ('ScenarioError(does_nothing(name, "it is so"))', ["it is so"]),
        ('UnknownNameError("engine", name)', []),
    ],
)
def test_a_refusal_is_known_when_seen(text: str, said: list[str]) -> None:
    assert list(refusals(ast.parse(text))) == said

"""The house keeps its shape: rooms in order, one idea a file, units in names, nothing heavy at the door."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest

import datahall
from datahall.answers.ask import form_of
from datahall.answers.verbs import VERBS, Verb
from datahall.inference.engine.engine import Engine
from datahall.scenario import words
from datahall.scenario.field import CONCEPTS, fields
from datahall.scenario.sections.deployment import ENGINE
from datahall.units import unit_of

HOUSE = Path(datahall.__file__).parent
# From top to bottom as the data flows: a room imports only what stands before it.  `answers` puts
# what every room computes into words; `report` draws the answers and knows none of them.
ORDER = (
    "errors", "units", "breakdown", "compiled", "answer",
    "events", "catalog", "workload", "scenario", "silicon", "fabric", "cluster", "training", "inference", "reliability",
    "scheduling", "datapath", "power", "economics", "planner", "validation", "calibrate", "run", "serve", "audit",
    "answers", "report", "studio", "cli",
)  # fmt: skip
FRONT_DOORS = {"__init__", "__main__"}
# A notebook asks an answer for its own HTML, which only `report` can draw; imported when asked.
UPWARD = {("answer", "report")}
BANNED = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "base", "core", "misc"}
LONGEST = 400
LONGER = {"answers/verbs.py": 500}  # one table: a verb is read beside the others

MOST_MODULES = 15  # of one folder, beside its __init__

MODULES = sorted(HOUSE.rglob("*.py"))
ROOMS = sorted(path.parent for path in HOUSE.glob("*/__init__.py"))
each_module = pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(HOUSE)))


def each(paths: list[Path]) -> pytest.MarkDecorator:
    """A test of some modules or folders."""
    return pytest.mark.parametrize("path", paths, ids=lambda path: str(path.relative_to(HOUSE)))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def room_of(path: Path) -> str:
    """The room, or the top module, that a file belongs to."""
    return path.relative_to(HOUSE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> Iterator[tuple[int, str]]:
    """Line and room of every import from the house, wherever in the file it stands."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.module == "datahall":
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name in ORDER)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("datahall."):
            yield node.lineno, (node.module or "").split(".")[1]
        elif isinstance(node, ast.Import):
            names = (alias.name.split(".") for alias in node.names)
            yield from ((node.lineno, name[1]) for name in names if name[0] == "datahall" and len(name) > 1)


@each_module
def test_rooms_import_downward_only(path: Path) -> None:
    room = room_of(path)
    if room in FRONT_DOORS:
        return
    assert room in ORDER, f"{room} has no place in the house; see DESIGN"
    for line, other in imported_rooms(path):
        allowed = other == room or ORDER.index(other) < ORDER.index(room) or (room, other) in UPWARD
        assert allowed, f"{path.relative_to(HOUSE)}:{line} imports {other}, which stands below {room}"


def test_the_import_walk_sees_imports_at_any_depth(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text(
        "import datahall.units\nfrom datahall import answers\n"
        "def f():\n    from datahall.report.page import page\n"
        "if TYPE_CHECKING:\n    from datahall.cli import main\n"
    )
    assert sorted(imported_rooms(file)) == [(1, "units"), (2, "answers"), (4, "report"), (6, "cli")]


@each_module
def test_a_file_is_one_idea_with_a_name_of_its_own(path: Path) -> None:
    names = {part.removesuffix(".py") for part in path.relative_to(HOUSE).parts}
    assert not names & BANNED
    longest = LONGER.get(str(path.relative_to(HOUSE)), LONGEST)
    assert len(path.read_text(encoding="utf-8").splitlines()) <= longest


@each_module
def test_only_the_command_line_and_its_reports_print(path: Path) -> None:
    if room_of(path) in {"cli", "report"}:
        return
    calls = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)]
    assert not [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]


@each_module
def test_no_error_is_swallowed_whole(path: Path) -> None:
    """Only the process boundary catches everything; elsewhere a blanket except cleans up and raises again."""
    if room_of(path) == "cli":
        return
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ExceptHandler) and blanket(node):
            last = node.body[-1]
            assert isinstance(last, ast.Raise), f"{path.relative_to(HOUSE)}:{node.lineno}"
            assert last.exc is None, f"{path.relative_to(HOUSE)}:{node.lineno}"


def blanket(handler: ast.ExceptHandler) -> bool:
    caught = handler.type
    kinds = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    names = {one.id for one in kinds if isinstance(one, ast.Name)}
    return caught is None or bool(names & {"Exception", "BaseException"})


@pytest.mark.parametrize(
    "text", ["except:", "except Exception:", "except (OSError, BaseException) as error:"]
)
def test_a_blanket_except_is_known_when_seen(text: str) -> None:
    (handler,) = (
        node
        for node in ast.walk(ast.parse(f"try:\n pass\n{text}\n pass"))
        if isinstance(node, ast.ExceptHandler)
    )
    assert blanket(handler)


@each_module
def test_every_module_says_what_it_holds(path: Path) -> None:
    if not path.read_text(encoding="utf-8").strip():
        assert path.name == "__init__.py", "an empty file"
        assert path.parent not in ROOMS, "a room says what lives in it"
        return
    assert ast.get_docstring(parsed(path))


def test_every_folder_of_code_is_a_room() -> None:
    folders = {path.parent for path in MODULES if path.parent != HOUSE}
    assert not [folder for folder in folders if not (folder / "__init__.py").exists()]
    assert {room.name for room in ROOMS} <= set(ORDER)


@pytest.mark.parametrize("first", ["datahall", "datahall.cli.main"])
def test_nothing_heavy_stands_at_the_door(first: str) -> None:
    heavy = ("numpy", "numba", "rich", "genai_prices", "datahall.catalog", "datahall.silicon")
    code = f"import sys, {first}; print([name for name in {heavy!r} if name in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(HOUSE.parent)},
    )
    assert found.stdout.strip() == "[]"


def test_every_public_name_leads_somewhere() -> None:
    for name in datahall.__all__:
        assert getattr(datahall, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        datahall.nothing  # noqa: B018


# Numbers without a unit: shares of a whole, shapes of a product or a cache, values whose unit stands beside.
SHARES = (
    "efficiency",
    "factor",
    "share",
    "sharpness",
    "coverage",
    "ape",
    "percent",
    "bias",
    "imbalance",
    "sustained",
)
SHAPES = {
    "m", "n", "k", "rows", "batch", "query", "past", "q_len", "kv_len", "head_dim", "value_dim", "window",
    "width", "row_width", "tile_n", "tile_m", "tile_rows", "pad_rows", "split", "split_above_blocks", "waves",
    "tp", "ep", "cp", "most_chips", "reads", "writes", "dense", "expert",
}  # fmt: skip
UNIT_BESIDE = {"value", "low", "high", "measured", "predicted", "minimum", "at_least", "band", "bands"}
PER_PARAMETER = {"weight", "gradient", "master", "moments"}  # bytes of a state recipe, per parameter


def structs(room: str) -> Iterator[type[msgspec.Struct]]:
    for path in sorted((HOUSE / room).rglob("*.py")):
        name = ".".join(("datahall", *path.relative_to(HOUSE).with_suffix("").parts)).removesuffix(
            ".__init__"
        )
        for one in vars(importlib.import_module(name)).values():
            if inspect.isclass(one) and issubclass(one, msgspec.Struct) and one.__module__ == name:
                yield one


@pytest.mark.parametrize("room", ["catalog", "workload", "silicon", "validation"])
def test_a_number_says_its_unit_in_its_name(room: str) -> None:
    found = list(structs(room))
    assert found
    for struct in found:
        for field, kind in inspect.get_annotations(struct).items():
            if struct.__name__.startswith("_") or not (
                "float" in str(kind) or str(kind).startswith("Number")
            ):
                continue
            known = unit_of(field) or field.endswith(SHARES)
            assert known or field in SHAPES | UNIT_BESIDE | PER_PARAMETER, (
                f"{struct.__qualname__}.{field}: {kind}"
            )


def inside(*rooms: str) -> list[Path]:
    return [path for path in MODULES if str(path.relative_to(HOUSE)).startswith(rooms)]


def called(path: Path) -> Iterator[tuple[int, str]]:
    """Line and name of every call."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node.lineno, node.func.id
            elif isinstance(node.func, ast.Attribute):
                yield node.lineno, ast.unparse(node.func)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of every string that is not a docstring."""
    tree = parsed(path)
    bodies = [
        node.body for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
    ]
    docstrings = {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


FOLDERS = sorted({path.parent for path in MODULES})


@each(FOLDERS)
def test_a_folder_can_be_taken_in_at_a_glance(path: Path) -> None:
    modules = [file.stem for file in path.glob("*.py") if file.stem not in FRONT_DOORS]
    assert len(modules) <= MOST_MODULES, f"{len(modules)} modules: make sub-rooms"


@each(inside("answers"))
def test_answers_hold_words_and_no_maths_of_arrays(path: Path) -> None:
    for node in ast.walk(parsed(path)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        heavy = {name.split(".")[0] for name in names} & {"numpy", "numba"}
        assert not heavy, f"{path.relative_to(HOUSE)}:{getattr(node, 'lineno', 0)} imports {heavy}"


ARITHMETIC = (ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.Sub)


def computed(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of every product, quotient, difference and sum but percent and counts of what is listed."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ARITHMETIC):
            sides = (node.left, node.right)
            percent = any(isinstance(side, ast.Constant) and side.value == 100 for side in sides)
            listed = isinstance(node.op, ast.Sub) and any(
                isinstance(side, ast.Call) and ast.unparse(side.func) == "len" for side in sides
            )
            if not percent and not listed:
                yield node.lineno, ast.unparse(node)
        elif (isinstance(node, ast.AugAssign) and isinstance(node.op, ARITHMETIC)) or (
            isinstance(node, ast.Call) and ast.unparse(node.func) == "sum"
        ):
            yield node.lineno, ast.unparse(node)


@each(inside("answers"))
def test_answers_word_what_rooms_have_computed(path: Path) -> None:
    found = [f"{path.relative_to(HOUSE)}:{line} {text}" for line, text in computed(parsed(path))]
    assert not found, "compute it in its room"


@pytest.mark.parametrize(
    ("text", "is_computed"),
    [
        ("a / b", True), ("1 - a / b", True), ("a * 2", True), ("a -= b", True), ("f(a ** b)", True), ("a - b", True),
        ("sum(a)", True),
        ("100 * share", False), ("len(rows) - 1", False), ("'a' + b", False), ("words += more", False),
    ],
)  # fmt: skip
def test_arithmetic_is_known_when_seen(text: str, is_computed: bool) -> None:
    assert bool(list(computed(ast.parse(text)))) is is_computed


# `follow` writes commands; a launcher's own flags are what `file.py` reads
SPELLS_FLAGS = ("cli", "answers/verbs.py", "answers/follow.py", "training/layout/file.py")
FLAG = re.compile(r"(?<![\w(-])--[a-z]")


@each([path for path in MODULES if path not in inside(*SPELLS_FLAGS)])
def test_no_flag_is_spelled_but_at_the_command_line(path: Path) -> None:
    found = [f"{path.relative_to(HOUSE)}:{line} {text!r}" for line, text in texts(path) if FLAG.search(text)]
    assert not found


@pytest.mark.parametrize(
    ("text", "is_flag"),
    [("say --tp 4", True), ("--json", True), ("var(--c1)", False), ("a -- b", False), ("--", False)],
)
def test_a_flag_is_known_when_seen(text: str, is_flag: bool) -> None:
    assert bool(FLAG.search(text)) is is_flag


@each_module
def test_an_option_is_declared_in_one_place(path: Path) -> None:
    """Options of the command line are made from the fields of sections, by one function."""
    if path == HOUSE / "cli" / "command.py":
        return
    options = [name for _, name in called(path) if name in {"click.option", "click.Option", "option.Option"}]
    assert len(options) <= (1 if path == HOUSE / "cli" / "main.py" else 0), "declare it in scenario/"


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


LEANS = ("…", "The same", "Or ", "And ", "Of ")  # on the help of the input before it
# a default is a constant's value, wherever it is spoken of
TYPED_DEFAULT = re.compile(r"(default:?|else) [\d.]+(?![\w.])|(default:?|else) (bf16|h100-sxm)")


@each(inside("scenario/sections"))
def test_a_default_is_typed_once(path: Path) -> None:
    found = [
        f"{path.relative_to(HOUSE)}:{line} {text!r}"
        for line, text in texts(path)
        if TYPED_DEFAULT.search(text)
    ]
    assert not found, "draw it from the constant"


# what is built from a person's input is built in its own room, by one function; the ledger builds what was measured
MADE_IN = {
    "Replica": ("inference/engine", "validation"),
    "Layout": ("training/layout", "validation"),
    "Cluster": ("cluster", "validation"),
}


@each(MODULES)
def test_replicas_layouts_and_clusters_are_built_in_their_own_room(path: Path) -> None:
    for line, name in called(path):
        place = str(path.relative_to(HOUSE))
        assert place.startswith(MADE_IN.get(name, ("",))), f"{place}:{line} builds a {name}"


DEGREES = {"tp", "pp", "dp", "ep", "cp", "vpp"}
REPLACES = {
    "answers/serving/techniques.py": "the same group one chip wide, which the others are compared with"
}


def replaced(tree: ast.Module) -> list[int]:
    """Lines that make a replica, a layout or a cluster, or the split of one, from another."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    return [
        call.lineno
        for call in calls
        if ast.unparse(call.func).split(".")[-1] == "replace"
        and (
            ast.unparse(call.args[0]).split(".")[-1] in {name.lower() for name in MADE_IN}
            or {keyword.arg for keyword in call.keywords} & DEGREES
        )
    ]


@each(inside("answers", "cli", "report", "scenario"))
def test_what_a_room_has_built_is_not_changed_where_it_is_worded(path: Path) -> None:
    place = str(path.relative_to(HOUSE))
    assert bool(replaced(parsed(path))) == (place in REPLACES)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("msgspec.structs.replace(replica, tp=2)", [1]),
        ("\nreplace(plan.layout, zero=3)", [2]),
        ("structs.replace(plain, tp=degree)", [1]),
        ("structs.replace(answer, notes=())", []),
        ("text.replace('a', 'b')", []),
    ],
)
def test_a_changed_split_is_known_when_seen(text: str, lines: list[int]) -> None:
    assert replaced(ast.parse(text)) == lines


@each([path for path in MODULES if path != HOUSE / "breakdown.py"])
def test_figures_are_made_by_their_constructors(path: Path) -> None:
    assert not [line for line, name in called(path) if name == "Breakdown"]


# A person's own entries are in the catalogue that was asked with: it is handed down, never loaded again.
MAY_LOAD = ("catalog/", "answers/", "cli/", "validation/")
LOADS = {
    "fabric/collectives/engine_all_reduce.py": "the chip that shipped constants were fitted on",
    "fabric/collectives/system.py": "the same, and callers without a catalogue, e.g. tests",
    "cluster/cluster.py": "callers without a catalogue, e.g. a replica that was given no machine",
}


def loads(tree: ast.Module) -> list[int]:
    """Lines that load the catalogue, under whatever name it was imported."""
    names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("datahall.catalog")
        for alias in node.names
        if alias.name == "load"
    }
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id in names]


@each([path for path in MODULES if path not in inside(*MAY_LOAD)])
def test_a_room_computes_with_the_catalogue_that_was_asked_with(path: Path) -> None:
    place = str(path.relative_to(HOUSE))
    lines = loads(parsed(path))
    assert bool(lines) == (place in LOADS), f"{place} loads the catalogue in lines {lines}"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("from datahall.catalog import load\nload().chip('x')", [2]),
        ("from datahall.catalog.catalog import load as shelf\n\nshelf()", [3]),
        ("from datahall.fabric.flows.run import load\nload()", []),
    ],
)
def test_loading_is_known_when_seen(text: str, lines: list[int]) -> None:
    assert loads(ast.parse(text)) == lines


# what nothing spells, and why it is there all the same
UNSPELLED = {
    "__dir__": "Python asks for it",
    "ring_broadcast_time": "the chain of a textbook, beside its tree",
    **{
        f"read_{kind}": "found by its kind"
        for kind in ("cable", "chip", "known_fabric", "link", "model", "offer", "reroute", "server", "switch")
    },
}


def spelled() -> Counter[str]:
    """How often the house, its benchmarks and its documents spell each word; docstrings do not count."""
    root = Path(__file__).parents[1]
    words: Counter[str] = Counter()
    for page in (root / "docs").rglob("*.md"):
        words.update(re.findall(r"\w+", page.read_text(encoding="utf-8")))
    for path in (
        *MODULES,
        *(file for room in ("docs", "benchmarks", "calibration") for file in (root / room).rglob("*.py")),
    ):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
                node.body[0] = ast.Pass()
        words.update(re.findall(r"\w+", ast.unparse(tree)))
    return words


def test_what_only_tests_call_is_not_kept() -> None:
    """Functions and classes of modules are spelled once where they are made, and again where they are used."""
    words = spelled()
    alone = {
        node.name: str(path.relative_to(HOUSE))
        for path in MODULES
        for node in parsed(path).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and words[node.name] < 2
    }
    assert alone.keys() == UNSPELLED.keys(), "delete it with its tests"


def vocabularies() -> dict[tuple[str, ...], str]:
    """The closed vocabularies of `scenario/words.py`, by their words."""
    return {
        value: name
        for name, value in vars(words).items()
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


def test_the_options_of_an_engine_are_declared_once() -> None:
    """A person's options replace the engine's own; verbs take them as a group."""
    options = {field.attribute for field in fields("deployment") if field.kind.group == ENGINE}
    assert options
    assert options <= set(Engine.__struct_fields__)
    taken = {
        verb.name: {field.attribute for field in form_of(verb.name).sections.get("deployment", ())}
        for verb in VERBS
    }
    for verb in ("plan serve", "show techniques", "simulate serve"):
        assert options <= taken[verb]

"""The house keeps its shape: rooms in order, one idea a file, units in names, nothing heavy at the door."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.house import HOUSE, MODULES, each, each_module, inside, parsed, room_of

import datahall
from datahall.units import unit_of

# From top to bottom as the data flows: a room imports only what stands before it.  `answers` puts
# what every room computes into words; `report` draws the answers and knows none of them.
ORDER = (
    "counted", "errors", "units", "basis", "breakdown", "machine_code", "compiled", "answer",
    "events", "catalog", "workload", "scenario", "silicon", "fabric", "cluster", "training", "inference", "reliability",
    "scheduling", "datapath", "power", "economics", "planner", "validation", "calibrate", "run", "serve", "audit",
    "answers", "report", "studio", "cli",
)  # fmt: skip
FRONT_DOORS = {"__init__", "__main__"}
# A notebook asks an answer for its own HTML, which only `report` can draw; imported when asked.
UPWARD = {("answer", "report")}
BANNED = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "base", "core", "misc"}
LONGEST = 400

# where one request or task ends without ending the process, beside the command line
BOUNDARIES = {"serve/http/server.py"}

MOST_MODULES = 15  # of one folder, beside its __init__

ROOMS = sorted(path.parent for path in HOUSE.glob("*/__init__.py"))


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
        assert allowed, f"{path.relative_to(HOUSE)}:{line} imports {other}, which stands above {room}"


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
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST


@each_module
def test_only_the_command_line_and_its_reports_print(path: Path) -> None:
    if room_of(path) in {"cli", "report"}:
        return
    calls = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)]
    assert not [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]


@each_module
def test_no_error_is_swallowed_whole(path: Path) -> None:
    """Only the process boundary catches everything; elsewhere a blanket except cleans up and raises again."""
    if room_of(path) == "cli" or path.relative_to(HOUSE).as_posix() in BOUNDARIES:
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
    # constants of models and words of the field that are over something of their own kind
    "overlap", "exposed", "ramp", "taper", "gain", "skew", "zipf", "jitter", "band", "scale",
    "percentile", "acceptance", "oversubscription", "hourly", "region", "ratios", "fractions", "shares",
    "tpot", "ttft", "throughput",  # bands of a prediction: measured over predicted
    "temperature", "top_p", "penalty",  # of sampling, as OpenAI's clients send them
)  # fmt: skip
SHAPES = {
    "m", "n", "k", "rows", "batch", "query", "past", "q_len", "kv_len", "head_dim", "value_dim", "window",
    "width", "row_width", "tile_n", "tile_m", "tile_rows", "pad_rows", "split", "waves",
    "tp", "ep", "cp", "most_chips", "reads", "writes", "dense", "expert",
}  # fmt: skip
UNIT_BESIDE = {
    "value", "low", "high", "measured", "predicted", "minimum", "at_least", "band", "bands",
    "least", "most", "start", "end",  # of a kind of input, whose unit it says; of the scale of a drawing
    "chip_hours",  # in its name
    "load_curve",  # pairs of requests/s and seconds
    "features", "prediction", "latency_ms", "avg_latency_ms",  # of the lab's /predict and /health, as its clients read
}  # fmt: skip
# how many of something there are on average, hence no whole number
MEANS = {
    "own_steps", "hidden", "top_k", "etp", "bytes_per_value", "tokens_per_step", "mean_hops", "turns",
    "target", "queue_mean", "window_blocks", "state_blocks", "bucket_values",
}  # fmt: skip
# places where some numbers do not say their unit yet; one that is named through is taken out of here
NOT_YET = {
    "datapath": "requests and waits of a reader, and dollars of a month",
    "reliability": "ETTR, speeds of what is left, and a spread of repairs",
    "inference.closed_form": "tokens and sequences of a load, which formulas name as papers do",
}
PER_PARAMETER = {"weight", "gradient", "master", "moments"}  # bytes of a state recipe, per parameter


def structs(room: str) -> Iterator[type[msgspec.Struct]]:
    for path in sorted((HOUSE / room).rglob("*.py")):
        name = ".".join(("datahall", *path.relative_to(HOUSE).with_suffix("").parts)).removesuffix(
            ".__init__"
        )
        for one in vars(importlib.import_module(name)).values():
            if inspect.isclass(one) and issubclass(one, msgspec.Struct) and one.__module__ == name:
                yield one


def without_unit(room: str) -> list[str]:
    """Numbers of the structs of a room whose name says neither a unit nor that they have none."""
    return [
        f"{struct.__module__.removeprefix('datahall.')}.{struct.__name__}.{field}"
        for struct in structs(room)
        if not struct.__name__.startswith("_")
        for field, kind in inspect.get_annotations(struct).items()
        if ("float" in str(kind) or str(kind).startswith("Number")) and "Callable" not in str(kind)
        if not unit_of(field) and not field.endswith(SHARES)
        and field not in SHAPES | UNIT_BESIDE | PER_PARAMETER | MEANS
    ]  # fmt: skip


@each(ROOMS)
def test_a_number_says_its_unit_in_its_name(path: Path) -> None:
    found = without_unit(path.name)
    assert not [one for one in found if not one.startswith(tuple(NOT_YET))]
    unnamed = [place for place in NOT_YET if place.partition(".")[0] == path.name]
    for place in unnamed:
        assert any(one.startswith(place) for one in found), f"all of {place} is named: take it out of NOT_YET"


def test_structs_of_most_rooms_are_looked_at() -> None:
    assert sum(any(True for _ in structs(room.name)) for room in ROOMS) > 12


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


# what words that an input does nothing, and the module that has it
WORDING = {
    ("datahall.scenario", "idle"),
    *(
        ("datahall.scenario.idle", name)
        for name in ("does_nothing", "do_nothing", "idle_notes", "idle_together")
    ),
}


def words_idle_inputs(tree: ast.Module) -> bool:
    """Whether a module imports what words that an input does nothing."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return bool(WORDING & {(node.module, alias.name) for node in imports for alias in node.names})


@each([path for path in inside("answers") if path.name != "idle.py"])
def test_answers_word_what_does_nothing_in_modules_of_that_name(path: Path) -> None:
    assert not words_idle_inputs(parsed(path)), "say it in idle.py of its folder"


def misplaced_finders(path: Path, tree: ast.Module) -> list[str]:
    """Functions that find inputs that do nothing, in a module or by a name where nobody looks for them."""
    names = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    elsewhere = path.name != "idle.py" and room_of(path) not in {"scenario", "answers"}
    return [
        name
        for name in names
        if name == "unfelt" or (elsewhere and name.lstrip("_").startswith("idle_inputs"))
    ]


@each_module
def test_inputs_that_do_nothing_are_found_in_modules_of_that_name(path: Path) -> None:
    assert not misplaced_finders(path, parsed(path)), "idle_inputs, in idle.py of its folder"


@pytest.mark.parametrize(
    ("text", "is_wording"),
    [
        ("from datahall.scenario.idle import idle_notes", True),
        ("def f():\n    from datahall.scenario.idle import is_changed, does_nothing", True),
        ("from datahall.scenario import idle", True),
        ("from datahall.scenario.idle import is_changed", False),
        ("from datahall.answers.idle import idle_network", False),
    ],
)
def test_wording_is_known_when_seen(text: str, is_wording: bool) -> None:
    assert words_idle_inputs(ast.parse(text)) is is_wording


@pytest.mark.parametrize(
    ("place", "name", "is_misplaced"),
    [
        ("cluster/idle.py", "idle_inputs_of_groups", False),
        ("cluster/cluster.py", "idle_inputs", True),
        ("fabric/design/early.py", "idle_inputs_of", True),
        ("answers/training/plan.py", "idle_inputs", False),
        ("cluster/idle.py", "unfelt", True),
    ],
)
def test_a_finder_is_known_when_seen(place: str, name: str, is_misplaced: bool) -> None:
    assert bool(misplaced_finders(HOUSE / place, ast.parse(f"def {name}(): ..."))) is is_misplaced


def reads_the_clock(tree: ast.Module) -> bool:
    """Whether an answer could be another one tomorrow."""
    names = {"today", "now", "utcnow"}
    return any(isinstance(node, ast.Attribute) and node.attr in names for node in ast.walk(tree))


@each([path for path in MODULES if room_of(path) != "cli"])
def test_no_answer_changes_by_waiting(path: Path) -> None:
    assert not reads_the_clock(parsed(path)), "count ages from economics/market.day_of"


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("import datetime\nday = datetime.date.today()", True),
        ("from datetime import datetime\nday = datetime.now()", True),
        ("import datetime\nday = datetime.date.fromisoformat('2026-08-22')", False),
    ],
)
def test_a_look_at_the_clock_is_known_when_seen(text: str, reads: bool) -> None:
    assert reads_the_clock(ast.parse(text)) is reads


@each_module
def test_a_file_that_a_text_points_at_is_there(path: Path) -> None:
    """Beside the file that names it, in its room, in the house or in the repository."""
    root = Path(__file__).parents[1]
    room = HOUSE / room_of(path)
    named = re.findall(r"`([\w/]+\.py)`", path.read_text(encoding="utf-8"))
    lost = [
        name
        for name in named
        if not any((place / name).exists() for place in (path.parent, room, HOUSE, root))
    ]
    assert not lost

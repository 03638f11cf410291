"""The house keeps its shape: rooms in order, one idea a file, units in names, nothing heavy at the door."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import datahall
from datahall.units import unit_of

HOUSE = Path(datahall.__file__).parent
# From top to bottom as the data flows: a room imports only what stands before it.  `answers` puts
# what every room computes into words; `report` draws the answers and knows none of them.
ORDER = (
    "lazy", "errors", "units", "breakdown", "compiled", "answer",
    "events", "catalog", "workload", "scenario", "silicon", "fabric", "cluster", "training", "inference", "reliability",
    "scheduling", "datapath", "power", "economics", "planner", "validation", "calibrate", "run", "serve", "audit",
    "answers", "report", "studio", "cli",
)  # fmt: skip
FRONT_DOORS = {"__init__", "__main__"}
# A notebook asks an answer for its own HTML, which only `report` can draw; imported when asked.
UPWARD = {("answer", "report")}
BANNED = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "base", "core", "misc"}
LONGEST = 500

MODULES = sorted(HOUSE.rglob("*.py"))
ROOMS = sorted(path.parent for path in HOUSE.glob("*/__init__.py"))
each_module = pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(HOUSE)))


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
        "import datahall.units\nfrom datahall import show\n"
        "def f():\n    from datahall.report.page import page\n"
        "if TYPE_CHECKING:\n    from datahall.cli import main\n"
    )
    assert sorted(imported_rooms(file)) == [(1, "units"), (2, "show"), (4, "report"), (6, "cli")]


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

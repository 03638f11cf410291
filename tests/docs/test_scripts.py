"""What scripts beside the package import from it, and from each other, is there; what they need else may be missing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted([*(ROOT / "calibration").glob("*.py"), *(ROOT / "benchmarks").glob("*.py")])


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """The names that a script imports, each with its module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, one.name) for one in node.names)


def top_names(path: Path) -> set[str]:
    """What a script defines."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    return found


def is_there(path: Path, module: str, name: str) -> bool:
    """Whether a name of the package, or of a script beside this one, exists."""
    if module.split(".")[0] == "datahall":
        return hasattr(import_module(module), name) or find_spec(f"{module}.{name}") is not None
    beside = path.parent / f"{module.split('.')[-1]}.py"
    return not beside.exists() or name in top_names(beside)


@pytest.mark.parametrize("path", SCRIPTS, ids=[f"{path.parent.name}/{path.name}" for path in SCRIPTS])
def test_what_a_script_imports_is_there(path: Path) -> None:
    missing = [f"{module}.{name}" for module, name in imported(path) if not is_there(path, module, name)]
    assert not missing

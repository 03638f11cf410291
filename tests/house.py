"""The modules of the house, and what a test of its shape reads in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import datahall

HOUSE = Path(datahall.__file__).parent
MODULES = sorted(HOUSE.rglob("*.py"))
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

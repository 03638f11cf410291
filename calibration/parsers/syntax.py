"""Python sources read as syntax alone: classes with their fields, names for lists of words, calls of `add_argument`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

NUMBERS = {
    "PositiveInt": "int",
    "NonNegativeInt": "int",
    "PositiveFloat": "float",
    "NonNegativeFloat": "float",
}
SIMPLE = {"int": "int", "float": "float", "str": "text", "bool": "flag", "dict": "json", "Dict": "json"}
WRAPPERS = {"Annotated", "SkipValidation"}  # what says more of a type than which it is
LISTS = {"list", "List", "set", "tuple", "Tuple", "Sequence"}
UNREAD = object()  # a default that is computed when the tool runs


class Sources:
    """The files of a tool, and what is called how in them."""

    def __init__(self, root: Path, patterns: tuple[str, ...]) -> None:
        paths = sorted({path for pattern in patterns for path in root.glob(pattern)})
        if not paths:
            raise SystemExit(f"{root} has no {', '.join(patterns)}")
        self.trees = {str(path.relative_to(root)): ast.parse(path.read_text()) for path in paths}

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        return {node.name: node for node in self._nodes() if isinstance(node, ast.ClassDef)}

    @cached_property
    def functions(self) -> dict[str, ast.FunctionDef]:
        return {node.name: node for node in self._nodes() if isinstance(node, ast.FunctionDef)}

    @cached_property
    def names(self) -> dict[str, ast.expr]:
        """What stands on the right of every name that is set at the top of a file."""
        found: dict[str, ast.expr] = {}
        for tree in self.trees.values():
            for node in tree.body:
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    found[node.targets[0].id] = node.value
                elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
                    found[node.target.id] = node.value
        return found

    def _nodes(self) -> Iterator[ast.AST]:
        return (node for tree in self.trees.values() for node in ast.walk(tree))

    def fields(self, name: str) -> Iterator[ast.AnnAssign]:
        """The fields of a class and of those that it extends, its own last."""
        one = self.classes[name]
        for base in one.bases:
            if isinstance(base, ast.Name) and base.id in self.classes:
                yield from self.fields(base.id)
        for node in one.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield node

    def value(self, node: ast.AST | None) -> Any:
        """A value that stands in the source; `UNREAD` where it is computed."""
        if node is None:
            return None
        if isinstance(node, ast.Name) and node.id in self.names:
            return self.value(self.names[node.id])
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            values = [self.value(one) for one in node.elts]
            return UNREAD if UNREAD in values else values
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self.value(node.left), self.value(node.right)
            return left + right if isinstance(left, list) and isinstance(right, list) else UNREAD
        if isinstance(node, ast.Call):
            return self._called(node)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return self._member(node.value.id, node.attr)
        try:
            found = ast.literal_eval(node)
        except ValueError:
            return UNREAD
        return UNREAD if found is ... else found

    def _called(self, node: ast.Call) -> Any:
        """The default within `Field(…)` or `field(…)`, or an empty list that one makes."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in ("Field", "field"):
            return UNREAD
        said = {word.arg: word.value for word in node.keywords}
        if "default" in said or node.args:
            return self.value(said.get("default") or node.args[0])
        made = said.get("default_factory")
        if isinstance(made, ast.Lambda):
            return self.value(made.body)
        return [] if isinstance(made, ast.Name) and made.id == "list" else UNREAD

    def _member(self, name: str, attribute: str) -> Any:
        """A default that another class has, as in `model: str = ModelConfig.model`."""
        if name not in self.classes:
            return UNREAD
        fields = {one.target.id: one for one in self.fields(name) if isinstance(one.target, ast.Name)}
        return self.value(fields[attribute].value) if attribute in fields else UNREAD

    def kind(self, hint: ast.expr) -> tuple[str, list[Any], bool]:
        """The type of a hint, its closed list of words, and whether other words do as well."""
        parts = list(self._parts(hint))
        words = [word for part in parts for word in self.words(part)]
        named = [NUMBERS.get(part.id, part.id) for part in parts if isinstance(part, ast.Name)]
        heads = [
            part.value.id
            for part in parts
            if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name)
        ]
        if any(head in LISTS for head in (*heads, *named)):
            return "list", words, True
        if "bool" in named:
            return "flag", [], False
        if words:
            return ("int" if isinstance(words[0], int) else "text"), words, "str" in named
        for name in ("int", "float", "dict", "Dict", "str"):
            if name in (*named, *heads):
                return SIMPLE[name], [], True
        return "json" if any(name in self.classes for name in named) else "text", [], True

    def _parts(self, hint: ast.expr) -> Iterator[ast.expr]:
        """The alternatives of a union, with names of unions opened."""
        if isinstance(hint, ast.BinOp) and isinstance(hint.op, ast.BitOr):
            yield from self._parts(hint.left)
            yield from self._parts(hint.right)
        elif (
            isinstance(hint, ast.Subscript)
            and isinstance(hint.value, ast.Name)
            and hint.value.id in ("Optional", "Union")
        ):
            inner = hint.slice.elts if isinstance(hint.slice, ast.Tuple) else [hint.slice]
            for one in inner:
                yield from self._parts(one)
        elif (
            isinstance(hint, ast.Subscript) and isinstance(hint.value, ast.Name) and hint.value.id in WRAPPERS
        ):
            inner = hint.slice.elts if isinstance(hint.slice, ast.Tuple) else [hint.slice]
            yield from self._parts(inner[0])
        elif isinstance(hint, ast.Name) and hint.id in self.names and hint.id not in SIMPLE:
            yield from self._parts(self.names[hint.id])
        else:
            yield hint

    def words(self, part: ast.expr) -> list[Any]:
        """The words of a `Literal`, or those of an enumeration."""
        if (
            isinstance(part, ast.Subscript)
            and isinstance(part.value, ast.Name)
            and part.value.id == "Literal"
        ):
            inner = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
            return [word for one in inner for word in self._literal(one)]
        if isinstance(part, ast.Name) and part.id in self.classes:
            one = self.classes[part.id]
            if any(
                isinstance(base, ast.Name) and base.id in ("Enum", "StrEnum", "IntEnum") for base in one.bases
            ):
                return [
                    node.value.value
                    for node in one.body
                    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
                ]
        return []

    def _literal(self, node: ast.expr) -> list[Any]:
        """A word of a `Literal`, or those of another one that it names."""
        if isinstance(node, ast.Name) and node.id in self.names:
            return [word for part in self._parts(self.names[node.id]) for word in self.words(part)]
        return [node.value] if isinstance(node, ast.Constant) else []

    def calls(self, attribute: str, *, within: str = "") -> Iterator[ast.Call]:
        """Every call of a method, such as `add_argument`, in files whose name has a word."""
        for path, tree in self.trees.items():
            if within in path:
                for node in ast.walk(tree):
                    if (
                        isinstance(node, ast.Call)
                        and isinstance(node.func, ast.Attribute)
                        and node.func.attr == attribute
                    ):
                        yield node


def option(
    kind: str, words: list[Any], default: Any, aliases: Sequence[str] = (), *, is_open: bool = False
) -> dict[str, Any]:
    """Type, words, default and other spellings; what says nothing is left out."""
    found: dict[str, Any] = {"type": kind}
    words = [word for word in words if word is not None]
    if words and not is_open:
        found["choices"] = words
    elif words:
        found["known"] = words  # others do, too
    if default is not UNREAD and default is not None and not isinstance(default, dict | bytes):
        found["default"] = default
    if aliases:
        found["aliases"] = list(aliases)
    return found


def keys(name: str, before: str, sources: Sources, most: int = 4) -> dict[str, dict[str, Any]]:
    """The keys of a table and of those in it, joined by dots."""
    found: dict[str, dict[str, Any]] = {}
    for field in sources.fields(name):
        assert isinstance(field.target, ast.Name)
        key = f"{before}{field.target.id}"
        inner = _inner(field.annotation, sources)
        if inner and most:
            found |= keys(inner, f"{key}.", sources, most - 1)
            continue
        kind, words, is_open = sources.kind(field.annotation)
        found[key] = option(
            kind, words, sources.value(field.value) if field.value else UNREAD, is_open=is_open
        )
    return found


def _inner(hint: ast.expr, sources: Sources) -> str:
    """The class of a table within a table."""
    names = [node.id for node in ast.walk(hint) if isinstance(node, ast.Name)]
    return next((name for name in names if name in sources.classes and not sources.words(ast.Name(name))), "")

"""The words of a configuration, each with its place: read once, and what nobody asked for is left over."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

from datahall.catalog.document import Document, Value
from datahall.errors import DocumentError, Problem, nearest

if TYPE_CHECKING:
    from datahall.training.layout.file import LayoutFile

T = TypeVar("T")
_VARIABLE = re.compile(r"\$\{?(\w+)(?::?-([^}]*))?\}?")
_ASSIGNED = re.compile(r"""^\s*(?:export\s+|local\s+|readonly\s+)?(\w+)=("[^"]*"|'[^']*'|[^\s;#()]*)""")


class Words:
    """Named values with their lines; it remembers which were asked for and what was wrong with them."""

    def __init__(self, path: str, values: Mapping[str, str], lines: Mapping[str, str]) -> None:
        self.path = path
        self._values = dict(values)
        self._lines = dict(lines)
        self._asked: set[str] = set()
        self._problems: list[Problem] = []

    @classmethod
    def of_document(cls, file: Document) -> Words:
        """The leaves of a TOML or JSON file under dotted names."""
        values: dict[str, str] = {}
        lines: dict[str, str] = {}
        for keys, value in _leaves(file.content, ()):
            values[".".join(keys)] = value
            lines[".".join(keys)] = file.where(*keys)
        return cls(file.path, values, lines)

    def has(self, name: str) -> bool:
        """Whether a value, or a table of that name, is there."""
        found = [known for known in self._values if known == name or known.startswith(f"{name}.")]
        self._asked.update(found)
        return bool(found)

    def text(self, name: str, default: str) -> str:
        self._asked.add(name)
        return self._values.get(name, default)

    def flag(self, *names: str) -> bool:
        """Whether one of these words stands there at all."""
        self._asked.update(names)
        return any(name in self._values for name in names)

    def truth(self, name: str) -> bool:
        """A value that must be true or false."""
        seen = self.text(name, "false").lower()
        if seen not in {"true", "false", "auto"}:
            self.problem(name, f'is "{seen}"', "true or false")
        return seen == "true"

    def whole(self, name: str, default: int, *, least: int = 1, most: int = 2**40) -> int:
        """A whole number within bounds."""
        seen = self.text(name, "")
        if seen in {"", "auto"}:
            return default
        try:
            number = int(seen)
        except ValueError:
            self.problem(name, f'is "{seen}"', "a whole number")
            return default
        if not least <= number <= most:
            bound = f"at least {least}" if number < least else f"at most {most}"
            self.problem(name, f"is {number}", f"it must be {bound}")
            return default
        return number

    def some_of(self, name: str, choices: Sequence[str]) -> tuple[str, ...]:
        """Some words of a list, apart by spaces or commas; none where nothing stands there."""
        seen = self.text(name, "").replace(",", " ").split()
        for word in seen:
            if word not in choices:
                close = nearest(word, choices, 1)
                guess = f"did you mean {close[0]}? " if close else ""
                self.problem(name, f'names "{word}"', f"{guess}some of {', '.join(choices)}")
        return tuple(word for word in choices if word in seen)

    def one_of(self, name: str, choices: Mapping[str, T]) -> T | None:
        """One of some words, or None where nothing stands there."""
        seen = self.text(name, "").lower()
        if not seen:
            return None
        if seen not in choices:
            close = nearest(seen, choices, 1)
            guess = f"did you mean {close[0]}? " if close else ""
            self.problem(name, f'is "{seen}"', f"{guess}one of {', '.join(choices)}")
            return None
        return choices[seen]

    def problem(self, name: str, message: str, hint: str = "") -> None:
        """Note what is wrong with a value."""
        self._problems.append(Problem(self._lines.get(name, self.path), f"{name} {message}", hint))

    def done(self, found: LayoutFile, says: Mapping[str, str]) -> LayoutFile:
        """The file with the inputs that its words say and what nobody asked for; problems are raised all at once."""
        if self._problems:
            raise DocumentError(self.path, self._problems)
        if not self._asked & set(self._values):
            expected = ", ".join(sorted(self._asked)[:4])
            where = Problem(self.path, "holds nothing that lays out a training run", f"e.g. {expected}")
            raise DocumentError(self.path, [where])
        left = tuple(name for name in self._values if name not in self._asked)
        written = [name for name, value in self._values.items() if value != "auto"]
        said = {
            what
            for word, what in says.items()
            if any(name == word or name.startswith(f"{word}.") for name in written)
        }
        states = frozenset(said | ({"dp"} if found.states_dp else set()))
        return msgspec.structs.replace(found, ignored=left, states=states)


def _leaves(value: Value, keys: tuple[str, ...]) -> list[tuple[tuple[str, ...], str]]:
    if isinstance(value, dict):
        return [leaf for key, below in value.items() for leaf in _leaves(below, (*keys, key))]
    if isinstance(value, bool):
        return [(keys, "true" if value else "false")]
    if isinstance(value, list):
        return [(keys, ", ".join(map(str, value)))]
    return [(keys, str(value))]


LISTS = {"recompute-modules"}  # options with several words after them


def megatron_words(text: str, path: str) -> Words:
    """Options of a shell script or a list of arguments; variables set in the same file are put in.

    >>> words = megatron_words("TP=8\\nARGS=(\\n  --tensor-model-parallel-size ${TP}\\n  --bf16\\n)", "run.sh")
    >>> words.whole("tensor-model-parallel-size", 1), words.flag("bf16")
    (8, True)
    """
    known: dict[str, str] = {}
    values: dict[str, str] = {}
    lines: dict[str, str] = {}
    waiting = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if assigned := _ASSIGNED.match(line):
            known[assigned[1]] = _filled(assigned[2].strip("\"'"), known)
        for word in _split(line):
            name, joined, value = word.partition("=")
            if word.startswith("--") and len(name) > 2:
                waiting = name[2:].replace("_", "-")
                values[waiting] = _filled(value, known) if joined else ""
                lines[waiting] = f"{path}:{number}"
                waiting = "" if joined else waiting
            elif waiting:
                values[waiting] = f"{values[waiting]} {_filled(word, known)}".strip()
                waiting = waiting if waiting in LISTS else ""
    return Words(path, values, lines)


def _split(line: str) -> list[str]:
    bare = line.strip().rstrip("\\").strip()
    start = bare.find("--")
    if bare.startswith("#") or (start < 0 and _ASSIGNED.match(bare)):
        return []
    part = bare[start:] if start > 0 and ("=" in bare[:start] or "(" in bare[:start]) else bare
    try:
        return [word for word in (one.strip("()\"'") for one in shlex.split(part, comments=True)) if word]
    except ValueError:  # a quote that ends on another line
        return [word.strip("()\"'") for word in part.split()]


def _filled(text: str, known: Mapping[str, str]) -> str:
    """Text with the variables of the file put in; an unknown one keeps its default or its name."""
    return _VARIABLE.sub(lambda found: known.get(found[1], found[2] or found[0]), text)

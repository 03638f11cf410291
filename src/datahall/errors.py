"""The errors a user can meet, as one tree.

    DatahallError                 .code  .where  .hint  .exit_code
    ├─ UnitError                  a quantity that cannot be read ("400 Gbit per fortnight")
    ├─ CatalogError               the catalogue has no such thing, or the thing lacks what was asked
    │  ├─ UnknownNameError        no chip, model, link, … of that name; carries the nearest ones
    │  └─ UnsupportedError        the thing is known but cannot do that (FP8 on an A100)
    ├─ DocumentError              a TOML, JSON or CSV file with problems: all of them, with file:line
    ├─ ScenarioError              an option or scenario value that cannot be used
    ├─ ServingError               what serves cannot start or go on as asked: a ledger, a port, a model
    ├─ InfeasibleError            legal input whose answer is no; exit code 1
    └─ OutputError                the answer is there but could not be written

Each says what was wrong, where, what was seen, what is allowed and what to do next.
Exit codes: 1 the answer is no, 2 bad input, 3 our bug.

No room below the borders knows how an input is spelled.  An error names the input (`field="tp"`) and marks those that
its text speaks of with `option("tp", 4)`; the border that shows it writes --tp 4, tp = 4 or tp=4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import TypeAlias

from datahall.counted import counted

Speller: TypeAlias = Callable[[str, str | None], str]  # an input's name, and a value for it or None

_MARKED = "⟦(\\w+)(?:=([^⟧]*))?⟧"


def option(name: str, value: object = None) -> str:
    """Mark an input in the text of an error; the border that shows the text spells it.

    >>> spelled(f"at most {option('tp', 8)}, or a smaller {option('batch')}")
    'at most tp=8, or a smaller batch'
    """
    return f"⟦{name}⟧" if value is None else f"⟦{name}={value}⟧"


def keyword(name: str, value: str | None) -> str:
    """An input as Python spells it."""
    if value is None:
        return name
    return f"{name}={value}" if re.fullmatch(r"-?\d+(\.\d+)?|True|False", value) else f'{name}="{value}"'


def spelled(text: str, spell: Speller = keyword) -> str:
    """A text with the inputs that it speaks of spelled as a border does."""
    return re.sub(_MARKED, lambda found: spell(found[1], found[2]), text)


class DatahallError(Exception):
    """Something a user can put right; printed without a traceback.

    `field` is the input that is at fault, where it is one; `where` any other place, e.g. a file and its line.
    """

    code = "error"
    exit_code = 2
    spell: Speller = staticmethod(keyword)  # the border that a question came through puts its own here

    def __init__(self, message: str, *, where: str = "", hint: str = "", field: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint
        self.field = field
        self.marked: tuple[str, str] | None = None  # message and hint before a border spelled them

    def at_border(self, spell: Speller) -> None:
        """Spell the inputs that it speaks of as a border does, and say the place of the one at fault."""
        self.spell = spell
        self.marked = self.marked or (self.message, self.hint)
        self.message, self.hint = spelled(self.message, spell), spelled(self.hint, spell)
        self.where = spelled(self.where, spell) or (spell(self.field, None) if self.field else "")

    def lines(self) -> list[str]:
        """The error as its border prints it: what, where, what to do."""
        spell = self.spell
        text = [f"error[{self.code}]: {spelled(self.message, spell)}"]
        where = self.where or (spell(self.field, None) if self.field else "")
        if where:
            text.append(f"  --> {spelled(where, spell)}")
        if self.hint:
            text.append(f"  {spelled(self.hint, spell)}")
        return text

    def record(self) -> dict[str, object]:
        """The error for a program: the same words, each under its key; nothing where there is nothing to say."""
        spell = self.spell
        return {
            "code": self.code,
            "exit_code": self.exit_code,
            "message": spelled(self.message, spell),
            "field": self.field,
            "where": spelled(self.where, spell) or (spell(self.field, None) if self.field else ""),
            "hint": spelled(self.hint, spell),
            "problems": [],
        }

    def __str__(self) -> str:
        return "\n".join(self.lines())


class UnitError(DatahallError, ValueError):
    """A quantity that cannot be read."""

    code = "unit"


class CatalogError(DatahallError, LookupError):
    """The catalogue cannot answer."""

    code = "catalog"


CATALOGUED = {"chip", "model", "link", "server", "offer", "fabric"}


class UnknownNameError(CatalogError):
    """A name that is not in the catalogue; there is no fallback, only the nearest names."""

    code = "unknown-name"

    def __init__(
        self, kind: str, name: str, known: Iterable[str], *, where: str = "", hint: str = "", field: str = ""
    ) -> None:
        self.kind = kind
        self.name = name
        self.nearest = nearest(name, known)
        guess = f"did you mean: {', '.join(self.nearest)}?" if self.nearest else ""
        listing = hint or f"all of them: datahall catalog {kind}s"
        place = " in the catalogue" if kind in CATALOGUED else ""
        article = "an" if kind[:1] in "aeiou" else "a"
        super().__init__(
            f'"{name}" is not {article} {kind}{place}',
            where=where,
            hint="   ".join(part for part in (guess, listing) if part),
            field=field,
        )


class UnsupportedError(CatalogError):
    """A known thing that lacks what was asked of it."""

    code = "unsupported"


def too_little_memory() -> UnsupportedError:
    """What this machine cannot hold."""
    hint = "fewer chips, ranks or requests, or less detail"
    return UnsupportedError("this machine has too little memory for the question", hint=hint)


class ScenarioError(DatahallError, ValueError):
    """An option or a scenario value that cannot be used."""

    code = "scenario"


class ServingError(DatahallError):
    """What serves cannot start, or cannot do what was asked of it."""

    code = "serving"


class InfeasibleError(DatahallError):
    """Legal input whose answer is no."""

    code = "infeasible"
    exit_code = 1


class OutputError(DatahallError):
    """The answer could not be written."""

    code = "output"


class Problem:
    """One thing wrong in a file: where it stands, what it is, what to write instead."""

    __slots__ = ("hint", "message", "where")

    def __init__(self, where: str, message: str, hint: str = "") -> None:
        self.where = where
        self.message = message
        self.hint = hint

    def __repr__(self) -> str:
        return f"{self.where}: {self.message}" + (f"; {self.hint}" if self.hint else "")


class DocumentError(DatahallError, ValueError):
    """A file with problems; all of them are listed, not only the first."""

    code = "document"

    def __init__(self, name: str, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(f"{name}: {counted(len(self.problems), 'problem')}")

    def lines(self) -> list[str]:
        return [super().lines()[0], *(f"  {self._line(problem)}" for problem in self.problems)]

    def record(self) -> dict[str, object]:
        keys = ("where", "message", "hint")
        problems = [dict(zip(keys, self._parts(problem), strict=True)) for problem in self.problems]
        return {**super().record(), "problems": problems}

    def _line(self, problem: Problem) -> str:
        where, message, hint = self._parts(problem)
        return f"{where}: {message}" + (f"; {hint}" if hint else "")

    def _parts(self, problem: Problem) -> tuple[str, str, str]:
        """The place of a problem, its message, which need not say the place again, and what to write instead."""
        where, message = spelled(problem.where, self.spell), spelled(problem.message, self.spell)
        bare = message.removeprefix(f"{where}: ")
        bare = bare if bare.startswith(f"{where} and ") else bare.removeprefix(f"{where} ")
        return where, bare, spelled(problem.hint, self.spell)


TELLING_LETTERS = 3  # that make one name inside another no accident


def nearest(name: str, known: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """Return the names most like `name`, best first.

    >>> nearest("h100-sxm5", ["h100-sxm", "h100-pcie", "a100-sxm-80gb", "tpu-v4"])
    ('h100-sxm', 'h100-pcie', 'a100-sxm-80gb')
    >>> nearest("--tp", ["--output", "--format"])
    ()
    """
    from difflib import SequenceMatcher  # only who mistypes a name waits for it

    wanted = _folded(name)

    def likeness(candidate: str) -> float:
        other = _folded(candidate)
        shorter, longer = sorted((wanted, other), key=len)
        inside = 0.3 if len(shorter) >= TELLING_LETTERS and shorter in longer else 0.0
        same = takewhile(lambda pair: pair[0] == pair[1], zip(wanted, other, strict=False))
        prefix = len(list(same)) / max(1, len(wanted))
        return SequenceMatcher(None, wanted, other).ratio() + inside + 0.5 * prefix

    ranked = sorted(set(known), key=lambda candidate: (-likeness(candidate), candidate))
    return tuple(candidate for candidate in ranked[:count] if likeness(candidate) > 0.5)


def _folded(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())

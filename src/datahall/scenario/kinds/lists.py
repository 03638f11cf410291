"""Several values: lists, numbers with ranges, values by name, whole tables."""

from __future__ import annotations

import tomllib

from datahall.catalog.document import unusable
from datahall.errors import DatahallError, ScenarioError
from datahall.scenario.kinds.kind import Kind, Plain, Raw, Reading, shown
from datahall.scenario.kinds.texts import Text

LARGEST_NUMBER = 10_000_000


class Listed(Kind, frozen=True):
    """Several values of one kind: "a,b" or a list."""

    of: Kind = Text("")
    empty: bool = False  # whether none is allowed
    repeats: bool = False  # whether one that comes again counts again
    about: str = ""  # ends what an item speaks of, which only one may: of optimizer, and of optimizer:nvme

    @property
    def sample(self) -> str:
        return self.example or self.of.sample

    @property
    def is_repeated(self) -> bool:
        return True

    @property
    def words(self) -> tuple[str, ...]:
        """Those of an item."""
        return self.of.words

    def read(self, raw: Raw, at: Reading) -> tuple[object, ...]:
        try:
            read = tuple(self.of.read(one, at) for one in listed(raw))
        except DatahallError as error:
            blanks = [one for one in listed(raw) if isinstance(one, str) and " " in one]
            if blanks:
                error.hint = f"with commas between several: {','.join(blanks[0].split())}"
            raise
        found = read if self.repeats else tuple(dict.fromkeys(read))
        if not found and not self.empty:
            raise ScenarioError("nothing is named", hint=self.hint() or "one or more, with commas between")
        self._check_pairs(found)
        return found

    def _check_pairs(self, items: tuple[object, ...]) -> None:
        """Refuse two items of which one would win."""
        first: dict[str, object] = {}
        for item in items if self.about else ():
            other = first.setdefault(str(item).partition(self.about)[0], item)
            if other != item:
                raise ScenarioError(f"{other} and {item} do not go together", hint="say one of them")

    def write(self, value: object) -> Plain:
        assert isinstance(value, tuple)
        return [self.of.write(one) for one in value]

    def annotation(self, *also: str) -> str:
        return f"str | Sequence[{self.of.annotation(*also)}]"

    def schema(self) -> dict[str, object]:
        return {"anyOf": [{"type": "array", "items": self.of.schema()}, {"type": "string"}]}

    def placeholder(self, attribute: str) -> str:
        return self.metavar or f"{self.of.placeholder(attribute)},…"


class Numbers(Kind, frozen=True):
    """Whole numbers with ranges and strides: "0-3,7", "0-1023:8" (every eighth), or a list of them.

    With `ranks` a single number is a count: 64 are the first 64, from 0.
    """

    ranks: bool = False

    def read(self, raw: Raw, at: Reading) -> tuple[int, ...]:
        del at
        pieces = listed(raw)
        if (
            self.ranks
            and len(pieces) == 1
            and str(pieces[0]).strip().isdecimal()
            and not isinstance(raw, list | tuple)
        ):
            pieces = [f"0-{int(str(pieces[0])) - 1}"] if int(str(pieces[0])) else [""]
        found = [one for piece in pieces for one in self._range(piece)]
        if len(set(found)) < len(found):
            raise ScenarioError(f"{shown(raw)} names one of them twice", hint="each once")
        return tuple(found)

    def _range(self, piece: Raw) -> range:
        span, colon, stride = str(piece).strip().partition(":")
        first, dash, last = span.partition("-")
        words = [first, *([last] if dash else []), *([stride] if colon else [])]
        if isinstance(piece, bool | float) or not all(word.strip().isdecimal() for word in words):
            several = str(piece).split()
            commas = f"with commas between several: {','.join(several)}" if len(several) > 1 else ""
            raise self.wrong(piece, commas or 'e.g. "0-63", "0-1023:8" (every eighth) or "0,3,5"')
        low, high = int(first), int(last) if dash else int(first)
        if high < low or high > LARGEST_NUMBER or (colon and int(stride) < 1):
            raise ScenarioError(
                f"{shown(piece)} is not a rising range", hint=f"within {LARGEST_NUMBER:,}, e.g. 0-63"
            )
        return range(low, high + 1, int(stride) if colon else 1)

    def write(self, value: object) -> Plain:
        """Ranges where numbers follow each other, so that a thousand of them stay short."""
        assert isinstance(value, tuple)
        runs: list[list[int]] = []
        for one in value:
            if runs and one == runs[-1][-1] + 1:
                runs[-1][1:] = [one]
            else:
                runs.append([one, one])
        text = ",".join(f"{low}-{high}" if high > low else str(low) for low, high in runs)
        return f"{text}-{text}" if self.ranks and text.isdecimal() else text

    def annotation(self, *also: str) -> str:
        del also
        return "str | int | Sequence[int]"

    def schema(self) -> dict[str, object]:
        return {
            "anyOf": [
                {"type": "array", "items": {"type": "integer"}},
                {"type": "string"},
                {"type": "integer"},
            ]
        }

    def placeholder(self, attribute: str) -> str:
        del attribute
        return self.metavar or "NUMBERS"


class Mapped(Kind, frozen=True):
    """Values by name: { us = "40 ms" }, or "us=40ms,asia=90ms"."""

    of: Kind = Text("")

    def read(self, raw: Raw, at: Reading) -> dict[str, object]:
        return {name: self.of.read(one, at) for name, one in inline_table(raw).items()}

    def write(self, value: object) -> Plain:
        assert isinstance(value, dict)
        return {name: self.of.write(one) for name, one in value.items()}

    def annotation(self, *also: str) -> str:
        del also
        return "str | Mapping[str, Any]"

    def schema(self) -> dict[str, object]:
        return {"type": "object", "additionalProperties": self.of.schema()}


def listed(raw: Raw) -> list[Raw]:
    """The items of a list, or of a text with commas, between which something must be."""
    if isinstance(raw, str):
        words = [word.strip() for word in raw.split(",")]
        said: list[Raw] = [word for word in words if word]
        if said and len(said) < len(words):
            raise ScenarioError(f"{shown(raw)} has a comma too many", hint=",".join(map(str, said)))
        return said
    if isinstance(raw, list | tuple):
        return list(raw)
    if raw is None or isinstance(raw, dict):
        raise ScenarioError(f"{shown(raw)} is not a list", hint="a list, or text with commas between")
    return [raw]


def inline_table(raw: Raw) -> dict[str, Raw]:
    """A table from a dictionary, from TOML's own `{ … }`, or from "key=value,key=value".

    >>> inline_table("switches=0-3,start=2ms")
    {'switches': '0-3', 'start': '2ms'}
    >>> inline_table('{name = "eu", to = {us = "40 ms"}}')
    {'name': 'eu', 'to': {'us': '40 ms'}}
    """
    if isinstance(raw, dict):
        return dict(raw)
    if not isinstance(raw, str) or not raw.strip():
        raise ScenarioError(f"{shown(raw)} is not a table", hint='e.g. "key=value,key=value"')
    if raw.strip().startswith("{"):
        try:
            found = tomllib.loads(f"x = {raw}")["x"]
        except tomllib.TOMLDecodeError as error:
            raise ScenarioError(f"{shown(raw)} is not an inline table of TOML: {error}") from error
        except (RecursionError, ValueError) as error:
            raise ScenarioError(f"{shown(raw)} {unusable(error)}") from error
        assert isinstance(found, dict)
        return found
    table: dict[str, Raw] = {}
    key = ""
    for part in listed(raw):
        name, equals, value = str(part).partition("=")
        if equals:
            key = name.strip()
            if key in table:
                raise ScenarioError(
                    f"{key} is said twice", hint=f"{key}={table[key]} or {key}={value.strip()}"
                )
            if not value.strip():
                raise ScenarioError(f"{key} has no value", hint=f"{key}=… or without it")
            table[key] = value.strip()
        elif key:  # a comma inside a value: 0-3,7
            table[key] = f"{table[key]},{part}"
        else:
            raise ScenarioError(f"{shown(part)} is not key=value", hint='e.g. "key=value,key=value"')
    return table

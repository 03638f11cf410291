"""What an input may hold: how each kind of value is read from what a person wrote, and written back.

A field of a section is annotated with one of these, e.g. `tp: Annotated[int, Count("Chips that share each layer.")] = 1`.
`read` takes text, numbers, lists and tables as every border has them; `write` gives back what `read` reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf, isinf
from pathlib import Path
from typing import TypeAlias

import msgspec

from datahall.catalog import Catalog
from datahall.errors import DatahallError, ScenarioError, UnitError, UnknownNameError, nearest
from datahall.units import SPELLINGS, example, fmt, parse, unit_of

Raw: TypeAlias = "str | int | float | bool | Sequence[Raw] | Mapping[str, Raw] | None"
Plain: TypeAlias = "str | int | float | bool | list[Plain] | dict[str, Plain]"

LARGEST = 2**40  # beyond it a count is a slip of the hand
_SUFFIXES = ("_bytes_per_s", "_per_s", "_bytes", "_fraction", "_ratio", "_tokens", "_s")


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What reading a value may look at: the catalogue, the folder that paths count from, whether numbers are SI."""

    catalog: Catalog
    folder: Path | None = None  # None: the working folder
    bare: bool = False  # a number without a unit is in SI, as in Python


class Kind(msgspec.Struct, frozen=True):
    """What all kinds have: the words of help, what it is called, and what it goes with."""

    help: str
    name: str = ""  # where its attribute without the unit would not tell
    flat: str = ""  # at flags and keywords, where no section stands before it
    needs: tuple[str, ...] = ()  # says something only beside one of these
    against: tuple[str, ...] = ()  # cannot stand beside any of these
    rare: bool = False  # listed last
    metavar: str = ""
    example: str = ""

    def read(self, raw: Raw, at: Reading) -> object:
        raise NotImplementedError

    def write(self, value: object) -> Plain:
        """The value in plain types, so that `read` gives it back."""
        assert isinstance(value, str | int | float | bool)
        return value

    def schema(self) -> dict[str, object]:
        """JSON Schema of what `read` takes."""
        return {"type": "string"}

    def placeholder(self, attribute: str) -> str:
        """What stands for the value in help."""
        del attribute
        return self.metavar or "TEXT"

    def wrong(self, raw: Raw, hint: str = "") -> ScenarioError:
        return ScenarioError(f"{shown(raw)} cannot be read", hint=hint or self.hint())

    def hint(self) -> str:
        return f"e.g. {self.sample}" if self.sample else ""

    @property
    def sample(self) -> str:
        """A value that could be written."""
        return self.example


def shown(raw: Raw) -> str:
    """What was written, for an error."""
    text = f'"{raw}"' if isinstance(raw, str) else repr(raw)
    return text if len(text) <= 60 else f"{text[:57]}…"


class Count(Kind, frozen=True):
    """A whole number: 32, "8k", "2^20"."""

    least: int = 1
    most: int = LARGEST
    unit: str = "count"

    def read(self, raw: Raw, at: Reading) -> int:
        del at
        if isinstance(raw, bool) or not isinstance(raw, str | int | float):
            raise self.wrong(raw, f"a whole number, e.g. {max(self.least, 8)}")
        number = parsed(raw, self.unit)
        if number != int(number):
            raise ScenarioError(f"{raw} is not a whole number", hint=f"e.g. {max(self.least, int(number))}")
        bounded(number, raw, self.least, self.most)
        return int(number)

    def schema(self) -> dict[str, object]:
        bounds = {"minimum": self.least, **({"maximum": self.most} if self.most < LARGEST else {})}
        return {"anyOf": [{"type": "integer", **bounds}, {"type": "string"}]}

    def placeholder(self, attribute: str) -> str:
        del attribute
        return self.metavar or ("TOKENS" if self.unit == "tokens" else "N")


class Quantity(Kind, frozen=True):
    """A number with a unit, which the attribute's name ends in: "50 ms", "400 Gb/s", "80 GB"."""

    unit: str = ""
    least: float = 0.0
    above: bool = False  # `least` itself is not allowed
    most: float = inf

    def read(self, raw: Raw, at: Reading) -> float:
        if isinstance(raw, bool) or not isinstance(raw, str | int | float):
            raise self.wrong(raw, f"e.g. {example(self.unit)}")
        if not isinstance(raw, str) and raw and not at.bare and "" not in SPELLINGS[self.unit]:
            raise ScenarioError(f"{raw} has no unit", hint=f"e.g. {example(self.unit)}")
        number = parsed(raw, self.unit)
        bounded(number, raw, self.least, self.most, above=self.above)
        return number

    def write(self, value: object) -> Plain:
        assert isinstance(value, int | float)
        return exact(float(value), self.unit)

    def schema(self) -> dict[str, object]:
        text: dict[str, object] = {"type": "string", "examples": [example(self.unit).strip('"')]}
        return {"anyOf": [{"type": "number"}, text]} if "" in SPELLINGS.get(self.unit, ()) else text

    def placeholder(self, attribute: str) -> str:
        names = {"s": "TIME", "bytes": "SIZE", "bytes_per_s": "RATE", "ratio": "RATIO", "fraction": "SHARE"}
        return self.metavar or names.get(self.unit or unit_of(attribute), "N")


class Rate(Quantity, frozen=True):
    """Requests per second: 80, "80/s", or "inf" for all at once."""

    unit: str = "count"
    above: bool = True

    def read(self, raw: Raw, at: Reading) -> float:
        if raw == inf or (isinstance(raw, str) and raw.strip().lower() == "inf"):
            return inf
        text = raw.replace("requests", "").strip().removesuffix("/s") if isinstance(raw, str) else raw
        return super().read(text, at)

    def write(self, value: object) -> Plain:
        assert isinstance(value, int | float)
        return "inf" if isinf(value) else whole_or_float(float(value))

    def placeholder(self, attribute: str) -> str:
        del attribute
        return "N"


class Share(Kind, frozen=True):
    """A part of a whole: "80 %" or 0.8; never above all of it."""

    least: float = 0.0
    most: float = 1.0
    above: bool = False  # `least` itself is not allowed
    below: bool = False  # `most` itself is not allowed

    def read(self, raw: Raw, at: Reading) -> float:
        del at
        if isinstance(raw, bool) or not isinstance(raw, str | int | float):
            raise self.wrong(raw, 'e.g. "80 %" or 0.8')
        return self.bounded(parsed(raw, "fraction"), raw)

    def bounded(self, number: float, raw: Raw) -> float:
        """A share within its bounds; a number that would be one as a percentage is asked for as such."""
        if self._within(number):
            return number
        guess = f'; did you mean "{raw} %"?' if "%" not in str(raw) and self._within(number / 100.0) else ""
        raise ScenarioError(f"{raw} is out of bounds", hint=f"{self._bounds()}{guess}")

    def _within(self, number: float) -> bool:
        enough = number > self.least if self.above else number >= self.least
        return enough and (number < self.most if self.below else number <= self.most)

    def _bounds(self) -> str:
        low = f"{'above' if self.above else 'at least'} {100 * self.least:g} %"
        return f"{low} and {'below' if self.below else 'at most'} {100 * self.most:g} %"

    def write(self, value: object) -> Plain:
        assert isinstance(value, int | float)
        return exact(float(value), "fraction")

    def schema(self) -> dict[str, object]:
        return {
            "anyOf": [{"type": "number", "minimum": self.least, "maximum": self.most}, {"type": "string"}]
        }

    def placeholder(self, attribute: str) -> str:
        del attribute
        return self.metavar or "SHARE"


class Percentile(Share, frozen=True):
    """Which of a hundred: 95, "P95", "95 %" or 0.95."""

    above: bool = True
    below: bool = True

    def read(self, raw: Raw, at: Reading) -> float:
        text = raw.strip().lstrip("Pp") if isinstance(raw, str) else raw
        if isinstance(text, bool) or not isinstance(text, str | int | float):
            raise self.wrong(raw, "e.g. 95")
        del at
        number = parsed(text, "fraction")
        return self.bounded(number / 100.0 if number >= 1 and "%" not in str(text) else number, raw)

    def write(self, value: object) -> Plain:
        assert isinstance(value, int | float)
        written = whole_or_float(round(100.0 * float(value), 9))
        return written if float(written) >= 1 and float(written) / 100.0 == value else float(value)

    def placeholder(self, attribute: str) -> str:
        del attribute
        return "%"


class Choice(Kind, frozen=True):
    """One of a few words, in any case and with either dash."""

    options: tuple[str, ...] = ()

    def read(self, raw: Raw, at: Reading) -> str:
        del at
        folded = _folded(raw) if isinstance(raw, str) else ""
        for known in self.options:
            if _folded(known) == folded and folded:
                return known
        close = nearest(str(raw), self.options, 1)
        guess = f"; did you mean {close[0]}?" if close else ""
        raise ScenarioError(
            f"{shown(raw)} is not one of them", hint=f"one of {', '.join(self.options)}{guess}"
        )

    def schema(self) -> dict[str, object]:
        return {"enum": list(self.options)}

    def placeholder(self, attribute: str) -> str:
        return self.metavar or attribute.upper()


def _folded(text: str) -> str:
    return text.strip().lower().replace("_", "-").replace(" ", "-")


class Text(Kind, frozen=True):
    """Words that another room reads."""

    def read(self, raw: Raw, at: Reading) -> str:
        del at
        if isinstance(raw, bool) or not isinstance(raw, str | int | float):
            raise self.wrong(raw, self.hint() or "write text")
        return str(raw).strip()


SAMPLES = {
    "chip": "h100-sxm",
    "entry": "h100-sxm",
    "model": "llama-3.1-8b",
    "fabric": "fat-tree",
    "engine": "vllm",
    "framework": "nemo",
    "recipe": "megatron",
    "traffic": "sharegpt",
}


class Name(Kind, frozen=True):
    """A name of the catalogue, or of what a room ships: a chip, a model, a fabric, an engine, a framework."""

    of: str = "chip"

    @property
    def sample(self) -> str:
        return self.example or SAMPLES.get(self.of, "")

    def read(self, raw: Raw, at: Reading) -> str:
        if not isinstance(raw, str):
            raise self.wrong(raw, f"the name of {'an' if self.of[0] in 'aeiou' else 'a'} {self.of}")
        name = raw.strip()
        if self.of == "chip":
            return at.catalog.chip(name).name
        if self.of == "model":
            return model_name(name, at)
        if not name:
            raise self.wrong(raw)
        return name

    def placeholder(self, attribute: str) -> str:
        del attribute
        return self.metavar or self.of.upper()


def model_name(name: str, at: Reading) -> str:
    """A model of the catalogue, or the path of a `config.json`, counted from the folder of the scenario."""
    path = Path(name).expanduser() if at.folder is None else at.folder / Path(name).expanduser()
    if path.suffix == ".json":
        return str(path)
    if (path / "config.json").is_file():
        return str(path / "config.json")
    return at.catalog.model(name).name


class File(Kind, frozen=True):
    """A file, counted from the folder of the scenario."""

    def read(self, raw: Raw, at: Reading) -> str:
        if not isinstance(raw, str | Path) or not str(raw).strip():
            raise self.wrong(raw, "the path of a file")
        path = Path(str(raw)).expanduser()
        found = path if at.folder is None else at.folder / path
        if not found.is_file():
            reason = "is a folder" if found.is_dir() else "is not a file"
            raise ScenarioError(
                f"{found} {reason}", hint="a path, counted from the working folder or the scenario's"
            )
        return str(found)

    def placeholder(self, attribute: str) -> str:
        del attribute
        return "FILE"


class Flag(Kind, frozen=True):
    """Yes or no."""

    def read(self, raw: Raw, at: Reading) -> bool:
        del at
        if isinstance(raw, str) and raw.strip().lower() in ("true", "false"):
            return raw.strip().lower() == "true"
        if not isinstance(raw, bool):
            raise self.wrong(raw, "true or false")
        return raw

    def schema(self) -> dict[str, object]:
        return {"type": "boolean"}


class Listed(Kind, frozen=True):
    """Several values of one kind: "a,b" or a list."""

    of: Kind = Text("")
    empty: bool = False  # whether none is allowed
    repeats: bool = False  # whether one that comes again counts again

    def read(self, raw: Raw, at: Reading) -> tuple[object, ...]:
        read = tuple(self.of.read(one, at) for one in listed(raw))
        found = read if self.repeats else tuple(dict.fromkeys(read))
        if not found and not self.empty:
            raise ScenarioError("nothing is named", hint=self.hint() or "one or more, with commas between")
        return found

    def write(self, value: object) -> Plain:
        assert isinstance(value, tuple)
        return [self.of.write(one) for one in value]

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
            raise self.wrong(piece, 'e.g. "0-63", "0-1023:8" (every eighth) or [0, 3, 5]')
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
        from datahall.scenario.read import inline_table

        return {name: self.of.read(one, at) for name, one in inline_table(raw).items()}

    def write(self, value: object) -> Plain:
        assert isinstance(value, dict)
        return {name: self.of.write(one) for name, one in value.items()}

    def schema(self) -> dict[str, object]:
        return {"type": "object", "additionalProperties": self.of.schema()}


LARGEST_NUMBER = 10_000_000


def listed(raw: Raw) -> list[Raw]:
    """The items of a list, or of a text with commas."""
    if isinstance(raw, str):
        return [word.strip() for word in raw.split(",") if word.strip()]
    if isinstance(raw, list | tuple):
        return list(raw)
    if raw is None or isinstance(raw, dict):
        raise ScenarioError(f"{shown(raw)} is not a list", hint="a list, or text with commas between")
    return [raw]


def parsed(raw: str | float, unit: str) -> float:
    """A number, with what is wrong in the words of a scenario."""
    try:
        number = parse(raw, unit)
    except UnitError as error:
        raise ScenarioError(error.message, hint=error.hint) from error
    except OverflowError:
        raise ScenarioError(f"{raw} is too large", hint="a smaller number") from None
    return number


def bounded(number: float, raw: Raw, least: float, most: float, *, above: bool = False) -> None:
    """Refuse what is out of bounds."""
    if number < least or (above and number == least):
        raise ScenarioError(f"{raw} is too small; it must be {'above' if above else 'at least'} {least:g}")
    if number > most:
        raise ScenarioError(f"{raw} is too large; it must be at most {most:,g}")


def exact(value: float, unit: str) -> Plain:
    """A quantity as short as it can be and still read back as the same number.

    >>> exact(0.05, "s"), exact(5e10, "bytes_per_s"), exact(1 / 3, "s"), exact(0.95, "fraction")
    ('50ms', '50GB/s', '0.3333333333333333s', '95%')
    """
    for digits in (4, 8, 12):
        text = (
            fmt(value, unit, digits).replace(",", "").replace(" ", "").replace("×", "").removesuffix("tokens")
        )
        try:
            if parse(text, unit) == value:
                return text
        except DatahallError:
            break
    base = {"bytes": "B", "bytes_per_s": "B/s", "s": "s", "fraction": "", "tokens": "", "ratio": ""}
    return f"{value!r}{base[unit]}" if base.get(unit) else whole_or_float(value)


def whole_or_float(value: float) -> int | float:
    """A number without a useless ".0"."""
    return int(value) if value == int(value) and abs(value) < LARGEST else value


def key_of(attribute: str) -> str:
    """The name of an input: its attribute without the unit.

    >>> key_of("ttft_s"), key_of("nic_bytes_per_s"), key_of("micro_batch")
    ('ttft', 'nic', 'micro_batch')
    """
    for suffix in _SUFFIXES:
        if attribute.endswith(suffix) and len(attribute) > len(suffix):
            return attribute.removesuffix(suffix)
    return attribute


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """A name that nothing has; all that there are stand in the hint."""
    names = list(known)
    return UnknownNameError(kind, name, names, hint=f"one of {', '.join(names)}")

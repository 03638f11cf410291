"""Numbers: counts, quantities with a unit, rates, shares, percentiles; and how a number is written back exactly."""

from __future__ import annotations

import shlex
from math import inf, isfinite, isinf

from datahall.errors import DatahallError, ScenarioError, UnitError
from datahall.scenario.kinds.kind import Kind, Plain, Raw, Reading, shown
from datahall.units import DAY_S, SPELLINGS, example, fmt, parse, unit_of

LARGEST = 2**40  # beyond it a count is a slip of the hand
LONGEST_YEARS = 100  # of anything that is simulated or waited for
# the same of quantities, by unit, where a declaration has no closer bound
LARGEST_OF = {
    "s": LONGEST_YEARS * 365 * DAY_S,
    "bytes": 1e18,  # more than any memory holds
    "bytes_per_s": 1e15,  # a thousand times what any port has
    "tokens": 1e18,  # a million times what any run has used
    "ratio": 1e6,
    "count": 1e12,
}


class Count(Kind, frozen=True):
    """A whole number: 32, "8k", "2^20"."""

    least: int = 1
    most: int = LARGEST
    unit: str = "count"

    def read(self, raw: Raw, at: Reading) -> int:
        del at
        if isinstance(raw, bool) or not isinstance(raw, str | int | float):
            raise self.wrong(raw, f"a whole number, e.g. {max(self.least, 8)}")
        legal = min(max(self.least, 8), self.most)
        usual = "4096 or 4k" if self.unit == "tokens" and self.most > 4096 else str(legal)
        number = parsed(raw, self.unit, f"a whole number, e.g. {usual}: {self.help}")
        bounded(number, raw, self.least, self.most, hint=self.hint() or f"e.g. {legal}")
        if number != int(number):
            raise ScenarioError(f"{raw} is not a whole number", hint=f"e.g. {max(self.least, int(number))}")
        return int(number)

    def annotation(self, *also: str) -> str:
        del also
        return "str | int"

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
    most: float = inf  # inf: as large as any of its unit

    @property
    def largest(self) -> float:
        """What it may be at most, which is finite."""
        return self.most if isfinite(self.most) else LARGEST_OF[self.unit]

    def read(self, raw: Raw, at: Reading) -> float:
        usual = f"e.g. {example(self.unit)}" if self._takes_example() else ""
        inside = usual or f"e.g. {exact(self.least or self.largest, self.unit)}"
        if isinstance(raw, bool) or not isinstance(raw, str | int | float):
            raise self.wrong(raw, inside)
        if not isinstance(raw, str) and raw and not at.bare and "" not in SPELLINGS[self.unit]:
            raise ScenarioError(f"{raw} has no unit", hint=inside)
        number = parsed(raw, self.unit, "" if usual else inside)
        hint = self.hint() or usual
        bounded(number, raw, self.least, self.largest, unit=self.unit, above=self.above, hint=hint)
        return number

    def _takes_example(self) -> bool:
        """Whether what people usually write of its unit is within its bounds."""
        usual = parse(shlex.split(example(self.unit))[0], self.unit)
        return (usual > self.least if self.above else usual >= self.least) and usual <= self.largest

    def write(self, value: object) -> Plain:
        assert isinstance(value, int | float)
        return exact(float(value), self.unit)

    def annotation(self, *also: str) -> str:
        del also
        return "str | float"

    def schema(self) -> dict[str, object]:
        text: dict[str, object] = {"type": "string", "examples": [example(self.unit).strip('"')]}
        return {"anyOf": [{"type": "number"}, text]} if "" in SPELLINGS.get(self.unit, ()) else text

    def placeholder(self, attribute: str) -> str:
        names = {"s": "TIME", "bytes": "SIZE", "bytes_per_s": "RATE", "ratio": "RATIO", "fraction": "SHARE"}
        return self.metavar or names.get(self.unit or unit_of(attribute), "N")


class Rate(Quantity, frozen=True):
    """Requests per second: 80, "80/s", or, where something says how many there are, "inf" for all at once."""

    unit: str = "count"
    above: bool = True
    endless: str = ""  # the input that says how many; a verb that does not take it takes no "inf"

    def read(self, raw: Raw, at: Reading) -> float:
        if raw == inf or (isinstance(raw, str) and raw.strip().lower() == "inf"):
            if not self.endless:
                raise ScenarioError(
                    "all at once is no rate", hint=self.hint() or f"e.g. {example(self.unit)}"
                )
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
        return self.bounded(
            parsed(raw, "fraction", "" if self._within(0.8) else self._bounds() + self._guess(inf, "")), raw
        )

    def bounded(self, number: float, raw: Raw) -> float:
        """A share within its bounds; a number that would be one as a percentage is asked for as such."""
        if self._within(number):
            return number
        raise ScenarioError(f"{raw} is out of bounds", hint=f"{self._bounds()}{self._guess(number, raw)}")

    def _guess(self, number: float, raw: Raw) -> str:
        """What was perhaps meant, or what could be."""
        meant = "%" not in str(raw) and number <= 100.0 and self._within(number / 100.0)
        inside = (self.least + min(self.most, 1.0)) / 2
        return f'; did you mean "{raw} %"?' if meant else f', e.g. "{100 * inside:g} %"'

    def _within(self, number: float) -> bool:
        enough = number > self.least if self.above else number >= self.least
        return enough and (number < self.most if self.below else number <= self.most)

    def _bounds(self) -> str:
        low = f"{'above' if self.above else 'at least'} {100 * self.least:g} %"
        return f"{low} and {'below' if self.below else 'at most'} {100 * self.most:g} %"

    def write(self, value: object) -> Plain:
        assert isinstance(value, int | float)
        return exact(float(value), "fraction")

    def annotation(self, *also: str) -> str:
        del also
        return "str | float"

    def schema(self) -> dict[str, object]:
        return {
            "anyOf": [{"type": "number", "minimum": self.least, "maximum": self.most}, {"type": "string"}]
        }

    def placeholder(self, attribute: str) -> str:
        del attribute
        return self.metavar or "SHARE"


class Percentile(Share, frozen=True):
    """Which of a hundred: 95, "P95", "95 %" or 0.95."""

    least: float = 0.001
    below: bool = True

    def read(self, raw: Raw, at: Reading) -> float:
        text = raw.strip().lstrip("Pp") if isinstance(raw, str) else raw
        if isinstance(text, bool) or not isinstance(text, str | int | float):
            raise self.wrong(raw, "e.g. 95")
        del at
        number, named = parsed(text, "fraction", "e.g. 95"), text != raw
        if "%" in str(text):
            return self.bounded(number, raw)
        if number == 1 and not named:
            raise ScenarioError(
                f"{raw} may be one in a hundred or all", hint='"P1" or "1 %"; of all but a few: "P99.9"'
            )
        if 0 < number < 1 and named:
            raise ScenarioError(
                f"{raw} may be a percentile or a share", hint=f'{100 * number:g}, or "{number:g} %"'
            )
        return self.bounded(number / 100.0 if number >= 1 else number, raw)

    def _bounds(self) -> str:
        return "at least 0.1 and below 100, e.g. 95 or 99.9"

    def _guess(self, number: float, raw: Raw) -> str:
        del number, raw
        return ""

    def write(self, value: object) -> Plain:
        assert isinstance(value, int | float)
        written = whole_or_float(round(100.0 * float(value), 9))
        return written if float(written) > 1 and float(written) / 100.0 == value else float(value)

    def placeholder(self, attribute: str) -> str:
        del attribute
        return "%"


def parsed(raw: str | float, unit: str, hint: str = "") -> float:
    """A number, with what is wrong in the words of a scenario."""
    try:
        number = parse(raw, unit)
    except UnitError as error:
        plain = unit in ("count", "ratio")  # of which a unit is none that a person would know
        message = f"{shown(raw)} is not a number" if plain else error.message
        raise ScenarioError(message, hint=hint or ("e.g. 1.5" if plain else error.hint)) from error
    except OverflowError:
        return inf
    return number


def bounded(
    number: float,
    raw: Raw,
    least: float,
    most: float,
    *,
    unit: str = "count",
    above: bool = False,
    hint: str = "",
) -> None:
    """Refuse what is out of bounds; the hint says a value that is not, else the bound itself is one."""
    words = "count" if unit in ("tokens", "ratio") else unit
    if number < least or (above and number == least):
        how, low = "above" if above else "at least", fmt(least, words) if least else "0"
        hint = hint or f"e.g. {exact(least, unit)}"
        raise ScenarioError(f"{raw} is too small; it must be {how} {low}", hint=hint)
    if number > most:
        high, hint = fmt(most, words, 12), hint or f"e.g. {exact(most, unit)}"
        raise ScenarioError(f"{raw} is too large; it must be at most {high}", hint=hint)


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
    base = {"bytes": "B", "bytes_per_s": "B/s", "s": "s", "w": "W", "w_per_s": "W/s", "j": "J"}
    return f"{value!r}{base[unit]}" if base.get(unit) else whole_or_float(value)


def whole_or_float(value: float) -> int | float:
    """A number without a useless ".0"."""
    return int(value) if value == int(value) and abs(value) < LARGEST else value

"""What fabrics are described with: topologies, oversubscription by tier, sides of a torus, versions of a library."""

from __future__ import annotations

import re
from math import prod

from datahall.errors import ScenarioError, UnknownNameError, nearest
from datahall.scenario.kinds.kind import Kind, Plain, Raw, Reading, shown
from datahall.scenario.kinds.lists import listed
from datahall.scenario.kinds.numbers import whole_or_float
from datahall.scenario.kinds.texts import Name
from datahall.scenario.words import OTHER_NAMES, PLAIN_TOPOLOGIES, TOPOLOGIES

STEEPEST = 4096.0  # ports of the largest switch that may be asked for


class Topology(Name, frozen=True):
    """A topology in any spelling, or a fabric that was built by any of its names; `several`: or "tree,torus"."""

    of: str = "fabric"
    metavar: str = "TOPOLOGY"
    several: bool = False

    def read(self, raw: Raw, at: Reading) -> str:
        if self.several and isinstance(raw, str | list):
            return ",".join(dict.fromkeys(self._one(one, at) for one in listed(raw) or [raw]))
        return self._one(raw, at)

    def annotation(self, *also: str) -> str:
        return "str | Sequence[str]" if self.several else super().annotation(*also)

    def schema(self) -> dict[str, object]:
        plain = super().schema()
        return {"anyOf": [plain, {"type": "array", "items": plain}]} if self.several else plain

    def _one(self, raw: Raw, at: Reading) -> str:
        if not isinstance(raw, str) or not raw.strip():
            raise self.wrong(raw, "the name of a topology")
        folded = re.sub(r"[\s_]+", "-", raw.strip().lower())
        name = OTHER_NAMES.get(folded, folded)
        if name in TOPOLOGIES or name in PLAIN_TOPOLOGIES:
            return name
        try:
            return at.catalog.name_of("fabric", name)
        except UnknownNameError as error:
            close = nearest(folded, (*TOPOLOGIES, *error.nearest), 3)
            guess = f"did you mean: {', '.join(close)}?   " if close else ""
            raise ScenarioError(
                f"{shown(raw)} is not a topology", hint=f"{guess}all of them: {', '.join(TOPOLOGIES)}"
            ) from error


class Ratios(Kind, frozen=True):
    """Down:up of each tier from the leaves: "3:1", "1:1,7:1"."""

    metavar: str = "DOWN:UP"
    example: str = "2:1"

    def read(self, raw: Raw, at: Reading) -> tuple[float, ...]:
        del at
        ratios = tuple(self._ratio(one) for one in listed(raw))
        if not ratios:
            raise self.wrong(raw)
        return ratios

    def _ratio(self, raw: Raw) -> float:
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*:\s*(\d+(?:\.\d+)?)\s*", str(raw))
        down, up = (float(match[1]), float(match[2])) if match else (0.0, 0.0)
        if match is None or not down or not up:
            raise self.wrong(raw)
        if down < up:
            raise ScenarioError(
                f"{raw} has more bandwidth up than down", hint=f"did you mean {match[2]}:{match[1]}?"
            )
        if down > STEEPEST * up:
            raise ScenarioError(f"{raw} is too steep; it must be at most {STEEPEST:g}:1", hint=self.hint())
        return down / up

    def write(self, value: object) -> Plain:
        assert isinstance(value, tuple)
        return ",".join(f"{whole_or_float(ratio)}:1" for ratio in value)

    def hint(self) -> str:
        return 'write down:up for each tier, e.g. "1:1" or "1:1,7:1"'


class Sides(Kind, frozen=True):
    """Sides of a torus: "16x16x24", or [16, 16, 24]."""

    metavar: str = "XxYxZ"
    example: str = "16x16x24"
    most: int = 2**40  # chips

    def read(self, raw: Raw, at: Reading) -> tuple[int, ...]:
        del at
        parts = re.split(r"[x×*]", raw.strip().lower()) if isinstance(raw, str) else listed(raw)
        words = [str(part).strip() for part in parts]
        if isinstance(raw, bool) or not words or not all(word.isdecimal() and int(word) for word in words):
            raise self.wrong(raw)
        sides = tuple(int(word) for word in words)
        if prod(sides) > self.most:
            raise ScenarioError(
                f"{shown(raw)} has {prod(sides):,} chips; it must have at most {self.most:,}",
                hint=self.hint(),
            )
        return sides

    def write(self, value: object) -> Plain:
        assert isinstance(value, tuple)
        return "x".join(map(str, value))

    def annotation(self, *also: str) -> str:
        del also
        return "str | Sequence[int]"

    def schema(self) -> dict[str, object]:
        return {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]}


class Version(Kind, frozen=True):
    """A version of a library, as two numbers: "2.27", "2.19.3"; a number would lose the 0 of 2.20."""

    metavar: str = "X.Y"
    library: str = ""
    first: tuple[int, int] = (0, 0)
    last_major: int = 0

    def read(self, raw: Raw, at: Reading) -> tuple[int, int]:
        del at
        word = raw.strip().lower().removeprefix(self.library.lower()).strip() if isinstance(raw, str) else ""
        match = re.fullmatch(r"(\d{1,4})\.(\d{1,4})(\.\d{1,9})*", word)
        if match is None:
            raise self.wrong(raw, f'text, e.g. "{self.example}"')
        found = int(match[1]), int(match[2])
        if found < self.first or found[0] > self.last_major:
            bounds = f"{self.first[0]}.{self.first[1]} or later, of {self.last_major}.x"
            raise ScenarioError(
                f"there is no {self.library} {shown(raw)}", hint=f"{bounds}, e.g. {self.example}"
            )
        return found

    def write(self, value: object) -> Plain:
        assert isinstance(value, tuple)
        return ".".join(map(str, value))

"""How many chips of each kind can be had."""

from __future__ import annotations

from typing import TypeAlias

from datahall.errors import ScenarioError
from datahall.scenario.kinds.kind import Kind, Plain, Raw, Reading
from datahall.scenario.kinds.lists import inline_table
from datahall.scenario.kinds.numbers import Count
from datahall.scenario.kinds.texts import Name

Counts: TypeAlias = "tuple[tuple[str, int], ...]"  # kinds of chip, each once, and how many of it


class Stock(Kind, frozen=True):
    """Chips by kind: "h100-sxm=128,h200=64", or a table { h100-sxm = 128 }."""

    most: int = 2**20

    @property
    def sample(self) -> str:
        return self.example or "h100-sxm=128,h200-sxm=64"

    def read(self, raw: Raw, at: Reading) -> Counts:
        name, count = Name("", of="chip"), Count(self.help, most=self.most, unit="count")
        try:
            said = inline_table(raw)
        except ScenarioError as error:
            error.hint = f"a chip and how many there are: {self.sample}"
            raise
        found: dict[str, int] = {}
        for kind, number in said.items():
            chip = name.read(kind, at)
            if chip in found:
                raise ScenarioError(f"{chip} is said twice", hint=f"once: {chip}={found[chip]}")
            try:
                found[chip] = count.read(number, at)
            except ScenarioError as error:
                error.message = f"{kind}: {error.message}"
                error.hint = f"at least 1, as in {chip}=128; a kind that cannot be had is not named"
                raise
        if not found:
            raise ScenarioError("nothing is named", hint=f"e.g. {self.sample}")
        return tuple(found.items())

    def write(self, value: object) -> Plain:
        assert isinstance(value, tuple)
        return ",".join(f"{kind}={count}" for kind, count in value)

    def annotation(self, *also: str) -> str:
        del also
        return "str | Mapping[str, int]"

    def schema(self) -> dict[str, object]:
        counts: dict[str, object] = {
            "type": "object",
            "additionalProperties": Count("", most=self.most).schema(),
        }
        return {"anyOf": [{"type": "string"}, counts]}

    def placeholder(self, attribute: str) -> str:
        del attribute
        return self.metavar or "CHIP=N,…"

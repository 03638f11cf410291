"""The ways to buy chips or tokens, a row each: what one is called, and which inputs and overheads are of it.

How a way is priced stands in `economics/ways.py`, under the same word.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from datahall.scenario.words import Buying

# shares that running chips adds to their bill, and the inputs that say them
OVERHEADS = {
    "orchestration": "orchestration",
    "network": "network_overhead",
    "storage": "storage_overhead",
    "monitoring": "monitoring",
}
AROUND_CHIPS = tuple(OVERHEADS)
OF_PROVIDERS = ("provider",)  # whose prices count
Use = Literal["run", "service", "choice"]  # a training run, a service, or one's own service beside an API
NONE: Mapping[Use, tuple[str, ...]] = MappingProxyType({})


class BuyingRow(NamedTuple):
    """One way to buy."""

    called: str
    terms: tuple[str, ...] = ()  # inputs that are of it alone
    terms_for: Mapping[Use, tuple[str, ...]] = (
        NONE  # the same of what is bought for one use, and act in others anyway
    )
    overheads: tuple[str, ...] = AROUND_CHIPS  # that come on top of the hour of a chip
    has_providers: bool = True  # whether chips are offered by providers, each where it has them
    has_chips: bool = True  # whether it leads to chips, and not to tokens alone

    def inputs(self, use: Use) -> tuple[str, ...]:
        """All inputs that are of it, alone or with other ways."""
        return (
            *self.terms,
            *self.terms_for.get(use, ()),
            *(OF_PROVIDERS if self.has_providers else ()),
            *(OVERHEADS[name] for name in self.overheads),
        )


BUYING_ROWS: dict[Buying, BuyingRow] = {
    "rent": BuyingRow("renting", terms=("price",)),
    "reserved": BuyingRow("reserving"),
    "spot": BuyingRow("spot", terms=("spot_price", "preempted_every"), terms_for={"choice": ("restart",)}),
    "own": BuyingRow(
        "owning",
        terms=(
            "owner", "capex", "interest", "life", "residual", "depreciation", "hardware_age", "colo",
            "energy_price", "repair_cost", "used",
        ),
        terms_for={"run": ("staff",)},  # of a service it is paid whatever its chips are
        overheads=("orchestration", "monitoring"),  # network and storage were bought with the hardware
        has_providers=False,
    ),
    "api": BuyingRow(
        "an API",
        terms_for={"service": ("api", "cached", "batched")},
        overheads=(),
        has_providers=False,
        has_chips=False,
    ),
}  # fmt: skip


def chip_ways() -> tuple[Buying, ...]:
    """The ways that lead to chips."""
    return tuple(word for word, row in BUYING_ROWS.items() if row.has_chips)


def provider_ways() -> tuple[Buying, ...]:
    """The ways to have chips that providers offer."""
    return tuple(word for word, row in BUYING_ROWS.items() if row.has_providers)


def terms(use: Use) -> dict[str, tuple[Buying, ...]]:
    """Every input that is of some ways alone, with these."""
    found: dict[str, tuple[Buying, ...]] = {}
    for word, row in BUYING_ROWS.items():
        for name in row.inputs(use):
            found[name] = (*found.get(name, ()), word)
    return found

"""What is owed: tokens and money of a month, by key, model and customer, to the nano-dollar until it is shown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

import msgspec

from datahall.serve.ledger.disk.batch import UNSETTLED
from datahall.serve.ledger.disk.store import Total
from datahall.serve.ledger.key import Key
from datahall.serve.ledger.money import usd


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What one of those billed used."""

    name: str
    requests: int
    prompt: int
    cached: int
    completion: int
    charged_usd: float
    unsettled: int  # requests that were charged what was reserved
    wasted_usd: float
    saved_usd: float


def by_key(totals: Iterable[Total], keys: Iterable[Key]) -> tuple[Line, ...]:
    """A line a key."""
    names = {key.id: key.name for key in keys}
    return lines(totals, lambda total: names[total.key])


def by_customer(totals: Iterable[Total], keys: Iterable[Key]) -> tuple[Line, ...]:
    """A line a customer."""
    names = {key.id: key.customer for key in keys}
    return lines(totals, lambda total: names[total.key])


def by_model(totals: Iterable[Total]) -> tuple[Line, ...]:
    """A line a model."""
    return lines(totals, lambda total: total.model)


def lines(totals: Iterable[Total], name_of: Callable[[Total], str]) -> tuple[Line, ...]:
    """Sums of whole numbers by some name, dearest first."""
    groups: dict[str, list[Total]] = defaultdict(list)
    for total in totals:
        groups[name_of(total)].append(total)
    found = [
        Line(
            name=name,
            requests=sum(one.requests for one in some),
            prompt=sum(one.prompt for one in some),
            cached=sum(one.cached for one in some),
            completion=sum(one.completion for one in some),
            charged_usd=usd(sum(one.nano_usd for one in some)),
            unsettled=sum(one.requests for one in some if one.outcome == UNSETTLED),
            wasted_usd=usd(sum(one.wasted_nano_usd for one in some)),
            saved_usd=usd(sum(one.saved_nano_usd for one in some)),
        )
        for name, some in groups.items()
    ]
    return tuple(sorted(found, key=lambda line: (-line.charged_usd, line.name)))

"""List prices of hosted models as the ledger counts them."""

from __future__ import annotations

from datetime import date
from math import isnan

from datahall.catalog.entries.api_price import api_price
from datahall.serve.ledger.money import Price, nano_usd


def listed_price(model: str, day: date) -> Price:
    """What a hosted model costs on a day; where no price of cached input is listed, it costs what any other does.

    >>> price = listed_price("openai/gpt-4o", date(2026, 11, 15))
    >>> price.input_nano_usd, price.cached_nano_usd, price.output_nano_usd
    (2500000000, 1250000000, 10000000000)
    """
    found = api_price(model, day)
    cached = found.input_usd_per_mtok if isnan(found.cached_usd_per_mtok) else found.cached_usd_per_mtok
    return Price(
        input_nano_usd=nano_usd(found.input_usd_per_mtok),
        cached_nano_usd=nano_usd(cached),
        output_nano_usd=nano_usd(found.output_usd_per_mtok),
    )

"""What hosted models cost per million tokens, from the genai-prices package.

Its data ships inside its wheel, so no network is needed; it is slow to import and so loaded on first use.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import cache
from math import nan
from typing import TYPE_CHECKING

import msgspec

from datahall.breakdown import Source
from datahall.errors import UnknownNameError

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice, Provider


class ApiPrice(msgspec.Struct, frozen=True, kw_only=True):
    """The list price of one model at one provider; NaN where it charges otherwise."""

    provider: str
    model: str
    title: str
    input_usd_per_mtok: float
    output_usd_per_mtok: float
    cached_usd_per_mtok: float = nan  # input tokens found in the provider's cache
    max_context: int = 0
    first_party: bool = False  # sold by its maker
    tiered: bool = False  # the price rises with the length of the prompt; this is its lowest step
    source: Source

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.model}"


@cache
def api_prices(today: date) -> tuple[ApiPrice, ...]:
    """Every model that is priced by tokens on `today`, by provider."""
    import genai_prices
    from genai_prices.data import providers

    moment = datetime(today.year, today.month, today.day, 12, tzinfo=UTC)
    source = Source(f"genai-prices {genai_prices.__version__}", today.isoformat(), "datasheet")
    found = (
        _api_price(provider, model, model.get_prices(moment), source)
        for provider in providers
        for model in provider.models
    )
    return tuple(price for price in found if price is not None)


def api_price(model: str, today: date, *, provider: str = "") -> ApiPrice:
    """Return the price of `model` ("gpt-4o" or "openai/gpt-4o"), the maker's own before a reseller's."""
    prices = api_prices(today)
    wanted = (f"{provider}/{model}" if provider else model).lower()
    for price in prices:
        if wanted == price.name.lower():
            return price
    sellers = [price for price in prices if wanted == price.model.lower()]
    if sellers:
        return next((price for price in sellers if price.first_party), sellers[0])
    known = {price.name for price in prices} | ({price.model for price in prices} if not provider else set())
    raise UnknownNameError("priced model", wanted, known, hint="all of them: datahall catalog api-prices")


def _api_price(provider: Provider, model: ModelInfo, price: ModelPrice, source: Source) -> ApiPrice | None:
    into, tiered_in = _usd(price, "input_mtok")
    out, tiered_out = _usd(price, "output_mtok")
    if into is None or out is None:
        return None
    cached, _ = _usd(price, "cache_read_mtok")
    own = provider.model_match
    return ApiPrice(
        provider=provider.id,
        model=model.id,
        title=model.name or model.id,
        input_usd_per_mtok=into,
        output_usd_per_mtok=out,
        cached_usd_per_mtok=nan if cached is None else cached,
        max_context=model.context_window or 0,
        first_party=own is not None and own.is_match(model.id.lower()),
        tiered=tiered_in or tiered_out,
        source=source,
    )


def _usd(price: ModelPrice, key: str) -> tuple[float | None, bool]:
    """A price and whether it is the lowest step of several."""
    value = vars(price).get(key)
    if value is None:
        return None, False
    base = getattr(value, "base", None)
    return (float(value), False) if base is None else (float(base), True)

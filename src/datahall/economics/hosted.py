"""What tokens cost behind an API: which host, what a mean token costs, with caches and batches.

    token = in · ((1 − c)·P_in + c·P_cached) + out · P_out,   less b · discount for the share b that may wait

A model that several host is bought where a mean token is cheapest; who charges nothing does not sell it.  Where no
price of cached input is listed, it costs what any other does.
"""

from __future__ import annotations

import datetime
import re
from math import isnan

import msgspec

from datahall.breakdown import Breakdown, derived, difference, fact, given, product, total
from datahall.catalog import Catalog
from datahall.catalog.entries.api_price import ApiPrice, api_price, api_prices
from datahall.economics.break_even import tokens_usd
from datahall.errors import ScenarioError
from datahall.scenario.sections.money.hosted import HostedModel

ANY = re.compile(r"[^a-z0-9]+")
# what hosts append to the name of a model that is the same
SAME = {"instruct", "it", "chat", "versatile", "turbo", "instant", "fast", "fp8", "hf", "v1", "0"}


class Hosted(msgspec.Struct, frozen=True, kw_only=True):
    """A hosted model, and what a million of its tokens cost at a mix."""

    price: ApiPrice
    blended: Breakdown  # USD of a million tokens, of prompts and answers
    num_hosts: int  # that were compared

    def month_usd(self, tokens: float) -> float:
        """What so many tokens cost."""
        return tokens_usd(self.blended.value, tokens)


def hosted(
    asked: HostedModel, model: str, input_share: float, day: datetime.date, catalog: Catalog
) -> Hosted | None:
    """The API to compare with: as named, or the cheapest host of the same model; None where nobody hosts it."""
    if asked.api:
        try:
            found = [api_price(asked.api, day)]
        except ScenarioError as error:
            error.field = error.field or "api"
            raise
    else:
        found = [
            one for one in api_prices(day) if is_same(model, one.model) and one.output_usd_per_mtok > 0.0
        ]
    priced = [(blended(one, asked, input_share, catalog), one) for one in found]
    if not priced:
        return None
    cost, price = min(priced, key=lambda pair: (pair[0].value, pair[1].name))
    return Hosted(price=price, blended=cost, num_hosts=len(priced))


def blended(price: ApiPrice, asked: HostedModel, input_share: float, catalog: Catalog) -> Breakdown:
    """A million tokens of a mix of prompts and answers [USD/Mtok].

    >>> from datahall.catalog import load
    >>> price = api_price("gpt-4o", datetime.date(2026, 11, 15))
    >>> blended(price, HostedModel(), 0.75, load()).value  # 2.50 in, 10 out
    4.375
    """
    into = fact("input", price.input_usd_per_mtok, "usd_per_mtok", price.source)
    share = derived("share of prompts", input_share, "fraction")
    answers = difference("share of answers", derived("all", 1.0, "fraction"), share)
    parts = [
        product("prompts", (share, _with_cache(into, price, asked)), "usd_per_mtok"),
        product(
            "answers",
            (answers, fact("output", price.output_usd_per_mtok, "usd_per_mtok", price.source)),
            "usd_per_mtok",
        ),
    ]
    listed = total("a mean token", parts)
    if not asked.batch_fraction:
        return listed
    known = catalog.share("batch-discount").fact
    off = product(
        "off for batches",
        (
            given("share in batches", asked.batch_fraction, "fraction", field="batched"),
            fact("discount", known.value, "fraction", known.source),
            listed,
        ),
        "usd_per_mtok",
    )
    return difference("a mean token, with batches", listed, off)


def _with_cache(into: Breakdown, price: ApiPrice, asked: HostedModel) -> Breakdown:
    if not asked.cached_fraction or isnan(price.cached_usd_per_mtok):
        return into
    hit = given("share in its cache", asked.cached_fraction, "fraction", field="cached")
    missed = difference("share not in it", derived("all", 1.0, "fraction"), hit)
    found = fact("cached input", price.cached_usd_per_mtok, "usd_per_mtok", price.source)
    return total(
        "input with cache",
        (
            product("not cached", (missed, into), "usd_per_mtok"),
            product("cached", (hit, found), "usd_per_mtok"),
        ),
    )


def is_same(model: str, listed: str) -> bool:
    """Whether a host's name is that of a model of the catalogue, and not of one made from it.

    >>> is_same("llama-3.1-70b", "meta-llama/llama-3.1-70b-instruct"), is_same("llama-3.1-8b", "llama3.1-8b")
    (True, True)
    >>> is_same("llama-3.1-70b", "llama-3.1-nemotron-70b"), is_same("deepseek-v3", "deepseek-v3.2")
    (False, False)
    """
    wanted = "".join(ANY.split(model.lower()))
    words = [word for word in ANY.split(listed.lower().rpartition("/")[2]) if word]
    words = words[1:] if words[:1] == ["meta"] else words
    begun = [len("".join(words[:count])) for count in range(len(words) + 1)]
    if len(wanted) not in begun or not "".join(words).startswith(wanted):
        return False
    return all(word in SAME for word in words[begun.index(len(wanted)) :])

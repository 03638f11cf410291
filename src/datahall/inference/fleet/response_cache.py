"""A cache of whole answers in front of the model: in the process, shared (Redis), and by meaning (semantic).

What a cache saves follows from hit rates, the mix of input and output, and prices; it is not a constant.  Answers and
prefixes are separate tiers that multiply: a request answered from here costs nothing, and of the others the part of the
prompt whose keys and values the engine still holds costs little.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.errors import ScenarioError
from datahall.events import stream
from datahall.scenario.sections.fleet import AnswerCache
from datahall.workload.traffic.popularity import zipf_shares
from datahall.workload.traffic.requests import Floats, Requests

BISECTIONS = 100
USUAL = AnswerCache()  # what is so where nobody says otherwise


class Questions(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked: some questions again and again, the rest once."""

    rate_per_s: float
    num: int = USUAL.questions  # different questions that come again
    zipf_factor: float = USUAL.zipf
    unique_fraction: float = USUAL.unique_fraction  # that nobody ever asks again; they push others out


class ExactTier(msgspec.Struct, frozen=True, kw_only=True):
    """Answers by the hash of the request, the least recently used one dropped first."""

    num_entries: int  # of each cache; 0: there is none
    ttl_s: float  # an answer is dropped so long after it was stored, however often it is read; 0: never
    num_caches: int = 1  # processes with a cache of their own, among which requests are spread evenly
    lookup_s: float


class SemanticTier(msgspec.Struct, frozen=True, kw_only=True):
    """Answers to questions that mean the same; how many do cannot be derived, only measured."""

    hit_fraction: float = 0.0  # of the requests that get this far; published: 20 to 45 %
    lookup_s: float = (
        USUAL.semantic_lookup_s  # embedding and search: an embedding model takes 5–25 ms, a vector store some ms more
    )


class ResponseCache(msgspec.Struct, frozen=True, kw_only=True):
    """Three tiers, asked one after the other.  Times are estimates: µs in the process, ms over a network."""

    questions: Questions
    process: ExactTier = ExactTier(
        num_entries=1_000, ttl_s=USUAL.process_ttl_s, lookup_s=USUAL.process_lookup_s
    )
    shared: ExactTier = ExactTier(
        num_entries=100_000, ttl_s=USUAL.shared_ttl_s, lookup_s=USUAL.shared_lookup_s
    )
    semantic: SemanticTier = SemanticTier()

    def __post_init__(self) -> None:
        _check(self)

    @property
    def tier_s(self) -> Floats:
        """Seconds by tier: [0] what a miss waits before the model, [1 … 3] until the answer of that tier."""
        steps = [
            self.process.lookup_s if self.process.num_entries else 0.0,
            self.shared.lookup_s if self.shared.num_entries else 0.0,
            self.semantic.lookup_s if self.semantic.hit_fraction else 0.0,
        ]
        reached = np.cumsum(steps)
        return np.concatenate((reached[-1:], reached))


class HitRates(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of all requests that each tier answers."""

    process_fraction: float
    shared_fraction: float
    semantic_fraction: float

    @property
    def total_fraction(self) -> float:
        return self.process_fraction + self.shared_fraction + self.semantic_fraction


def _check(cache: ResponseCache) -> None:
    asked = cache.questions
    for name, value in {
        "unique_fraction": asked.unique_fraction,
        "semantic hit_fraction": cache.semantic.hit_fraction,
    }.items():
        if not 0 <= value <= 1:
            raise ScenarioError(f"{name} is {value:g}", where="response cache", hint="a share from 0 to 1")
    if not asked.rate_per_s > 0 or asked.num < 1 or asked.zipf_factor < 0:
        raise ScenarioError(
            f"{asked.num} questions at {asked.rate_per_s:g}/s with a Zipf exponent of {asked.zipf_factor:g}",
            where="response cache",
            hint="at least one question, a positive rate, an exponent of 0 or more",
        )
    for tier in (cache.process, cache.shared):
        if min(tier.num_entries, tier.ttl_s, tier.lookup_s) < 0 or tier.num_caches < 1:
            raise ScenarioError(
                f"{tier.num_caches} caches of {tier.num_entries} entries for {tier.ttl_s:g} s",
                where="response cache",
                hint="0 entries: no such tier; 0 s: kept for ever; at least one cache",
            )


def lru_hits(rates_per_s: Floats, unique_per_s: float, num_entries: int, ttl_s: float = 0.0) -> Floats:
    """The chance that a request for each item finds it in a least-recently-used cache, in the steady state.

    Che's approximation: an item stays until nobody has asked for it for a time T, the same for all,
        hᵢ = 1 − e^(−λᵢ T),   Σ hᵢ + λᵤ T = C,
    for λᵢ requests per second of item i, λᵤ of requests that never come again, and C entries.
    H. Che, Y. Tung, Z. Wang, "Hierarchical web caching systems", IEEE JSAC 20(7), 2002; C. Fricker, P. Robert,
    J. Roberts, "A versatile and accurate approximation for LRU cache performance", ITC 24, 2012.

    With a time to live D from the moment of storing, a miss is followed by λᵢ D hits on average where the cache is
    large, so hᵢ = λᵢ D / (1 + λᵢ D) (Jung, Berger, Balakrishnan, "Modeling TTL-based internet caches", INFOCOM 2003).
    Where both limits act we take the smaller, which is exact at either end and an upper bound between.

    >>> lru_hits(np.array([1.0, 1.0, 1.0, 1.0]), 0.0, 2).round(3).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    if not num_entries:
        return np.zeros_like(rates_per_s)
    if unique_per_s < 1e-12 * rates_per_s.sum():
        unique_per_s = 0.0  # they would fill the cache after longer than a float can hold
    aged = rates_per_s * ttl_s / (1.0 + rates_per_s * ttl_s) if ttl_s else np.ones_like(rates_per_s)
    strangers = unique_per_s * ttl_s if ttl_s else (np.inf if unique_per_s else 0.0)
    if aged.sum() + strangers <= num_entries:
        return np.asarray(aged)
    low, high = 0.0, 1.0 / rates_per_s.sum()
    while _filled(rates_per_s, unique_per_s, high, aged, ttl_s) < num_entries:
        low, high = high, 2 * high
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if _filled(rates_per_s, unique_per_s, middle, aged, ttl_s) < num_entries:
            low = middle
        else:
            high = middle
        if high - low < 1e-12 * high:
            break
    return np.asarray(np.minimum(-np.expm1(-rates_per_s * high), aged))


def _filled(rates_per_s: Floats, unique_per_s: float, idle_s: float, aged: Floats, ttl_s: float) -> float:
    """Entries in use when an item is dropped after so long without a request."""
    stay_s = min(idle_s, ttl_s) if ttl_s else idle_s
    return float(np.minimum(-np.expm1(-rates_per_s * idle_s), aged).sum()) + unique_per_s * stay_s


@lru_cache(maxsize=64)  # asked again for every chunk of a run
def hit_rates(cache: ResponseCache) -> HitRates:
    """Share of requests that each tier answers, once the caches have filled.

    The shared tier sees what the processes miss, taken as a Poisson stream of its own.  That is close where it is
    several times as large as a process's cache; where it is not, it overstates the shared tier (in a simulated cache,
    one process of 500 entries before 1,000 shared ones, 5.0 % of requests against 3.2 %).
    """
    asked = cache.questions
    repeated_per_s = asked.rate_per_s * (1.0 - asked.unique_fraction)
    unique_per_s = asked.rate_per_s * asked.unique_fraction
    rates = repeated_per_s * zipf_shares(asked.num, asked.zipf_factor)
    if not repeated_per_s:
        return HitRates(
            process_fraction=0.0, shared_fraction=0.0, semantic_fraction=cache.semantic.hit_fraction
        )
    num = cache.process.num_caches
    near = lru_hits(rates / num, unique_per_s / num, cache.process.num_entries, cache.process.ttl_s)
    missed = rates * (1.0 - near)
    far = (
        lru_hits(missed, unique_per_s, cache.shared.num_entries, cache.shared.ttl_s) if missed.sum() else near
    )
    process = float((rates * near).sum()) / asked.rate_per_s
    shared = float((missed * far).sum()) / asked.rate_per_s
    return HitRates(
        process_fraction=process,
        shared_fraction=shared,
        semantic_fraction=(1.0 - process - shared) * cache.semantic.hit_fraction,
    )


def draw_hits(requests: Requests, cache: ResponseCache, seed: int | np.random.Generator) -> NDArray[np.int8]:
    """The tier that answers each request: 1 process, 2 shared, 3 semantic, 0 none.

    Later turns of a conversation are never answered from here: their prompt holds a history that is theirs alone.
    For a run in chunks pass one generator, `stream(seed, "response cache")`, to every call.
    """
    random = seed if isinstance(seed, np.random.Generator) else stream(seed, "response cache")
    rates = hit_rates(cache)
    limits = np.cumsum([rates.process_fraction, rates.shared_fraction, rates.semantic_fraction])
    place = np.searchsorted(limits, random.random(len(requests)), side="right")
    tier = np.array([1, 2, 3, 0], np.int8)[place]
    tier[requests.after >= 0] = 0
    return np.asarray(tier)


def answer_times(tiers: NDArray[np.int8], cache: ResponseCache) -> Floats:
    """Seconds until the answer of the tier that `draw_hits` drew; −1 for a request that goes on to the model.

    Such a request has waited `cache.tier_s[0]` by then, which is for the caller to add.
    """
    return np.asarray(np.where(tiers > 0, cache.tier_s[tiers], -1.0))


class Savings(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of the cost without any cache that are saved."""

    response_fraction: float  # by answers alone
    prefix_fraction: float  # by prefixes alone
    both_fraction: float


def savings(
    *,
    response_hit_fraction: float,
    prefix_hit_fraction: float,
    prompt_tokens: float,
    output_tokens: float,
    output_price_ratio: float = 4.0,
    cached_price_ratio: float = 0.1,
) -> Savings:
    """What answers and prefixes from caches save, alone and together.

    Cost of a request without caches, in prices of an input token: p + r·o.  With hit rates h of answers, of requests,
    and q of prefixes, of prompt tokens, and a price d of a cached token:
        cost = (1 − h) (p (1 − q (1 − d)) + r·o),
    so output, which no prefix cache touches, bounds what prefixes can save.  For one's own chips r and d are ratios of
    time instead of prices.  Assumes that the requests left over share prefixes as much as all did.

    >>> saved = savings(response_hit_fraction=0.45, prefix_hit_fraction=0.563, prompt_tokens=1000, output_tokens=250)
    >>> round(saved.response_fraction, 3), round(saved.prefix_fraction, 3), round(saved.both_fraction, 3)
    (0.45, 0.253, 0.589)
    """
    shares = {
        "response_hit_fraction": response_hit_fraction,
        "prefix_hit_fraction": prefix_hit_fraction,
        "cached_price_ratio": cached_price_ratio,
    }
    for name, value in shares.items():
        if not 0 <= value <= 1:
            raise ScenarioError(f"{name} is {value:g}", where="savings", hint="a share from 0 to 1")
    if min(prompt_tokens, output_tokens, output_price_ratio) < 0 or prompt_tokens + output_tokens <= 0:
        raise ScenarioError(
            f"{prompt_tokens:g} tokens in, {output_tokens:g} out at {output_price_ratio:g} times the price",
            where="savings",
            hint="none is negative, and there is some token",
        )
    whole = prompt_tokens + output_price_ratio * output_tokens
    prefix = prompt_tokens * prefix_hit_fraction * (1.0 - cached_price_ratio) / whole
    return Savings(
        response_fraction=response_hit_fraction,
        prefix_fraction=prefix,
        both_fraction=1.0 - (1.0 - response_hit_fraction) * (1.0 - prefix),
    )

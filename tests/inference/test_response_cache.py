"""Answers from a cache: hit rates against a simulated cache, and what tiers save alone and together."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.errors import ScenarioError
from datahall.events import stream
from datahall.inference.fleet.response_cache import (
    ExactTier,
    Questions,
    ResponseCache,
    SemanticTier,
    answer_times,
    draw_hits,
    hit_rates,
    lru_hits,
    savings,
)
from datahall.scenario.requests import requests_of
from datahall.scenario.sections.traffic import Traffic
from datahall.workload.traffic.popularity import draw_ranks, zipf_shares
from datahall.workload.traffic.requests import in_chunks, join
from datahall.workload.traffic.traffic import generate


def exact(num_entries: int, **said: float) -> ExactTier:
    """A tier that keeps what it has and takes no time, unless said."""
    return ExactTier(num_entries=num_entries, **{"ttl_s": 0.0, "lookup_s": 0.0} | said)  # type: ignore[arg-type]


NONE = exact(num_entries=0)


class Lru:
    """The cache itself, entry by entry: the oracle."""

    def __init__(self, tier: ExactTier) -> None:
        self.tier = tier
        self.stored_s: OrderedDict[int, float] = OrderedDict()

    def ask(self, key: int, now_s: float) -> bool:
        if not self.tier.num_entries:
            return False
        stored_s = self.stored_s.get(key)
        hit = stored_s is not None and (not self.tier.ttl_s or now_s - stored_s < self.tier.ttl_s)
        if not hit:
            self.stored_s[key] = now_s
        self.stored_s.move_to_end(key)
        if len(self.stored_s) > self.tier.num_entries:
            self.stored_s.popitem(last=False)
        return hit


def simulated(cache: ResponseCache, num: int = 120_000) -> tuple[float, float]:
    """Shares of requests answered in the process and by the shared tier, in the second half of a run."""
    asked, random = cache.questions, stream(1, "oracle")
    times = np.cumsum(random.standard_exponential(num)) / asked.rate_per_s
    ranks = draw_ranks(random, num, asked.num, asked.zipf_factor)
    once = random.random(num) < asked.unique_fraction
    keys = np.where(once, asked.num + np.arange(num), ranks)
    which = random.integers(cache.process.num_caches, size=num)
    near = [Lru(cache.process) for _ in range(cache.process.num_caches)]
    far = Lru(cache.shared)
    tiers = np.zeros(num, int)
    for row, (now_s, key, process) in enumerate(
        zip(times.tolist(), keys.tolist(), which.tolist(), strict=True)
    ):
        tiers[row] = 1 if near[process].ask(key, now_s) else 2 if far.ask(key, now_s) else 0
    late = tiers[num // 2 :]
    return float(np.mean(late == 1)), float(np.mean(late == 2))


def questions(unique: float = 0.5, zipf: float = 0.9) -> Questions:
    return Questions(rate_per_s=100.0, num=5_000, zipf_factor=zipf, unique_fraction=unique)


@pytest.mark.parametrize("zipf", [0.0, 0.7, 1.2])
@pytest.mark.parametrize("unique", [0.0, 0.5])
@pytest.mark.parametrize("entries", [100, 1000])
def test_che_meets_a_simulated_lru(zipf: float, unique: float, entries: int) -> None:
    cache = ResponseCache(questions=questions(unique, zipf), process=exact(num_entries=entries), shared=NONE)
    assert hit_rates(cache).process_fraction == pytest.approx(simulated(cache)[0], abs=0.006)


@pytest.mark.parametrize("ttl_s", [1.0, 4.0, 10.0, 60.0])
def test_a_time_to_live_meets_a_simulated_cache(ttl_s: float) -> None:
    """500 entries last about 7 s here: below that the time binds, above it the room, near it both."""
    cache = ResponseCache(questions=questions(), process=exact(num_entries=500, ttl_s=ttl_s), shared=NONE)
    assert hit_rates(cache).process_fraction == pytest.approx(simulated(cache)[0], abs=0.008)


@pytest.mark.parametrize(
    ("process", "shared"),
    [
        (exact(num_entries=200, num_caches=8), exact(num_entries=3000)),
        (exact(num_entries=200, num_caches=8, ttl_s=60.0), exact(num_entries=3000, ttl_s=300.0)),
        (exact(num_entries=500, num_caches=8, ttl_s=5.0), exact(num_entries=3000)),
        (exact(num_entries=300), exact(num_entries=3000)),
    ],
)
def test_two_tiers_meet_two_simulated_tiers(process: ExactTier, shared: ExactTier) -> None:
    cache = ResponseCache(questions=questions(), process=process, shared=shared)
    rates, (near, far) = hit_rates(cache), simulated(cache)
    assert rates.process_fraction == pytest.approx(near, abs=0.01)
    assert rates.shared_fraction == pytest.approx(far, abs=0.015)


def test_the_entries_in_use_are_the_capacity() -> None:
    rates = 50.0 * zipf_shares(2000, 0.8)
    assert lru_hits(rates, 0.0, 300).sum() == pytest.approx(300)


def test_a_cache_larger_than_all_questions_answers_all() -> None:
    assert np.all(lru_hits(np.ones(10), 0.0, 10) == 1.0)
    assert not lru_hits(np.ones(10), 0.0, 0).any()


@given(
    entries=st.integers(1, 4000),
    more=st.integers(0, 2000),
    zipf=st.floats(0.0, 1.5),
    unique=st.floats(0.0, 1.0),
    ttl_s=st.sampled_from([0.0, 1.0, 100.0]),
)
def test_more_room_never_hurts(entries: int, more: int, zipf: float, unique: float, ttl_s: float) -> None:
    asked = Questions(rate_per_s=10.0, num=1000, zipf_factor=zipf, unique_fraction=unique)

    def hits(num: int) -> float:
        tier = exact(num_entries=num, ttl_s=ttl_s)
        return hit_rates(ResponseCache(questions=asked, process=tier, shared=NONE)).total_fraction

    assert -1e-9 <= hits(entries) <= hits(entries + more) + 1e-9
    assert hits(entries + more) <= 1.0 - unique + 1e-9


def test_semantic_hits_are_of_what_the_exact_tiers_left() -> None:
    cache = ResponseCache(questions=questions(), semantic=SemanticTier(hit_fraction=0.3))
    rates = hit_rates(cache)
    left = 1.0 - rates.process_fraction - rates.shared_fraction
    assert rates.semantic_fraction == pytest.approx(0.3 * left)


def test_where_nothing_is_asked_twice_only_meaning_helps() -> None:
    rates = hit_rates(ResponseCache(questions=questions(unique=1.0), semantic=SemanticTier(hit_fraction=0.2)))
    assert (rates.process_fraction, rates.shared_fraction, rates.semantic_fraction) == (0.0, 0.0, 0.2)


def test_tiers_take_microseconds_milliseconds_and_tens_of_milliseconds() -> None:
    cache = ResponseCache(questions=questions(), semantic=SemanticTier(hit_fraction=0.3))
    miss_s, process_s, shared_s, semantic_s = cache.tier_s
    assert process_s < 1e-3 <= shared_s < 10e-3 <= semantic_s < 100e-3
    assert miss_s == semantic_s  # a miss has asked all three
    without = ResponseCache(questions=questions())
    assert without.tier_s[0] == without.tier_s[2]


def test_drawn_hits_have_the_rates_and_spare_later_turns() -> None:
    cache = ResponseCache(questions=questions(), semantic=SemanticTier(hit_fraction=0.3))
    rates = hit_rates(cache)
    said = Traffic(rate_per_s=50.0, turns=3.0, requests=200_000)
    run = join(generate(requests_of(said, 0), 1))
    tiers = draw_hits(run, cache, 5)
    opening = run.after < 0
    assert not tiers[~opening].any()
    share = np.bincount(tiers[opening], minlength=4) / np.count_nonzero(opening)
    expected = [
        1 - rates.total_fraction,
        rates.process_fraction,
        rates.shared_fraction,
        rates.semantic_fraction,
    ]
    assert share == pytest.approx(expected, abs=0.008)
    assert np.array_equal(tiers, draw_hits(run, cache, 5))
    random = stream(5, "response cache")
    parts = [draw_hits(chunk, cache, random) for chunk in in_chunks((run,), 777)]
    assert np.array_equal(tiers, np.concatenate(parts))


def test_answer_times_are_those_of_the_tier() -> None:
    cache = ResponseCache(questions=questions(), semantic=SemanticTier(hit_fraction=0.3))
    times = answer_times(np.array([0, 1, 2, 3], np.int8), cache)
    assert times.tolist() == [-1.0, *cache.tier_s[1:]]


# Share of requests, in production (preto.ai, "Semantic caching for LLMs", 2026); 90–95 % in brochures is the share of
# hits that were right.
PUBLISHED_SEMANTIC = (0.20, 0.45)
PUBLISHED_PREFIX = 0.563  # of input tokens: DeepSeek, open-infra-index, day 6, March 2025
PUBLISHED_CACHED_PRICE = (0.10, 0.50)  # of the input price: API price lists, 2026 (0.1 Anthropic, 0.5 GPT-4o)
BEST_SEMANTIC, CHEAPEST = PUBLISHED_SEMANTIC[1], PUBLISHED_CACHED_PRICE[0]


@pytest.mark.parametrize(("prompt", "output"), [(1000, 250), (4000, 250), (12_000, 343), (161, 338)])
def test_neither_tier_alone_saves_sixty_percent_at_published_rates(prompt: float, output: float) -> None:
    saved = savings(
        response_hit_fraction=BEST_SEMANTIC,
        prefix_hit_fraction=PUBLISHED_PREFIX,
        prompt_tokens=prompt,
        output_tokens=output,
        cached_price_ratio=CHEAPEST,
    )
    assert max(saved.response_fraction, saved.prefix_fraction) < 0.6


def test_sixty_to_eighty_percent_needs_both_tiers_and_long_prompts() -> None:
    """At the best published rates of both, 4,000 tokens in and 250 out save 67 %; short prompts do not reach 60 %."""

    def both(prompt: float, semantic: float, price: float) -> float:
        return savings(
            response_hit_fraction=semantic,
            prefix_hit_fraction=PUBLISHED_PREFIX,
            prompt_tokens=prompt,
            output_tokens=250,
            cached_price_ratio=price,
        ).both_fraction

    assert both(4000, BEST_SEMANTIC, CHEAPEST) == pytest.approx(0.673, abs=0.001)
    assert both(1000, BEST_SEMANTIC, CHEAPEST) < 0.6
    assert both(4000, PUBLISHED_SEMANTIC[0], PUBLISHED_CACHED_PRICE[1]) < 0.4


@given(h=st.floats(0, 1), q=st.floats(0, 1), d=st.floats(0, 1), o=st.floats(0, 1e4))
def test_together_they_save_no_less_than_either_and_no_more_than_their_sum(
    h: float, q: float, d: float, o: float
) -> None:
    saved = savings(
        response_hit_fraction=h,
        prefix_hit_fraction=q,
        prompt_tokens=1000,
        output_tokens=o,
        cached_price_ratio=d,
    )
    alone = (saved.response_fraction, saved.prefix_fraction)
    assert max(alone) - 1e-12 <= saved.both_fraction <= min(1.0, sum(alone)) + 1e-12


@pytest.mark.parametrize(
    "fields",
    [
        {"response_hit_fraction": 1.2},
        {"prefix_hit_fraction": -0.1},
        {"prompt_tokens": -1.0},
        {"prompt_tokens": 0.0, "output_tokens": 0.0},
    ],
)
def test_savings_of_nothing_are_refused(fields: dict[str, float]) -> None:
    known = {
        "response_hit_fraction": 0.2,
        "prefix_hit_fraction": 0.2,
        "prompt_tokens": 1.0,
        "output_tokens": 1.0,
    }
    with pytest.raises(ScenarioError, match="savings"):
        savings(**(known | fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"questions": Questions(rate_per_s=0.0)},
        {"questions": Questions(rate_per_s=1.0, unique_fraction=2.0)},
        {"questions": Questions(rate_per_s=1.0), "process": exact(num_entries=-1)},
        {"questions": Questions(rate_per_s=1.0), "shared": exact(num_entries=1, num_caches=0)},
        {"questions": Questions(rate_per_s=1.0), "semantic": SemanticTier(hit_fraction=1.5)},
    ],
)
def test_caches_that_cannot_be_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ScenarioError, match="response cache"):
        ResponseCache(**fields)  # type: ignore[arg-type]


def test_savings_by_hand() -> None:
    """100 tokens in and 25 out at four times the price cost 200; half of the prompt at a fifth saves 40 of them."""
    saved = savings(
        response_hit_fraction=0.25,
        prefix_hit_fraction=0.5,
        prompt_tokens=100.0,
        output_tokens=25.0,
        output_price_ratio=4.0,
        cached_price_ratio=0.2,
    )
    assert (saved.response_fraction, saved.prefix_fraction, saved.both_fraction) == pytest.approx(
        (0.25, 0.2, 0.4)
    )


@pytest.mark.parametrize(
    ("process", "shared", "semantic", "expected"),
    [
        (1, 1, 0.5, [0.7, 0.1, 0.3, 0.7]),
        (0, 1, 0.5, [0.6, 0.0, 0.2, 0.6]),  # a tier that is not there is not asked
        (1, 0, 0.5, [0.5, 0.1, 0.1, 0.5]),
        (1, 1, 0.0, [0.3, 0.1, 0.3, 0.3]),
    ],
)
def test_tiers_are_asked_one_after_the_other(
    process: int, shared: int, semantic: float, expected: list[float]
) -> None:
    cache = ResponseCache(
        questions=questions(),
        process=exact(num_entries=process, lookup_s=0.1),
        shared=exact(num_entries=shared, lookup_s=0.2),
        semantic=SemanticTier(hit_fraction=semantic, lookup_s=0.4),
    )
    assert cache.tier_s.tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    "fields",
    [
        {"questions": Questions(rate_per_s=1.0, num=0)},
        {"questions": Questions(rate_per_s=1.0, zipf_factor=-0.1)},
        {"questions": Questions(rate_per_s=float("nan"))},
        {"questions": Questions(rate_per_s=1.0, unique_fraction=-0.1)},
        {"questions": Questions(rate_per_s=1.0), "process": exact(num_entries=1, ttl_s=-1.0)},
        {"questions": Questions(rate_per_s=1.0), "shared": exact(num_entries=1, lookup_s=-1.0)},
        {"questions": Questions(rate_per_s=1.0), "semantic": SemanticTier(hit_fraction=-0.5)},
    ],
)
def test_numbers_below_their_ranges_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ScenarioError, match="response cache"):
        ResponseCache(**fields)  # type: ignore[arg-type]


def test_the_ends_of_the_ranges_are_allowed() -> None:
    for unique in (0.0, 1.0):
        asked = Questions(rate_per_s=1e-3, num=1, zipf_factor=0.0, unique_fraction=unique)
        none = exact(num_entries=0)
        ResponseCache(questions=asked, process=none, shared=none, semantic=SemanticTier(hit_fraction=unique))
    whole = {"response_hit_fraction": 1.0, "prefix_hit_fraction": 1.0, "cached_price_ratio": 0.0}
    saved = savings(**whole, prompt_tokens=1.0, output_tokens=0.0, output_price_ratio=0.0)
    assert (saved.prefix_fraction, saved.both_fraction) == (1.0, 1.0)
    with pytest.raises(ScenarioError, match="savings"):
        savings(**{**whole, "cached_price_ratio": 1.1}, prompt_tokens=1.0, output_tokens=1.0)
    with pytest.raises(ScenarioError, match="times the price"):
        savings(**whole, prompt_tokens=1.0, output_tokens=1.0, output_price_ratio=-1.0)

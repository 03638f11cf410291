"""Prompts of conversations of which caches have most: what is left to compute varies more than prompts do."""

from __future__ import annotations

import msgspec
import pytest

from datahall.catalog import load
from datahall.inference.closed_form.capacity import held
from datahall.inference.closed_form.conversations import with_cached
from datahall.inference.closed_form.steady_state import Load
from datahall.inference.engine.engine import engine
from datahall.inference.engine.replica import Replica
from datahall.scenario.sections.wanted.promise import Promise
from datahall.workload.traffic.sharing import Remembered

CATALOG = load()
REPLICA = Replica(model=CATALOG.model("llama-3.1-8b"), chip=CATALOG.chip("h100-sxm"), engine=engine("vllm"))
PROMISE = Promise(ttft_s=2.0, tpot_s=0.05, percentile=0.9)
LOAD = Load(prompt=8000.0, output=200.0, spread=0.1)


def remembered(spread: float) -> Remembered:
    return Remembered(time_s=60.0, cached=6000.0, computed=2000.0, spread=spread)


def test_a_request_varies_as_what_is_computed_of_it() -> None:
    """Three quarters of 8,000 tokens are cached; the rest varies by 1.2, whole prompts by 0.1."""
    found = with_cached(LOAD, remembered(1.2))
    assert (found.cached, found.computed, found.spread) == (6000.0, 2000.0, 1.2)


def test_the_slow_tenth_of_first_tokens_is_later_the_more_that_varies() -> None:
    """Where half of what is computed is nothing and half is twice the mean, one of ten waits for more than the mean."""
    slow_s = [
        held(REPLICA, with_cached(LOAD, remembered(spread)), PROMISE).at(1.0).ttft_high_s
        for spread in (0.0, 0.5, 1.0, 2.0)
    ]
    assert slow_s == sorted(slow_s)
    assert slow_s[-1] > 1.3 * slow_s[0]
    plain = msgspec.structs.replace(LOAD, cached=6000.0, spread=0.0)
    assert slow_s[0] == pytest.approx(held(REPLICA, plain, PROMISE).at(1.0).ttft_high_s)

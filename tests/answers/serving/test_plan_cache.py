"""The cache that a plan states is the one that `show fit` states for sequences of the traffic's length."""

from __future__ import annotations

import pytest

import datahall as dh
from datahall.catalog import Catalog

SHELF = Catalog(user=False)


@pytest.mark.parametrize("model", ["gemma-3-27b", "qwen3-next-80b-a3b", "nemotron-h-8b", "llama-3.1-8b"])
@pytest.mark.parametrize(("isl", "osl"), [(1000, 200), (6000, 500)])
def test_a_plan_and_show_fit_agree_on_the_cache(model: str, isl: int, osl: int) -> None:
    """Windows and states take their room whatever the length, so that a cache holds fewer tokens of short ones."""
    plan = dh.plan_serve(
        model, chips="h200-sxm", precision="bf16", tp=4, rate=2, isl=isl, osl=osl, catalog=SHELF
    )
    (holds,) = [table for table in plan.tables if "one replica holds" in table.title]
    fit = dh.show_fit(model, chip="h200-sxm", tp=4, context=isl + osl, catalog=SHELF)
    assert holds.records()[0]["cache_tokens"] == fit.results["cache_tokens"]

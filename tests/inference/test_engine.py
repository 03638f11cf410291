"""Engines by name, with the defaults that they pick on a chip."""

from __future__ import annotations

import pytest

from datahall.catalog import Catalog
from datahall.errors import UnknownNameError
from datahall.inference.engine.engine import engine, engine_on, engines
from datahall.inference.engine.replica import Adapters, Speculation
from datahall.inference.fleet.autoscale import Autoscaling
from datahall.inference.fleet.fleet import Fleet
from datahall.inference.fleet.response_cache import Questions
from datahall.scenario.sections.deployment import Deployment
from datahall.scenario.sections.fleet import AnswerCache, Router


def test_presets_carry_their_own_names_and_a_source() -> None:
    for name, one in engines().items():
        assert one.name == name
        assert one.source.title
        assert one.source.date


def test_an_unknown_engine_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="vllm"):
        engine("vlm")


@pytest.mark.parametrize(
    ("chip", "budget", "sequences"),
    [("h100-sxm", 8192, 1024), ("b200-sxm", 8192, 1024), ("a100-sxm-80gb", 2048, 256), ("l40s", 2048, 256)],
)
def test_vllm_is_modest_on_small_chips_and_on_a100(
    shelf: Catalog, chip: str, budget: int, sequences: int
) -> None:
    found = engine_on("vllm", shelf.chip(chip))
    assert (found.token_budget, found.max_sequences) == (budget, sequences)


def test_sglang_stops_decodes_for_prompts_and_trtllm_never_evicts() -> None:
    assert not engine("sglang").mixed_steps
    assert engine("trtllm").whole_output_blocks
    assert engine("trtllm").fraction_of_free
    assert engine("static").batching == "static"
    assert engine("dynamic").wait_s > 0


def test_a_default_is_that_of_the_section_that_declares_the_input() -> None:
    router, said, cache = Router(), Deployment(), AnswerCache()
    rule, fleet = Autoscaling(least=1, most=2), Fleet.__struct_defaults__
    assert (rule.interval_s, rule.cold_start_s, rule.patience_s) == (
        router.interval_s, router.cold_start_s, router.patience_s,
    )  # fmt: skip
    assert {router.routing, router.affinity_load_ratio, router.spill} <= set(fleet)
    drafted, adapters = Speculation(), Adapters(num=1)
    assert (drafted.num_draft, drafted.acceptance) == (said.num_draft, said.acceptance_fraction)
    assert (adapters.rank, adapters.zipf_factor) == (said.adapter_rank, said.adapter_zipf)
    asked = Questions(rate_per_s=1.0)
    assert (asked.num, asked.zipf_factor, asked.unique_fraction) == (
        cache.questions, cache.zipf, cache.unique_fraction,
    )  # fmt: skip

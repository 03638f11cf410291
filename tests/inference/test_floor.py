"""No band of a time per token reaches below what the chip's memory allows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from datahall.inference.engine.replica import Replica, Speculation
from datahall.inference.step.floor import least_token_s, token_band
from datahall.inference.step.price import price_steps
from datahall.inference.step.table import decode_step_time
from datahall.silicon.kernel import time_operators
from datahall.workload.forward import forward_pass
from datahall.workload.parameters import count_parameters

Serve = Callable[..., Replica]
DENSE = [("llama-3.1-8b", "l40s", 1), ("llama-3.1-8b", "h200-sxm", 1), ("llama-3.1-70b", "h100-sxm", 4)]


@pytest.mark.parametrize(("model", "chip", "tp"), DENSE)
def test_a_token_takes_at_least_the_time_to_read_every_weight(
    serve: Serve, model: str, chip: str, tp: int
) -> None:
    """All weights but the token table, of which a token reads one row, each in two bytes and once."""
    replica = serve(model, chip, tp=tp)
    counts = count_parameters(replica.model)
    read_bytes = 2.0 * (counts.total - counts.embedding) / tp
    least_s = least_token_s(replica, context=0.0)
    assert least_s >= read_bytes / replica.chip.memory_bytes_per_s
    assert least_s < 1.1 * read_bytes / replica.chip.memory_bytes_per_s
    assert least_s < decode_step_time(price_steps(replica).table, 1, 16.0)


def test_of_experts_a_token_reads_only_its_own(serve: Serve) -> None:
    replica = serve("qwen3-30b-a3b")
    counts = count_parameters(replica.model)
    every_s = 2.0 * counts.total / replica.chip.memory_bytes_per_s
    assert 2.0 * (counts.active - counts.embedding) / replica.chip.memory_bytes_per_s <= least_token_s(
        replica, context=0.0
    )
    assert least_token_s(replica, context=0.0) < every_s / 4


def test_a_step_that_yields_several_tokens_divides_the_floor(serve: Serve) -> None:
    plain = serve("llama-3.1-8b")
    drafting = replace(plain, speculation=Speculation(num_draft=3, acceptance=1.0, draft="ngram"))
    assert least_token_s(drafting, context=0.0) == pytest.approx(least_token_s(plain, context=0.0) / 4)


def test_a_band_is_cut_off_at_the_floor_and_nowhere_else(serve: Serve) -> None:
    replica = serve("llama-3.1-8b", "l40s")
    price, least_s = price_steps(replica), least_token_s(replica, context=0.0)
    wide = replace(price, band=(0.5, 1.5))
    assert token_band(replica, wide, 1.25 * least_s) == pytest.approx((0.8, 1.5))
    assert token_band(replica, wide, 4.0 * least_s) == (0.5, 1.5)
    # a figure below the floor rests on a cache of the chip, of which the floor knows nothing
    assert token_band(replica, wide, 0.9 * least_s) == (0.5, 1.5)


@pytest.mark.parametrize(("model", "chip"), [("llama-3.1-8b", "l4"), ("llama-3.1-70b", "b200-sxm")])
def test_a_token_reads_the_cache_of_its_own_sequence_too(serve: Serve, model: str, chip: str) -> None:
    """The band of a mean time per token ends at the roofline of a pass with the same tokens before it."""
    replica = serve(model, chip)
    alone = forward_pass(replica.model, batch=1.0, query=1.0, past=1000.0)
    roofline_s = time_operators(replica.chip, alone).roofline_s
    wide = replace(price_steps(replica), band=(0.5, 1.5))
    low, _ = token_band(replica, wide, 1.2 * roofline_s, context=1000.0)
    assert low * 1.2 == pytest.approx(1.0)
    assert token_band(replica, wide, 1.2 * roofline_s)[0] < low

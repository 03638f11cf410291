"""What a step of a replica sends and computes in the mean, by hand."""

from __future__ import annotations

import msgspec
import pytest

from datahall.catalog import load
from datahall.inference.closed_form.steady_state import Load
from datahall.inference.engine.engine import engine
from datahall.inference.engine.replica import Replica
from datahall.power.serving import mean_work, step_work

CATALOG = load()
H100 = CATALOG.chip("h100-sxm")


def a_replica(model: str = "llama-3.1-8b", **more: object) -> Replica:
    found = Replica(model=CATALOG.model(model), chip=H100, engine=engine("vllm"))
    return msgspec.structs.replace(found, **more)


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_tensor_parallel_chips_send_two_sums_a_layer(tp: int) -> None:
    """64 tokens of 4,096 values of 2 bytes, twice in 32 layers, around a ring: 2 (t − 1)/t of it."""
    work = step_work(a_replica(tp=tp), num_decodes=64, mean_context=500.0)
    sent = work.activity.link_fraction * work.time_s * 450e9
    assert sent == pytest.approx(2 * (tp - 1) / tp * 64 * 4096 * 2 * 64)


def test_ranks_of_a_dense_model_send_nothing() -> None:
    assert step_work(a_replica(dp=2), num_decodes=64, mean_context=500.0).activity.link_fraction == 0.0


def test_the_mean_step_has_the_prompts_that_start_in_it() -> None:
    """50 sequences decode for 100 steps each: half a prompt a step, of which 600 of 1,000 tokens are computed.

    Answers of 201 tokens are half done in the mean, and prompts are with all of theirs.  Of 600 tokens in pieces of
    300 none or 300 lie before a piece, 150 in the mean, beside the 400 that are cached.
    """
    replica = a_replica()
    load = Load(prompt=1000.0, output=201.0, cached=400.0, tokens_per_step=2.0)
    by_hand = step_work(replica, num_decodes=50, mean_context=1100.5, chunks=((300.0, 550.0),))
    assert mean_work(replica, load, 50.0) == by_hand
    twice = msgspec.structs.replace(load, tokens_per_step=1.0)
    assert mean_work(replica, twice, 50.0) == step_work(
        replica, num_decodes=50, mean_context=1100.5, chunks=((150.0, 625.0),)
    )


def test_prompts_longer_than_a_step_takes_are_whole_ones() -> None:
    """300 of 100 steps each: three prompts of 1,000 tokens a step; of 250, two and a half, in three alike pieces."""
    replica, load = a_replica(), Load(prompt=1000.0, output=101.0)
    for num, chunks in ((300, ((1000.0, 0.0),) * 3), (250, ((2500.0 / 3, 250.0 / 3),) * 3)):
        by_hand = step_work(replica, num_decodes=num, mean_context=1050.5, chunks=chunks)
        found = mean_work(replica, load, float(num))
        assert found.time_s == pytest.approx(by_hand.time_s)
        assert found.activity.tensor_fraction == pytest.approx(by_hand.activity.tensor_fraction)

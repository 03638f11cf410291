"""Serving techniques: what must hold whatever the constants are."""

from __future__ import annotations

import msgspec
import pytest

from datahall.catalog import load as catalogue
from datahall.inference.closed_form.steady_state import Load
from datahall.inference.engine.engine import engine_on
from datahall.inference.engine.replica import Replica, Speculation
from datahall.inference.ladder.techniques import (
    Setting,
    disaggregated,
    effect,
    narrow_cache,
    prefix_cached,
    prompt_time,
    quantised,
    speculative,
    speed_up,
)
from datahall.inference.ladder.without import one_by_one
from datahall.scenario.sections.wanted.promise import Promise
from datahall.workload.precision import Precision

SLO = Promise(ttft_s=1.0, tpot_s=0.05)


@pytest.fixture(scope="module")
def plain() -> Setting:
    shelf = catalogue()
    chip = shelf.chip("h200")
    replica = Replica(model=shelf.model("llama-3.1-70b"), chip=chip, engine=engine_on("vllm", chip), tp=4)
    return Setting(replica=replica, load=Load(prompt=1000.0, output=250.0))


def test_batching_holds_many_times_what_one_at_a_time_does(plain: Setting) -> None:
    alone = effect("", one_by_one(plain), SLO, 1.0)
    assert effect("", plain, SLO, 1.0).most_per_s > 10 * alone.most_per_s


def test_a_prefix_found_saves_its_share_of_the_prompts_work(plain: Setting) -> None:
    gains = [effect("", prefix_cached(share)(plain), SLO, 2.0) for share in (0.2, 0.5, 0.8)]
    held = [one.held_per_s for one in gains]
    assert held == sorted(held)
    assert gains[-1].ttft_s < gains[0].ttft_s


def test_speculation_fades_as_the_batch_grows(plain: Setting) -> None:
    how = Speculation(num_draft=3, acceptance=0.7, draft="ngram")
    faster = [speed_up(plain.replica, how, batch, 1000.0) for batch in (1, 8, 32, 128, 256)]
    assert faster == sorted(faster, reverse=True)
    assert faster[0] > 2.0
    assert faster[-1] < 1.5


def test_nothing_accepted_is_slower_than_not_drafting(plain: Setting) -> None:
    assert speed_up(plain.replica, Speculation(num_draft=4, acceptance=0.0, draft="ngram"), 64, 1000.0) < 1.0


def test_fewer_bits_hold_more(plain: Setting) -> None:
    wide = effect("", plain, SLO, 2.0)
    assert effect("", quantised("fp8")(plain), SLO, 2.0).held_per_s > wide.held_per_s
    assert narrow_cache(msgspec.structs.replace(plain)) is not None


def test_a_format_that_is_already_used_is_no_technique(plain: Setting) -> None:
    assert quantised("bf16")(plain) is None
    assert prefix_cached(0.0)(plain) is None


def test_prompts_apart_keep_decodes_from_waiting(plain: Setting) -> None:
    together, apart = effect("", plain, SLO, 8.0), effect("", disaggregated(plain), SLO, 8.0)
    assert apart.ttft_s > prompt_time(plain.replica, plain.load)
    assert apart.held_per_s > 0.5 * together.held_per_s


def test_a_draft_model_is_not_free(plain: Setting) -> None:
    free = Speculation(num_draft=3, acceptance=0.7, draft="ngram")
    paid = Speculation(
        num_draft=3, acceptance=0.7, draft="llama-3.1-8b", model=catalogue().model("llama-3.1-8b")
    )
    assert speed_up(plain.replica, paid, 8, 1000.0) < speed_up(plain.replica, free, 8, 1000.0)
    assert speculative(paid)(plain) is not None


@pytest.mark.parametrize(
    ("now", "activations"), [("fp16", "fp16"), ("bf16", "bf16"), ("fp8", "bf16"), ("fp32", "bf16")]
)
def test_weights_of_fewer_bits_leave_sixteen_bit_activations_alone(
    plain: Setting, now: str, activations: str
) -> None:
    """A chip without BF16 (V100) runs 4-bit weights with FP16, as its kernels do."""
    setting = msgspec.structs.replace(
        plain, replica=msgspec.structs.replace(plain.replica, precision=Precision.named(now))
    )
    packed = quantised("w4a16")(setting)
    assert packed is not None
    precision = packed.replica.precision
    assert (precision.weights, precision.activations, precision.compute) == ("int4", activations, activations)
    assert precision.kv == setting.replica.precision.kv

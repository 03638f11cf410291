import numpy as np
import pytest

from datahall.catalog.entries.model import Model
from datahall.errors import UnknownNameError
from datahall.workload.memory.state import (
    ChipParameters,
    StateRecipe,
    chip_parameters,
    serving_weight_bytes,
    state_bytes,
)
from datahall.workload.parameters import count_parameters
from datahall.workload.precision import Precision


@pytest.mark.parametrize(
    ("name", "total"),
    [
        ("megatron", 18),
        ("bf16-gradients", 16),
        ("precision-aware", 14),
        ("fp8-parameters", 17),
        ("pure-bf16", 8),
        ("fp32", 16),
    ],
)
def test_bytes_per_parameter(name: str, total: float) -> None:
    assert StateRecipe.named(name).total == total


def test_an_unknown_recipe_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="megatron"):
        StateRecipe.named("megatron-lm")


@pytest.mark.parametrize(("zero", "expected"), [(0, 18), (1, 6 + 12 / 8), (2, 2 + 16 / 8), (3, 18 / 8)])
def test_zero_divides_optimizer_then_gradients_then_weights(zero: int, expected: float) -> None:
    state = state_bytes(ChipParameters(1.0, 0.0), StateRecipe.named("megatron"), zero=zero, dp=8)
    assert state.total_bytes == pytest.approx(expected)


def test_experts_have_their_own_replicas() -> None:
    recipe = StateRecipe.named("megatron")
    state = state_bytes(ChipParameters(0.0, 1.0), recipe, zero=1, dp=64, expert_dp=8)
    assert state.total_bytes == 6 + 12 / 8


def test_columns_of_stages_and_replicas() -> None:
    recipe = StateRecipe.named("megatron")
    state = state_bytes(
        ChipParameters(1.0, 0.0), recipe, zero=np.array([0, 1, 3]), dp=np.array([8.0, 8.0, 2.0])
    )
    assert list(state.total_bytes) == pytest.approx([18, 7.5, 9])  # type: ignore[arg-type]


def test_one_chip_holds_the_whole_model(model: Model) -> None:
    counts = count_parameters(model)
    chip = chip_parameters(counts, tp=1.0, pp=1.0, ep=1.0)
    assert chip.dense + chip.expert == counts.total


@pytest.mark.parametrize(("tp", "pp"), [(2, 1), (4, 4), (8, 8)])
def test_the_stages_of_a_pipeline_hold_the_model_between_them(llama: Model, tp: int, pp: int) -> None:
    counts = count_parameters(llama)
    stages = ["first", *["middle"] * (pp - 2), "last"] if pp > 1 else ["heaviest"]
    held = sum(chip_parameters(counts, tp=tp, pp=pp, stage=one, ep=1.0).dense for one in stages)  # type: ignore[arg-type]
    assert held * tp == pytest.approx(counts.total + (tp - 1) * counts.replicated)


def test_a_tied_head_is_copied_to_the_last_stage(gpt: Model) -> None:
    counts = count_parameters(gpt)
    assert counts.head == 0
    last = chip_parameters(counts, pp=2, stage="last", tp=1.0, ep=1.0)
    first = chip_parameters(counts, pp=2, stage="first", tp=1.0, ep=1.0)
    assert last.dense == first.dense


def test_experts_spread_over_the_wider_of_ep_and_tp(mixtral: Model) -> None:
    counts = count_parameters(mixtral)
    for tp, ep in ((1, 8), (8, 1), (8, 8), (2, 8)):
        assert chip_parameters(counts, tp=tp, ep=ep, pp=1.0).expert == counts.expert / 8


def test_serving_weights(llama: Model, deepseek: Model) -> None:
    counts = count_parameters(llama)
    assert serving_weight_bytes(llama, counts) == 2 * counts.total
    fp8 = serving_weight_bytes(llama, counts, Precision.named("fp8"))
    assert fp8 == counts.sharded + 2 * (counts.total - counts.sharded)
    shares = count_parameters(deepseek)
    narrow = serving_weight_bytes(deepseek, shares, Precision.named("fp8"))
    assert narrow == pytest.approx(671e9 + 2 * 0.93e9, rel=0.005)  # linear layers at 1 B, two tables at 2 B

"""The list of saved tensors against the constants of Korthikanti et al. (2022), tables 1 and 2."""

import numpy as np
import pytest

from datahall.catalog.entries.model import Model
from datahall.errors import UnknownNameError
from datahall.workload.memory.activation import (
    Recompute,
    Saving,
    activation_bytes,
    layer_tensors,
    outside_tensors,
    sum_bytes,
)
from datahall.workload.sharding import ONE_CHIP, Sharding

S, B = 2048.0, 4.0
OLD = Saving(flash=False, dropout=True)
EAGER = Saving(modules="huggingface-eager")


def layer_bytes(
    model: Model, sharding: Sharding = ONE_CHIP, recompute: Recompute = "none", saving: Saving = OLD
) -> float:
    return float(sum_bytes(layer_tensors(model, model.layers[0], saving, recompute), B, S, sharding))


@pytest.fixture(scope="module")
def sbh(gpt: Model) -> float:
    return S * B * gpt.hidden


def test_no_parallelism(gpt: Model, sbh: float) -> None:
    assert layer_bytes(gpt) == pytest.approx(sbh * (34 + 5 * gpt.num_heads * S / gpt.hidden))


@pytest.mark.parametrize("t", [2, 8])
def test_tensor_parallel(gpt: Model, sbh: float, t: int) -> None:
    expected = sbh * (10 + 24 / t + 5 * gpt.num_heads * S / (gpt.hidden * t))
    assert layer_bytes(gpt, Sharding(tp=t)) == pytest.approx(expected)


@pytest.mark.parametrize("t", [2, 8])
def test_tensor_and_sequence_parallel(gpt: Model, sbh: float, t: int) -> None:
    sharding = Sharding(tp=t, sequence_parallel=True)
    expected = sbh / t * (34 + 5 * gpt.num_heads * S / gpt.hidden)
    assert layer_bytes(gpt, sharding) == pytest.approx(expected)
    assert layer_bytes(gpt, sharding, "selective") == pytest.approx(34 * sbh / t)


def test_full_recompute_keeps_the_layer_input(gpt: Model, sbh: float) -> None:
    assert layer_bytes(gpt, Sharding(tp=8), "full") == 2 * sbh
    assert layer_bytes(gpt, Sharding(tp=8, sequence_parallel=True), "full") == 2 * sbh / 8


def test_head_and_loss(gpt: Model, sbh: float) -> None:
    """Section 4.3: final norm, its output and fp32 logits are 4·s·b·h/t·(1 + v/h)."""
    tensors = [one for one in outside_tensors(gpt, Saving(flash=False), loss_bytes=4.0) if not one.transient]
    kept = sum_bytes(tensors, B, S, Sharding(tp=8, sequence_parallel=True))
    assert kept == pytest.approx(4 * sbh / 8 * (1 + gpt.vocab / gpt.hidden))


def test_flash_attention_keeps_one_number_per_head_instead_of_scores(gpt: Model, sbh: float) -> None:
    flash = layer_bytes(gpt, saving=Saving(dropout=True))
    assert flash == pytest.approx(34 * sbh + 4 * S * B * gpt.num_heads)


def test_a_gated_layer_by_hand(llama: Model) -> None:
    """Two norms with input and output, q, k, v, output, gate, up, product, log-sum-exp."""
    per_token = 2 * (4 * 4096 + 4096 + 2 * 1024 + 4096 + 3 * 14336) + 4 * 32
    assert layer_bytes(llama, saving=Saving()) == per_token * S * B


def test_an_eager_layer_keeps_fp32_norms_and_the_activated_gate(llama: Model) -> None:
    extra = 2 * 4 * 4096 + 2 * 14336  # per norm fp32 for 16-bit input, and what the weight multiplies
    assert layer_bytes(llama, saving=EAGER) - layer_bytes(llama, saving=Saving()) == extra * S * B


def test_kv_tensors_are_repeated_beyond_the_kv_heads(llama: Model) -> None:
    tensors = {one.name: one for one in layer_tensors(llama, llama.layers[0])}
    key = tensors["key"]
    assert key.bytes_on_chip(1, 1, Sharding(tp=8)) == key.bytes_on_chip(1, 1, Sharding(tp=32)) == 2 * 128


def test_expert_tensors_follow_the_copies(mixtral: Model) -> None:
    tensors = {one.name: one for one in layer_tensors(mixtral, mixtral.layers[0])}
    assert tensors["expert_input"].bytes_on_chip(1, 100, Sharding()) == 2 * 2 * 100 * 4096
    assert tensors["expert_gate"].bytes_on_chip(1, 100, Sharding(tp=8, ep=2)) == 2 * 2 * 100 * 14336 / 8
    assert tensors["expert_output"].bytes_on_chip(1, 100, Sharding(tp=8, ep=2)) == 2 * 2 * 100 * 4096 / 2


def test_every_architecture_orders_its_recomputation(model: Model) -> None:
    def kept(recompute: Recompute) -> float:
        return float(activation_bytes(model, batch=1, seq=4096, recompute=recompute, saving=OLD))

    assert 0 < kept("full") < kept("selective") <= kept("none")


def test_columns(deepseek: Model) -> None:
    batch, seq = np.array([1.0, 2.0]), np.array([4096.0, 512.0])
    columns = activation_bytes(deepseek, batch=batch, seq=seq, sharding=Sharding(tp=np.array([1.0, 8.0])))
    alone = activation_bytes(deepseek, batch=2.0, seq=512.0, sharding=Sharding(tp=8.0))
    assert columns[1] == pytest.approx(alone)  # type: ignore[index]


def test_unknown_modules_or_recompute_are_errors(llama: Model) -> None:
    with pytest.raises(UnknownNameError, match="megatron"):
        Saving(modules="megatronlm")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="selective"):
        layer_tensors(llama, llama.layers[0], recompute="selectiv")  # type: ignore[arg-type]

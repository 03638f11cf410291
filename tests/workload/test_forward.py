import numpy as np
import pytest

from datahall.catalog.entries.model import Model
from datahall.errors import UnknownNameError
from datahall.workload.forward import forward_pass, mixed_pass
from datahall.workload.operator import (
    Attention,
    Gemm,
    GroupedGemm,
    Operator,
    total_flop,
    total_weight_bytes,
)
from datahall.workload.parameters import count_parameters
from datahall.workload.precision import Precision
from datahall.workload.sharding import Sharding
from datahall.workload.step import Chunk


def named(operators: tuple[Operator, ...], name: str) -> Operator:
    found = [one for one in operators if one.name == name]
    assert found, f"no {name} in {[one.name for one in operators]}"
    return found[0]


def test_a_dense_decode_has_the_shapes_of_the_model(llama: Model) -> None:
    step = forward_pass(llama, batch=4, query=1, past=1023, sharding=Sharding(tp=2))
    assert named(step, "qkv").shape == Gemm(4, (32 + 16) * 128 / 2, 4096)
    assert named(step, "attention_output").shape == Gemm(4, 4096, 4096 / 2)
    assert named(step, "gate_up").shape == Gemm(4, 2 * 14336 / 2, 4096)
    assert named(step, "down").shape == Gemm(4, 4096, 14336 / 2)
    assert named(step, "head").shape == Gemm(4, 128256 / 2, 4096)
    assert named(step, "attention").shape == Attention(4, 1, 1024, 16, 4, 128, 128)
    assert {one.count for one in step if one.name not in ("embedding", "final_norm", "head")} == {32}


def test_gemm_traffic_is_each_operand_once(llama: Model) -> None:
    down = named(forward_pass(llama, batch=8, query=1, past=100), "down")
    assert down.read_bytes == 2 * (8 * 14336 + 14336 * 4096)
    assert down.write_bytes == 2 * 8 * 4096
    assert down.weight_bytes == 2 * 14336 * 4096


def test_grouped_queries_read_each_kv_head_once(llama: Model) -> None:
    attention = named(forward_pass(llama, batch=3, query=1, past=999), "attention")
    assert attention.read_bytes == 2 * (3 * 32 * 128 + 3 * 1000 * 2 * 8 * 128)
    assert attention.flop == 3 * 1000 * 4 * 32 * 128


def test_the_cache_is_read_in_its_own_format(llama: Model) -> None:
    wide = named(forward_pass(llama, batch=1, query=1, past=8191), "attention")
    narrow = named(
        forward_pass(llama, batch=1, query=1, past=8191, precision=Precision.named("fp8-kv8")), "attention"
    )
    queries = 2 * 32 * 128
    assert narrow.read_bytes - queries == (wide.read_bytes - queries) / 2
    assert (narrow.precision, narrow.weight_precision) == ("bf16", "fp8")


def test_fp8_multiplies_linear_layers_and_leaves_the_rest_wide(llama: Model, mixtral: Model) -> None:
    for model in (llama, mixtral):
        step = forward_pass(model, batch=64, query=1, past=100, precision=Precision.named("fp8"))
        linear = {one.name: one.precision for one in step if isinstance(one.shape, (Gemm, GroupedGemm))}
        wide = {name for name, precision in linear.items() if precision == "bf16"}
        assert wide == {"head", "router"} & set(linear)


def test_casts_to_fp8_are_kernels_that_can_be_left_out(llama: Model) -> None:
    fp8 = Precision.named("fp8")
    casts = [one for one in forward_pass(llama, batch=8, query=1, precision=fp8) if "quantise" in one.name]
    assert [one.name for one in casts] == [
        "qkv_quantise",
        "attention_output_quantise",
        "gate_up_quantise",
        "down_quantise",
    ]
    assert casts[0].read_bytes == 2 * casts[0].write_bytes == 2 * 8 * 4096
    fused = forward_pass(llama, batch=8, query=1, precision=fp8, quantise=False)
    assert not [one for one in fused if "quantise" in one.name]
    weight_only = forward_pass(llama, batch=8, query=1, precision=Precision.named("w4a16"))
    assert not [one for one in weight_only if "quantise" in one.name]


def test_four_bit_weights_are_streamed_and_multiplied_in_sixteen(llama: Model) -> None:
    down = named(forward_pass(llama, batch=1, query=1, precision=Precision.named("w4a16")), "down")
    assert (down.precision, down.weight_precision) == ("bf16", "int4")
    assert down.weight_bytes == (0.5 + 2 / 128) * 14336 * 4096


def test_lean_kernels_move_more_than_fused_ones(llama: Model) -> None:
    fused = forward_pass(llama, batch=16, query=1)
    lean = forward_pass(llama, batch=16, query=1, fusion="lean")
    element = 16 * 14336 * 2
    assert named(fused, "activation").read_bytes == 2 * element
    assert named(lean, "activation").read_bytes == 3 * element
    assert named(lean, "mixer_norm").shape.num_kernels == 2  # type: ignore[union-attr]
    assert named(fused, "mixer_norm").shape.num_kernels == 1  # type: ignore[union-attr]
    with pytest.raises(UnknownNameError, match="lean"):
        forward_pass(llama, batch=1, query=1, fusion="leen")


def test_logits_on_the_last_token_on_all_or_on_none(llama: Model) -> None:
    assert named(forward_pass(llama, batch=3, query=50), "head").shape.m == 3  # type: ignore[union-attr]
    assert named(forward_pass(llama, batch=3, query=50, logits="all"), "head").shape.m == 150  # type: ignore[union-attr]
    stage = forward_pass(llama, batch=3, query=50, logits="none", embed=False)
    assert {one.name for one in stage} & {"head", "final_norm", "embedding"} == set()


def test_sequence_parallel_splits_norms_only(llama: Model) -> None:
    plain = forward_pass(llama, batch=1, query=512, sharding=Sharding(tp=4))
    split = forward_pass(llama, batch=1, query=512, sharding=Sharding(tp=4, sequence_parallel=True))
    assert named(split, "mlp_norm").read_bytes == named(plain, "mlp_norm").read_bytes / 4
    assert total_flop(split) == total_flop(plain)


def test_experts_see_their_copies_and_only_those_hit_are_read(mixtral: Model) -> None:
    step = forward_pass(mixtral, batch=1, query=1, past=100)
    gate_up = named(step, "expert_gate_up")
    assert gate_up.shape == GroupedGemm(2, 8, 2 * 14336, 4096)
    assert gate_up.weight_bytes == pytest.approx(2 * 2 * (2 * 14336 * 4096))
    many = named(forward_pass(mixtral, batch=4096, query=1, past=100), "expert_gate_up")
    assert many.weight_bytes == pytest.approx(8 * 2 * (2 * 14336 * 4096))


@pytest.mark.parametrize(("tp", "ep"), [(1, 8), (8, 8), (8, 1), (4, 2), (2, 8)])
def test_expert_work_of_all_chips_is_the_work_of_all_batches(mixtral: Model, tp: int, ep: int) -> None:
    whole = named(forward_pass(mixtral, batch=64, query=16), "expert_down")
    part = named(forward_pass(mixtral, batch=64, query=16, sharding=Sharding(tp=tp, ep=ep)), "expert_down")
    chips, batches = max(tp, ep), max(ep // tp, 1)
    assert part.flop * chips == pytest.approx(whole.flop * batches)


def test_latent_attention_decodes_in_the_latent_and_prefills_in_full_heads(deepseek: Model) -> None:
    decode = forward_pass(deepseek, batch=2, query=1, past=4095)
    core = named(decode, "attention")
    assert core.shape == Attention(2, 1, 4096, 128, 1, 576, 512)
    assert core.read_bytes == 2 * (2 * 128 * 576 + 2 * 4096 * 576)
    assert named(decode, "absorb_q").shape == GroupedGemm(2 * 128, 128, 512, 128, batched=True)
    assert named(decode, "absorb_v").shape == GroupedGemm(2 * 128, 128, 128, 512, batched=True)
    prefill = forward_pass(deepseek, batch=2, query=64, past=32)
    assert named(prefill, "attention").shape == Attention(2, 64, 96, 128, 128, 192, 128)
    assert named(prefill, "kv_up").shape == Gemm(2 * 96, 128 * 256, 512)
    assert named(prefill, "qkv_down").shape == Gemm(128, 1536 + 576, 7168)


def test_absorbing_moves_weights_but_keeps_their_number(deepseek: Model) -> None:
    def weights(latent: str) -> float:
        step = forward_pass(deepseek, batch=1, query=1, latent=latent)  # type: ignore[arg-type]
        return float(total_weight_bytes([one for one in step if "expert" not in one.name]))

    assert weights("absorbed") == weights("expanded")


def test_dp_attention_gives_each_chip_its_sequences_and_whole_heads(deepseek: Model) -> None:
    sharding = Sharding(tp=8, ep=8, dp_attention=True)
    step = forward_pass(deepseek, batch=64, query=1, past=1000, sharding=sharding)
    assert named(step, "attention").shape == Attention(8, 1, 1001, 128, 1, 576, 512)
    assert named(step, "attention_output").shape == Gemm(8, 7168, 128 * 128)
    assert named(step, "expert_down").shape == GroupedGemm(64 * 8 / 8, 256 / 8, 7168, 2048)


def test_window_layers_see_their_window(gemma: Model) -> None:
    cores = [one for one in forward_pass(gemma, batch=1, query=1, past=32767) if one.name == "attention"]
    far = next(one for one in cores if one.shape.window == 0)  # type: ignore[union-attr]
    near = next(one for one in cores if one.shape.window == 1024)  # type: ignore[union-attr]
    assert (near.count, far.count) == (52, 10)
    assert far.flop == 32 * near.flop
    assert near.read_bytes == 2 * (32 * 128 + 1024 * 2 * 16 * 128)


def test_recurrent_layers_cost_the_same_at_any_context(qwen_next: Model) -> None:
    early = named(forward_pass(qwen_next, batch=4, query=1, past=10), "conv_scan")
    late = named(forward_pass(qwen_next, batch=4, query=1, past=100_000), "conv_scan")
    assert early.read_bytes == late.read_bytes
    assert early.count == 36
    assert early.read_bytes > 4 * 32 * 128 * 128 * 4


def test_a_mixed_step_shares_its_gemms_and_splits_its_attention(llama: Model) -> None:
    chunks = (Chunk(32, 1, 1000), Chunk(1, 480, 0))
    step = mixed_pass(llama, chunks)
    assert named(step, "qkv").shape.m == 512  # type: ignore[union-attr]
    cores = [one for one in step if one.name == "attention"]
    alone = [
        named(forward_pass(llama, batch=c.batch, query=c.query, past=c.past), "attention") for c in chunks
    ]
    assert cores == alone
    assert named(step, "head").shape.m == 33  # type: ignore[union-attr]


def test_the_weights_of_a_pass_are_the_parameters_of_the_model(model: Model) -> None:
    step = forward_pass(model, batch=1e6, query=1, logits="all", latent="expanded")
    streamed = total_weight_bytes([one for one in step if one.name != "embedding"]) / 2
    counts = count_parameters(model)
    looked_up = 0 if model.tied_embeddings else counts.embedding
    assert streamed == pytest.approx(counts.total - looked_up, rel=2e-3)


def test_a_part_of_a_pass_is_that_part_of_the_whole(
    llama: Model, deepseek: Model, mixtral: Model, gemma: Model, qwen_next: Model
) -> None:
    for model in (llama, deepseek, mixtral, gemma, qwen_next):
        asked = {"batch": 3.0, "query": 1.0, "past": 700.0, "precision": Precision.named("fp8")}
        whole = [repr(one) for one in forward_pass(model, **asked)]  # type: ignore[arg-type]
        mixers, head = (
            [repr(one) for one in forward_pass(model, **asked, part=part)]  # type: ignore[arg-type]
            for part in ("mixers", "head")
        )
        assert whole[-len(head) :] == head
        assert [one for one in whole if one in mixers] == mixers
        names = {one.name for one in forward_pass(model, **asked, part="mixers")}  # type: ignore[arg-type]
        assert names & {"attention", "conv_scan"}
        assert not any(name.startswith(("expert_", "gate", "down", "embedding")) for name in names)


def test_a_hundred_thousand_layouts_are_one_call(llama: Model) -> None:
    count = 100_000
    tp = np.tile([1.0, 2.0, 4.0, 8.0], count // 4)
    batch = np.arange(1.0, count + 1)
    flop = total_flop(forward_pass(llama, batch=batch, query=1, past=1000, sharding=Sharding(tp=tp)))
    assert np.shape(flop) == (count,)
    alone = total_flop(forward_pass(llama, batch=batch[6], query=1, past=1000, sharding=Sharding(tp=4.0)))
    assert flop[6] == alone  # type: ignore[index]

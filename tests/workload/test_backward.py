import pytest

from datahall.catalog.entries.model import Model
from datahall.workload.backward import Gradients, backward_pass, training_pass
from datahall.workload.forward import forward_pass
from datahall.workload.operator import Attention, Gemm, GroupedGemm, Operator, total_flop
from datahall.workload.precision import Precision


def named(operators: tuple[Operator, ...], name: str) -> Operator:
    return next(one for one in operators if one.name == name)


def matmuls(operators: tuple[Operator, ...]) -> list[Operator]:
    return [one for one in operators if isinstance(one.shape, (Gemm, GroupedGemm))]


def test_each_gemm_has_two_gradients_of_its_own_size(model: Model) -> None:
    forward = forward_pass(model, batch=2, query=256, logits="all", cached=False, latent="expanded")
    backward = backward_pass(model, batch=2, seq=256)
    assert total_flop(matmuls(backward)) == pytest.approx(2 * total_flop(matmuls(forward)))


def test_gradient_shapes_are_the_transposed_products(llama: Model) -> None:
    backward = backward_pass(llama, batch=1, seq=128)
    assert named(backward, "down_dgrad").shape == Gemm(128, 14336, 4096)
    assert named(backward, "down_wgrad").shape == Gemm(14336, 4096, 128)
    wgrad = named(backward, "down_wgrad")
    assert wgrad.write_bytes == 4 * 14336 * 4096
    assert wgrad.read_bytes == 2 * 128 * (14336 + 4096) + wgrad.write_bytes
    once = backward_pass(llama, batch=1, seq=128, gradients=Gradients(value_bytes=2, accumulate=False))
    assert named(once, "down_wgrad").read_bytes == 2 * 128 * (14336 + 4096)


def test_expert_gradients_are_grouped_too(mixtral: Model) -> None:
    backward = backward_pass(mixtral, batch=4, seq=256)
    wgrad = named(backward, "expert_down_wgrad").shape
    assert wgrad == GroupedGemm(14336 * 8, 8, 4096, 4 * 256 * 2 / 8)


@pytest.mark.parametrize(("flash", "ratio"), [(True, 2.5), (False, 2.0)])
def test_attention_backward(llama: Model, flash: bool, ratio: float) -> None:
    forward = named(forward_pass(llama, batch=1, query=512, cached=False), "attention")
    backward = named(
        backward_pass(llama, batch=1, seq=512, gradients=Gradients(flash=flash)), "attention_backward"
    )
    assert backward.flop == ratio * forward.flop
    assert backward.write_bytes == forward.read_bytes


def test_full_recompute_adds_one_forward_of_the_layers(llama: Model) -> None:
    forward = forward_pass(llama, batch=1, query=512, cached=False, logits="none")
    plain = total_flop(backward_pass(llama, batch=1, seq=512))
    full = total_flop(backward_pass(llama, batch=1, seq=512, recompute="full"))
    assert full - plain == pytest.approx(total_flop(forward))


def test_selective_recompute_adds_the_attention_core(llama: Model) -> None:
    core = [
        one
        for one in forward_pass(llama, batch=1, query=512, cached=False)
        if isinstance(one.shape, Attention)
    ]
    plain = total_flop(backward_pass(llama, batch=1, seq=512))
    selective = total_flop(backward_pass(llama, batch=1, seq=512, recompute="selective"))
    assert selective - plain == pytest.approx(total_flop(core))


def test_every_operator_of_backward_says_so(model: Model) -> None:
    backward = backward_pass(model, batch=1, seq=64, recompute="full")
    assert all(one.backward for one in backward)
    step = training_pass(model, batch=1, seq=64, recompute="full")
    assert [one for one in step if one.backward] == list(backward)
    assert [one.name for one in step if one.name == "loss"] == ["loss"]


def test_fp8_gradients_are_cast_before_the_linear_layers_only(llama: Model) -> None:
    backward = backward_pass(llama, batch=1, seq=64, precision=Precision.named("fp8"))
    casts = {one.name.removesuffix("_gradient_quantise") for one in backward if "quantise" in one.name}
    assert casts == {"qkv", "attention_output", "gate_up", "down"}
    assert named(backward, "head_dgrad").precision == "bf16"
    assert named(backward, "down_dgrad").precision == "fp8"


def test_a_pipeline_stage_has_no_embedding_head_or_loss(llama: Model) -> None:
    names = {one.name for one in training_pass(llama, batch=1, seq=64, embed=False, head=False)}
    assert not names & {"embedding", "embedding_backward", "head", "head_wgrad", "loss", "final_norm"}

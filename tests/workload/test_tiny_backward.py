"""Every operator of a training pass, worked out by hand: three sequences of five tokens on one of two chips.

Fifteen tokens; a causal token sees 1, 2, 3, 4 or 5 tokens, 45 pairs in all.  A product Y = X·W of m × k by k × n reads
dY and W for dX; dY, X and, since it adds up, its own fp32 sum for dW.  A row reads: name, count, FLOP, bytes read,
written, and of weights among those read.
"""

from __future__ import annotations

import pytest
from tests.workload.tiny import FULL, MLA, MOE, RECURRENT, Row, table, tiny

from datahall.catalog.entries.model import Layer, Model
from datahall.workload.backward import Gradients, backward_pass, training_pass
from datahall.workload.operator import Operator, Stream
from datahall.workload.precision import Precision
from datahall.workload.sharding import Sharding

TWO = Sharding(tp=2.0)
FP8 = Precision.named("fp8")


def trained(model: Model, **changes: object) -> tuple[Operator, ...]:
    return training_pass(model, batch=3.0, seq=5.0, sharding=TWO, **changes)  # type: ignore[arg-type]


def rows(operators: tuple[Operator, ...]) -> dict[str, Row]:
    return {row[0]: row for row in table(operators)}


def test_forward_loss_and_backward_of_a_dense_layer() -> None:
    assert table(trained(tiny(FULL)))[1:] == [
        ("mixer_norm", 1, 0, 480, 480, 0),
        ("qkv", 1, 1920, 368, 240, 128),
        ("rope", 1, 0, 180, 180, 0),
        ("attention", 1, 2 * 45 * 2 * 4, 120 + 2 * 3 * 5 * 4, 120, 0),
        ("attention_output", 1, 960, 184, 240, 64),
        ("mlp_norm", 1, 0, 480, 480, 0),
        ("gate_up", 1, 2880, 432, 360, 192),
        ("activation", 1, 0, 360, 180, 0),
        ("down", 1, 1440, 276, 240, 96),
        ("final_norm", 1, 0, 240, 240, 0),
        ("head", 1, 2400, 400, 300, 160),
        ("loss", 1, 0, 300, 300, 0),  # 15 tokens · 10 logits of two bytes
        ("head_dgrad", 1, 2400, 2 * 150 + 160, 240, 160),
        ("head_wgrad", 1, 2400, 2 * 15 * (10 + 8) + 320, 320, 0),
        ("final_norm_backward", 1, 0, 2 * 240, 240, 0),
        ("down_dgrad", 1, 1440, 240 + 96, 180, 96),
        ("down_wgrad", 1, 1440, 2 * 15 * (8 + 6) + 192, 192, 0),
        ("activation_backward", 1, 0, 360 + 180, 360, 0),
        ("gate_up_dgrad", 1, 2880, 360 + 192, 240, 192),
        ("gate_up_wgrad", 1, 2880, 2 * 15 * (12 + 8) + 384, 384, 0),
        ("mlp_norm_backward", 1, 0, 3 * 240, 240, 0),
        ("attention_output_dgrad", 1, 960, 240 + 64, 120, 64),
        ("attention_output_wgrad", 1, 960, 2 * 15 * (8 + 4) + 128, 128, 0),
        # 2.5 times forward; in: q, k, v, output and its gradient; out: gradients of q, k and v
        ("attention_backward", 1, 1800, 240 + 2 * 120, 240, 0),
        ("rope_backward", 1, 0, 180, 180, 0),
        ("qkv_dgrad", 1, 1920, 240 + 128, 240, 128),
        ("qkv_wgrad", 1, 1920, 2 * 15 * (8 + 8) + 256, 256, 0),
        ("mixer_norm_backward", 1, 0, 3 * 240, 240, 0),
        # half of 15 rows of 8 lie in this half of the table: 60 fp32 sums in and out, and 15 rows of the gradient
        ("embedding_backward", 1, 0, 240 + 240, 240, 0),
    ]


def test_casts_of_gradients_with_and_without_transposes() -> None:
    """dY of 15 × 8 is cast for dX (120 bytes); turned copies of dY and of X, 15 × 6, for dW (120 + 90)."""
    turned = rows(trained(tiny(FULL), precision=FP8))
    assert turned["down_gradient_quantise"] == ("down_gradient_quantise", 1, 0, 240 + 90, 120 + 120 + 90, 0)
    assert turned["down_dgrad"] == ("down_dgrad", 1, 1440, 120 + 48, 180, 48)
    assert turned["down_wgrad"] == ("down_wgrad", 1, 1440, 15 * (8 + 6) + 192, 192, 0)
    straight = rows(trained(tiny(FULL), precision=FP8, gradients=Gradients(transposes=False)))
    assert straight["down_gradient_quantise"][3:5] == (240, 120)
    shapes = {}
    for transposes in (True, False):
        gradients = Gradients(transposes=transposes)
        made = backward_pass(tiny(FULL), batch=3.0, seq=5.0, precision=FP8, gradients=gradients)
        shapes[transposes] = next(one.shape for one in made if one.name == "down_gradient_quantise")
    assert shapes == {True: Stream(2.0), False: Stream(1.0)}
    assert "down_gradient_quantise" not in rows(
        trained(tiny(FULL), precision=FP8, gradients=Gradients(quantise=False))
    )


def test_products_that_stay_wide_read_wide_gradients() -> None:
    narrow = rows(trained(tiny(FULL), precision=FP8))
    assert narrow["head_dgrad"] == ("head_dgrad", 1, 2400, 460, 240, 160)
    assert "head_gradient_quantise" not in narrow


def test_gradients_of_layers_are_counted_like_the_layers() -> None:
    backward = backward_pass(tiny(FULL, FULL, FULL), batch=1.0, seq=4.0, precision=FP8)
    assert {one.count for one in backward if "down" in one.name} == {3.0}


@pytest.mark.parametrize(
    ("fusion", "norm", "add_norm", "loss"),
    [
        ("lean", (480, 240), (960, 480), (7 * 300, 4 * 300)),
        ("eager", (5760, 3600), (6240, 3840), (900, 1200)),
    ],
)
def test_backward_of_norms_and_loss_follows_the_style(
    fusion: str, norm: tuple[int, int], add_norm: tuple[int, int], loss: tuple[int, int]
) -> None:
    """An element of the stream is 240 bytes of 15 × 8: lean norms read 2 and write 1, with an addition 4 and 2;
    eager ones 24 and 15, with an addition 26 and 16."""
    found = rows(trained(tiny(FULL), fusion=fusion))
    assert found["final_norm_backward"][3:5] == norm
    assert found["mixer_norm_backward"][3:5] == found["mlp_norm_backward"][3:5] == add_norm
    assert found["loss"][3:5] == loss
    again = {"lean": (4 * 300, 3 * 300), "eager": (6 * 300, 5 * 300)}[fusion]
    assert found["loss_backward"][3:5] == again
    kernels = {
        one.name: one.shape.num_kernels
        for one in trained(tiny(FULL), fusion=fusion)
        if isinstance(one.shape, Stream)
    }
    assert kernels["loss_backward"] == {"lean": 2, "eager": 3}[fusion]
    assert kernels["final_norm_backward"] == {"lean": 1, "eager": 15}[fusion]


def test_a_fused_loss_leaves_its_gradient_in_place() -> None:
    assert "loss_backward" not in rows(trained(tiny(FULL)))


def test_a_stage_without_the_head_has_no_loss_to_undo() -> None:
    names = rows(trained(tiny(FULL), fusion="lean", head=False, embed=False))
    assert not {"loss", "loss_backward", "head", "head_dgrad", "embedding", "embedding_backward"} & set(names)


def test_context_parallelism_cuts_the_logits() -> None:
    cut = training_pass(tiny(FULL), batch=3.0, seq=6.0, sharding=Sharding(tp=2.0, cp=3.0))
    assert rows(cut)["loss"][3] == 6 * 10 * 2


def test_gradients_of_experts() -> None:
    """15 copies at two experts of 8 × 6: dW of both is 96 sums."""
    found = rows(trained(tiny(Layer(mixer="full", mlp="moe"), moe=MOE)))
    hit = 4 * (1 - 0.5**15)
    down = found["expert_down_wgrad"]
    assert down[2:5] == (2 * 30 * 8 * 3, 2 * 30 * (8 + 3) + 4 * 4 * 24, 4 * 4 * 24)
    assert found["expert_down_dgrad"][3] == pytest.approx(2 * 30 * 8 + hit * 24 * 2)
    # scattered and gathered rows come back the way they went, and the scores with them
    assert found["combine_backward"][3:5] == (480 + 240, 480)


def test_a_scan_is_undone_by_kernels_of_its_own() -> None:
    """Per token 6 values, 5 of two keys, 30/128 of a state, 128 scores: 20, 14, 20, 16 bytes in, 2, 16, 14, 8 out."""
    found = rows(trained(tiny(Layer(mixer="linear", mlp="dense"), recurrent=RECURRENT)))
    state = 30 / 128
    assert found["scan_backward"] == (
        "scan_backward", 1, 2 * 15 * 338, 15 * (120 + 70 + 20 * state + 2048), 15 * (12 + 80 + 14 * state + 1024), 0,
    )  # fmt: skip
    assert found["convolution_backward"][3:5] == (960, 480)


@pytest.mark.parametrize(
    ("model", "not_again"),
    [
        (tiny(FULL, embedding_norm=True), {"embedding", "embedding_norm", "final_norm", "head", "loss"}),
        (tiny(Layer(mixer="mla", mlp="dense"), mla=MLA), {"embedding", "final_norm", "head", "loss"}),
    ],
)
def test_full_recomputation_runs_every_kernel_of_the_layers_again(model: Model, not_again: set[str]) -> None:
    found = trained(model, recompute="full")
    forward = {row[0]: row for row in table([one for one in found if not one.backward])}
    again = {
        row[0].removesuffix("_recompute"): row
        for row in table([one for one in found if one.name.endswith("_recompute")])
    }
    assert set(forward) - set(again) == not_again
    for name, row in again.items():
        assert row[1:] == forward[name][1:]
    selective = {one.name for one in trained(model, recompute="selective") if "_recompute" in one.name}
    assert selective == {"attention_recompute"}

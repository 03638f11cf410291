"""One training step: what each part must do when the layout changes."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from datahall.catalog import load
from datahall.cluster.cluster import Cluster, cluster_of
from datahall.cluster.groups import group_times
from datahall.errors import ScenarioError, UnknownNameError
from datahall.training.adapters.adapters import Adapters
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.step.framework import framework, frameworks
from datahall.training.step.micro_batch import micro_batch_operators, sharding_of
from datahall.training.step.step import Job, kernel_times, operator_times, step_times
from datahall.workload.precision import Precision

LORA = Adapters(rank=16, targets="attention")

GPT3 = Job(model=load().model("gpt-3-175b"), seq=2048, global_batch=1536)


@pytest.fixture
def selene() -> Cluster:
    return cluster_of(load().chip("a100-sxm-80gb"), 512)


def step_s(job: Job, cluster: Cluster, layout: Layout, kit: str = "megatron-2022") -> float:
    return float(step_times(job, cluster, Space.of(layout), framework(kit)).step_s[0])


BASE = Layout(tp=8, pp=8, dp=8, micro_batch=1, recompute="full", sequence_parallel=False)


def test_a_space_gives_what_each_layout_gives_alone(selene: Cluster) -> None:
    layouts = [msgspec.structs.replace(BASE, micro_batch=b, vpp=v) for b in (1, 2, 4) for v in (1, 2)]
    together = step_times(GPT3, selene, Space.of(layouts), framework("megatron-2022")).step_s
    alone = [step_s(GPT3, selene, layout) for layout in layouts]
    assert together == pytest.approx(alone, rel=1e-12)


def test_the_parts_add_up_to_the_step(selene: Cluster) -> None:
    times = step_times(GPT3, selene, Space.of(BASE), framework("megatron-2022"))
    total = times.slot_s * times.num_micro + times.bubble_s + times.data_s + times.optimizer_s + times.fixed_s
    slowest = 1 + framework("megatron-2022").jitter * np.log(512)
    assert times.step_s == pytest.approx(total * slowest)


def test_virtual_stages_shrink_the_bubble(selene: Cluster) -> None:
    kit = framework("megatron-2022")
    plain = step_times(GPT3, selene, Space.of(BASE), kit)
    virtual = step_times(GPT3, selene, Space.of(msgspec.structs.replace(BASE, vpp=3)), kit)
    assert virtual.bubble_s[0] < plain.bubble_s[0] / 2


def test_full_recompute_costs_about_one_forward_more(selene: Cluster) -> None:
    none = step_s(GPT3, selene, msgspec.structs.replace(BASE, recompute="none"))
    full = step_s(GPT3, selene, BASE)
    assert 1.2 < full / none < 1.4


def test_tensor_parallelism_that_leaves_the_node_is_slow(selene: Cluster) -> None:
    inside = step_s(GPT3, selene, msgspec.structs.replace(BASE, tp=8, pp=8, dp=8))
    across = step_s(GPT3, selene, msgspec.structs.replace(BASE, tp=16, pp=4, dp=8))
    assert across > 1.2 * inside


def test_weak_scaling_is_nearly_flat() -> None:
    chip = load().chip("h100-sxm")
    model = load().model("llama-3.1-70b")
    small = Job(model=model, seq=8192, global_batch=128)
    large = msgspec.structs.replace(small, global_batch=4096)
    layout = Layout(tp=4, pp=4, vpp=5, cp=2, dp=2)
    near = step_s(small, cluster_of(chip, 64), layout, "nemo")
    far = step_s(large, cluster_of(chip, 2048), msgspec.structs.replace(layout, dp=64), "nemo")
    assert near < far < 1.1 * near


def test_adapters_skip_the_gradients_of_the_weights(selene: Cluster) -> None:
    adapters = msgspec.structs.replace(GPT3, adapters=LORA)
    assert step_s(adapters, selene, BASE) < 0.85 * step_s(GPT3, selene, BASE)


def test_fp8_is_faster_but_not_twice() -> None:
    cluster, layout = (
        cluster_of(load().chip("h100-sxm"), 512),
        msgspec.structs.replace(BASE, recompute="none"),
    )
    wide = step_s(GPT3, cluster, layout, "nemo")
    narrow = step_s(msgspec.structs.replace(GPT3, precision=Precision.named("fp8")), cluster, layout, "nemo")
    assert 1.1 < wide / narrow < 2.0


def test_one_rank_exchanges_nothing(selene: Cluster) -> None:
    once = group_times(selene.system, "all-reduce", np.array([1e9]), np.array([1.0]), np.array([1.0]))
    assert once.tolist() == [0.0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tp": 7}, "tp 7"),
        ({"pp": 0}, "at least 1"),
        ({"dp": 9}, "chips, not 512"),
        ({"vpp": 13}, "layers"),
        ({"micro_batch": 5}, "does not divide 1,536"),
    ],
)
def test_an_illegal_layout_names_its_rule(change: dict[str, int], words: str) -> None:
    layout = msgspec.structs.replace(BASE, **change)
    with pytest.raises(ScenarioError, match=words):
        layout.check(GPT3.model, 512, 1536)


def test_an_unknown_framework_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="megatron-2022"):
        framework("megatron-2023")


def test_every_framework_says_what_it_was_fitted_on() -> None:
    for kit in frameworks().values():
        assert kit.fitted_on
        assert kit.band[0] < 1 < kit.band[1] or kit.name in {"megatron-deepspeed"}


def test_adapters_have_next_to_nothing_to_update_or_exchange(selene: Cluster) -> None:
    kit, space = framework("megatron-2022"), Space.of(BASE)
    whole = step_times(GPT3, selene, space, kit)
    adapters = step_times(msgspec.structs.replace(GPT3, adapters=LORA), selene, space, kit)
    assert adapters.optimizer_s[0] < 0.01 * whole.optimizer_s[0]
    assert adapters.data_s[0] < 0.01 * whole.data_s[0]


def test_wider_gradients_take_longer_to_add_up_unless_they_are_sharded(selene: Cluster) -> None:
    kit = framework("megatron-2022")
    wide = msgspec.structs.replace(kit, gradient_bytes=4.0)
    for zero, slower in ((1, True), (3, False)):
        space = Space.of(msgspec.structs.replace(BASE, zero=zero))
        found = kernel_times(GPT3, selene, space, wide)[0] - kernel_times(GPT3, selene, space, kit)[0]
        assert (found[0] > 0) == slower


@pytest.mark.parametrize(("kit", "ratio"), [("nemo", 3.0), ("megatron-2022", 2.0)])
def test_attention_takes_longer_backward_than_forward(kit: str, ratio: float, selene: Cluster) -> None:
    job = Job(model=load().model("llama-3.1-8b"), seq=8192, global_batch=8)
    operators = micro_batch_operators(job, framework(kit), sharding_of(Layout(tp=8)), 1.0, "full")
    times = {one.name: float(total) for one, total in operator_times(job, selene, operators, framework(kit))}
    assert times["attention_backward"] == pytest.approx(ratio * times["attention"])
    assert times["attention_recompute"] == pytest.approx(times["attention"])


def test_predicting_further_ahead_runs_the_head_again_and_not_the_embedding(selene: Cluster) -> None:
    space, kit = Space.of(BASE), framework("megatron-2022")
    once, twice = (
        kernel_times(msgspec.structs.replace(GPT3, num_ahead=ahead), selene, space, kit) for ahead in (0, 1)
    )
    assert twice[0] == once[0]
    assert 1.8 * once[1] < twice[1] < 2.0 * once[1]


def test_a_narrow_head_is_faster() -> None:
    fp8 = msgspec.structs.replace(GPT3, precision=Precision.named("fp8"))
    narrow = msgspec.structs.replace(fp8, narrow_head=True)
    gb200, layout = cluster_of(load().chip("gb200"), 8), Space.of(Layout(dp=8))
    wide_s, narrow_s = (kernel_times(job, gb200, layout, framework("nemo"))[1][0] for job in (fp8, narrow))
    assert 0.4 * wide_s < narrow_s < 0.8 * wide_s


def test_wide_heads_hold_attention_back_on_the_chips_where_that_was_measured() -> None:
    job = Job(model=load().model("deepseek-v3"), seq=32768, global_batch=8)
    shares = {}
    for name in ("b200-sxm", "h200-sxm"):
        chip = cluster_of(load().chip(name), 8)
        operators = micro_batch_operators(
            job, framework("nemo"), sharding_of(Layout(ep=8, dp=8)), 1.0, "none"
        )
        bare = msgspec.structs.replace(framework("nemo"), compute_factor=1.0)
        for one, total in operator_times(job, chip, operators, bare):
            if one.name.startswith("attention") and "output" not in one.name:
                rate = float(one.flop * one.count / total)
                shares[name, one.backward] = rate / chip.chip.peak("bf16")
    assert shares["b200-sxm", False] == pytest.approx(0.40)
    assert shares["b200-sxm", True] == pytest.approx(0.31)
    assert shares["h200-sxm", False] > 0.5


def test_a_chip_casts_only_its_own_tokens_under_sequence_parallelism() -> None:
    job = msgspec.structs.replace(GPT3, precision=Precision.named("fp8"))

    def cast_bytes(parallel: bool, name: str) -> float:
        sharding = sharding_of(Layout(tp=8, sequence_parallel=parallel))
        operators = micro_batch_operators(job, framework("nemo"), sharding, 1.0, "none")
        return next(float(one.read_bytes) for one in operators if one.name == name)

    assert cast_bytes(True, "qkv_quantise") == cast_bytes(False, "qkv_quantise") / 8
    assert cast_bytes(True, "down_quantise") == cast_bytes(False, "down_quantise")


@pytest.mark.parametrize(
    ("chip", "precision", "adapters", "copies"),
    [
        ("h100-sxm", "fp8", False, 2),
        ("b200-sxm", "fp8", False, 1),
        ("b200-sxm", "mxfp8", False, 2),
        ("h100-sxm", "fp8", True, 1),
    ],
)
def test_gradients_are_copied_the_other_way_round_where_products_need_it(
    chip: str, precision: str, adapters: bool, copies: int
) -> None:
    job = msgspec.structs.replace(
        GPT3,
        precision=Precision.named(precision),
        adapters=LORA if adapters else None,
    )
    operators = micro_batch_operators(
        job, framework("nemo"), sharding_of(Layout()), 1.0, "none", chip=load().chip(chip)
    )
    cast = next(one for one in operators if one.name == "up_gradient_quantise")
    tokens, wide, narrow = 2048.0, 4 * 12288.0, 12288.0
    moved = tokens * (copies * wide + (copies - 1) * narrow) * job.precision.activation_bytes_per_value
    assert cast.write_bytes == pytest.approx(moved)

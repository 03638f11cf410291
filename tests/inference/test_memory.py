"""The memory of a replica worked out by hand on a model of four small layers."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.catalog import Catalog
from datahall.catalog.entries.model import Layer, Mla, Model, Moe, Recurrent
from datahall.errors import InfeasibleError, ScenarioError, spelled
from datahall.inference.engine.adapters import first_token_s, projections, resident_bytes
from datahall.inference.engine.disaggregation import LINK_SHARE, SETUP_S, handoff_of
from datahall.inference.engine.engine import engine, engine_on
from datahall.inference.engine.replica import Adapters, Replica, Speculation
from datahall.inference.engine.speculation import (
    draft_model,
    expected_tokens,
    num_verified,
    shares_tables,
    tokens_per_step,
)
from datahall.inference.memory.activation_peak import SAMPLER_BYTES_PER_LOGIT, activation_peak_bytes
from datahall.inference.memory.kv_capacity import kv_capacity
from datahall.inference.memory.kv_pool import KvCapacity, divide_memory, runtime_bytes, weight_bytes
from datahall.inference.memory.offload import drive_bytes_per_s, host_bytes_per_s, lower_tiers, token_bytes
from datahall.inference.memory.remedy import fits, longest_context, remedies
from datahall.inference.step.expert_load import imbalance
from datahall.inference.step.kernels import cache_bytes, sharding_of
from datahall.workload.expert_load import busiest_rank
from datahall.workload.memory.state import serving_weight_bytes
from datahall.workload.parameters import count_parameters
from datahall.workload.precision import Precision

replace = msgspec.structs.replace
Serve = Callable[..., Replica]

FULL, WINDOW = Layer(mixer="full", mlp="dense"), Layer(mixer="window", mlp="dense", window=64)
SMALL = Model(
    name="small", title="", family="", year=2026, num_layers=4, hidden=64, num_heads=8, num_kv_heads=4, head_dim=8,
    ffn=128, vocab=1000, max_context=4096, layers=(FULL,) * 4,
)  # fmt: skip


def small(model: Model = SMALL, *, shelf: Catalog | None = None, **options: object) -> Replica:
    own = {"token_budget": 100, "max_sequences": 2, "reserved_bytes": 0.0}
    own |= {name: options.pop(name) for name in list(options) if name in engine("vllm").__struct_fields__}
    found = replace(engine("vllm"), **own)
    chip = (shelf or Catalog(user=False)).chip("h100-sxm")
    return Replica(model=model, chip=chip, engine=found, **options)  # type: ignore[arg-type]


def widest(model: Model, **options: object) -> float:
    """Values per token of the widest moment of a layer, beside hidden state and residual."""
    peak = activation_peak_bytes(small(model, max_sequences=0, **options))
    return peak / (100 * 2.0) - 2 * model.hidden


MOE = Moe(num_experts=8, top_k=2, expert_ffn=48, shared_ffn=32)
MLA = Mla(q_rank=24, kv_rank=16, nope_head_dim=8, rope_head_dim=4, value_head_dim=6)


@pytest.mark.parametrize(
    ("model", "options", "values"),
    [
        (SMALL, {}, 3 * 128),  # gate, up and their product
        (SMALL, {"tp": 2}, 3 * 64),
        (replace(SMALL, gated_mlp=False), {}, 2 * 128),
        (replace(SMALL, ffn=1), {}, 2 * 64 + 2 * 32),  # queries and output, keys and values
        (replace(SMALL, ffn=1), {"tp": 8}, 2 * 8 + 2 * 8),  # one KV head stays whole
        (replace(SMALL, ffn=1, layers=(WINDOW,) * 4), {}, 192),
        (replace(SMALL, layers=(Layer(mixer="none", mlp="dense"),) * 4), {}, 384),
        (
            replace(SMALL, mla=MLA, layers=(Layer(mixer="mla", mlp="none"),) * 4),
            {},
            8 * (2 * 12 + 2 * 6) + 24 + 16,
        ),
        (replace(SMALL, mla=MLA, layers=(Layer(mixer="mla", mlp="none"),) * 4), {"tp": 4}, 2 * 36 + 40),
        # two copies of a token, each the wider of 2 · 48 and the hidden 64, and their product; 3 · 32 shared
        (replace(SMALL, moe=MOE, layers=(Layer(mixer="none", mlp="moe"),) * 4), {}, 2 * (96 + 48) + 96),
        (
            replace(SMALL, moe=MOE, layers=(Layer(mixer="none", mlp="moe"),) * 4),
            {"tp": 4},
            2 * (64 + 12) + 24,
        ),
        (
            replace(SMALL, moe=MOE, layers=(Layer(mixer="none", mlp="moe"),) * 4),
            {"tp": 4, "ep": 4},
            2 * (96 + 48) + 24,
        ),
        (
            replace(SMALL, moe=MOE, layers=(Layer(mixer="none", mlp="moe"),) * 4),
            {"dp": 4, "ep": 4},
            2 * (96 + 48) + 96,
        ),
        (
            replace(SMALL, moe=MOE, layers=(Layer(mixer="none", mlp="moe"),) * 4),
            {"dp": 4, "ep": 2},
            4 * (64 + 24) + 96,
        ),
        (replace(SMALL, moe=MOE, layers=(FULL, Layer(mixer="full", mlp="moe"), FULL, FULL)), {}, 384),
    ],
)
def test_the_widest_moment_of_a_layer_by_hand(
    model: Model, options: dict[str, object], values: float
) -> None:
    assert widest(model, **options) == pytest.approx(values)


def test_recurrent_layers_hold_their_heads_and_keys() -> None:
    part = Recurrent(num_heads=6, head_dim=10, num_key_heads=2, key_dim=7, conv_width=4)
    model = replace(SMALL, ffn=1, recurrent=part, layers=(Layer(mixer="linear", mlp="dense"),) * 4)
    assert widest(model) == pytest.approx(4 * 60 + 2 * 14)
    assert widest(model, tp=2) == pytest.approx((4 * 60 + 2 * 14) / 2)


def test_many_sequences_make_logits_the_peak() -> None:
    assert activation_peak_bytes(small(max_sequences=64)) == pytest.approx(
        SAMPLER_BYTES_PER_LOGIT * 64 * 1000
    )
    assert activation_peak_bytes(small(max_sequences=1)) == pytest.approx(100 * 2 * (128 + 384))


CACHE = KvCapacity(
    num_blocks=100, block_tokens=16, block_bytes=1.0, grows=True, window_blocks=((40, 0.125),), state_blocks=2.5,
    max_context=1600, memory_bytes=0.0, usable_bytes=0.0, weight_bytes=0.0, activation_bytes=0.0, reserved_bytes=0.0,
    pool_bytes=0.0,
)  # fmt: skip


@pytest.mark.parametrize(
    ("context", "blocks"),
    [
        (16, 1 + 16 * 0.125 + 2.5),
        (17, 2 + 32 * 0.125 + 2.5),  # a block more of either kind
        (56, 4 + 64 * 0.125 + 2.5),  # the window of 40 touches four blocks
        (1600, 100 + 64 * 0.125 + 2.5),
    ],
)
def test_blocks_of_a_sequence_by_hand(context: int, blocks: float) -> None:
    assert CACHE.blocks(context) == blocks
    assert CACHE.num_sequences(context) == math.floor(100 / blocks)
    assert CACHE.blocks_for(context) == math.floor(100 / blocks * math.ceil(context / 16))
    assert CACHE.sequence_blocks == 2.5 + 5.0
    assert CACHE.tokens == math.floor(100 / 110.5 * 1600)


def test_a_cache_of_states_alone_grows_by_nothing() -> None:
    states = replace(CACHE, grows=False, window_blocks=(), state_blocks=4.0)
    assert states.blocks(10) == states.blocks(1000) == 4.0
    assert replace(states, state_blocks=0.0).blocks(10) > 0.0
    assert states.num_sequences(10) == 25


@pytest.mark.parametrize(
    ("model", "options", "block", "windows", "states"),
    [
        # a token of a layer is 2 · 4 heads · 8 values of 2 bytes: 128 B
        (SMALL, {}, 16 * 4 * 128, (), 0.0),
        (SMALL, {"tp": 2}, 16 * 4 * 64, (), 0.0),
        (SMALL, {"pp": 2}, 16 * 2 * 128, (), 0.0),
        (SMALL, {"pp": 3}, 16 * 2 * 128, (), 0.0),  # the heaviest stage has two layers
        (SMALL, {"precision": Precision(kv="fp8")}, 16 * 4 * 64, (), 0.0),
        (replace(SMALL, layers=(FULL, WINDOW, FULL, WINDOW)), {}, 16 * 2 * 128, ((64, 1 / 16),), 0.0),
        # one full layer makes groups of one; three windows are three groups
        (replace(SMALL, layers=(FULL, WINDOW, WINDOW, WINDOW)), {}, 16 * 128, ((64, 3 / 16),), 0.0),
        # three full ones, one window: groups of one again
        (replace(SMALL, layers=(FULL, FULL, FULL, WINDOW)), {}, 16 * 3 * 128, ((64, 1 / 48),), 0.0),
        (
            replace(SMALL, num_layers=5, layers=(FULL, FULL, WINDOW, WINDOW, WINDOW)),
            {},
            16 * 2 * 128,
            ((64, 4 / 32),),
            0.0,
        ),
        (replace(SMALL, layers=(WINDOW,) * 4), {}, 16 * 4 * 128, ((64, 1 / 16),), 0.0),
    ],
)
def test_a_block_by_hand(
    model: Model,
    options: dict[str, object],
    block: float,
    windows: tuple[tuple[int, float], ...],
    states: float,
) -> None:
    found = divide_memory(small(model, **options))
    assert found.block_bytes == pytest.approx(block)
    assert found.state_blocks == states
    assert [window for window, _ in found.window_blocks] == [window for window, _ in windows]
    assert [each for _, each in found.window_blocks] == pytest.approx([each for _, each in windows])
    assert found.grows == any(layer.mixer == "full" for layer in model.layers)


def test_a_recurrent_state_in_blocks() -> None:
    part = Recurrent(num_heads=6, head_dim=10, num_key_heads=2, key_dim=7, conv_width=1)
    mixed = replace(SMALL, recurrent=part, layers=(FULL, FULL, Layer(mixer="linear", mlp="dense"), FULL))
    found = divide_memory(small(mixed))
    state = 6 * 10 * 7 * 4.0  # fp32, of one layer
    assert found.state_blocks * found.block_bytes == pytest.approx(state)
    alone = replace(SMALL, recurrent=part, layers=(Layer(mixer="linear", mlp="dense"),) * 4)
    only = divide_memory(small(alone))
    assert (only.block_bytes, only.state_blocks) == (pytest.approx(4 * state), 1.0)
    assert not only.grows


def test_memory_is_what_is_visible_less_what_the_driver_takes(shelf: Catalog) -> None:
    chip = shelf.chip("h100-sxm")
    assert runtime_bytes(replace(chip, visible_memory_bytes=80e9)) == 80e9 - 0.55e9
    assert runtime_bytes(replace(chip, visible_memory_bytes=math.nan, memory_bytes=70e9)) == 70e9


@pytest.mark.parametrize(
    ("options", "left"),
    [
        # of 1,000 MB 900 are the engine's; weights W, activations A, 50 MB reserved
        ({}, lambda w, a: 900e6 - w - a - 50e6),
        ({"activations_inside": False}, lambda w, _: 900e6 - w),
        ({"fraction_of_free": True}, lambda w, a: 0.9 * (1e9 - w - a - 50e6)),
    ],
)
def test_engines_divide_memory_by_their_own_rule(
    options: dict[str, object], left: Callable[[float, float], float]
) -> None:
    one = small(reserved_bytes=50e6, **options)
    one = replace(one, chip=replace(one.chip, visible_memory_bytes=1e9 + 0.55e9))
    found = divide_memory(one)
    weights, activations = weight_bytes(one), activation_peak_bytes(one)
    assert found.pool_bytes == pytest.approx(left(weights, activations))
    assert found.num_blocks == math.floor(found.pool_bytes / found.block_bytes)
    assert found.activation_bytes == (0.0 if options.get("activations_inside") is False else activations)
    assert found.reserved_bytes == (0.0 if options.get("activations_inside") is False else 50e6)
    assert (found.usable_bytes, found.memory_bytes) == (pytest.approx(900e6), 1e9)


def test_nobody_holds_a_longer_sequence_than_the_cache(shelf: Catalog) -> None:
    assert divide_memory(small(kv_blocks=10)).max_context == 160
    assert divide_memory(small(kv_blocks=1000)).max_context == 4096  # the model's
    assert divide_memory(small(kv_blocks=10, max_context=3000)).max_context == 3000  # who asks is told
    tiny = small(shelf=shelf)
    tiny = replace(tiny, chip=replace(tiny.chip, visible_memory_bytes=0.6e9))
    assert divide_memory(replace(tiny, engine=replace(tiny.engine, reserved_bytes=1e12))).max_context == 16
    assert divide_memory(replace(tiny, engine=replace(tiny.engine, reserved_bytes=1e12))).num_blocks == 0


def test_a_context_that_is_asked_for_must_fit() -> None:
    assert kv_capacity(small(kv_blocks=10, max_context=160)).num_blocks == 10
    with pytest.raises(InfeasibleError, match="161 tokens"):
        kv_capacity(small(kv_blocks=10, max_context=161))
    assert kv_capacity(small(kv_blocks=1)).num_blocks == 1


def test_what_is_missing_is_counted() -> None:
    """100 blocks of 8,192 bytes are asked for, 10 are there."""
    one = small(max_context=1600, reserved_bytes=0.0)
    found = divide_memory(one)
    room = found.weight_bytes + found.activation_bytes + 10 * found.block_bytes
    tight = replace(one, chip=replace(one.chip, visible_memory_bytes=room / 0.9 + 0.55e9 + 1.0))
    with pytest.raises(InfeasibleError, match=r"leave 81\.92 kB of .*737\.3 kB are missing"):
        kv_capacity(tight)
    none = replace(
        one, chip=replace(one.chip, visible_memory_bytes=(room - 20 * found.block_bytes) / 0.9 + 0.55e9)
    )
    with pytest.raises(InfeasibleError, match=r"are 81\.92 kB more than .*901\.1 kB are missing"):
        kv_capacity(none)


def test_a_draft_brings_weights_and_cache() -> None:
    own = serving_weight_bytes(SMALL, count_parameters(SMALL), Precision(), tp=1, pp=1, ep=1)
    drafted = small(speculation=Speculation(draft="mtp"))
    layer = weight_bytes(drafted) - own
    assert weight_bytes(small()) == own
    # the layer alone: tables and head are the model's; attention 64·64·2 + 64·32·2, MLP 3·64·128, norms
    assert layer == pytest.approx(2 * (4 * 64 * 64 - 2 * 64 * 32 + 3 * 64 * 128), rel=0.02)
    assert divide_memory(drafted).block_bytes == pytest.approx(16 * 5 * 128)
    assert weight_bytes(small(speculation=Speculation(draft="ngram"))) == own
    staged = replace(drafted, pp=2)
    assert divide_memory(staged).block_bytes == pytest.approx(16 * 3 * 128)  # a draft is whole on its stage


def test_experts_are_spread_over_all_chips_of_a_stage() -> None:
    mixture = replace(SMALL, moe=MOE, layers=(Layer(mixer="full", mlp="moe"),) * 4)
    counts = count_parameters(mixture)
    for tp, dp in ((1, 1), (2, 1), (1, 4), (2, 4)):
        one = small(mixture, tp=tp, dp=dp)
        expected = serving_weight_bytes(mixture, counts, Precision(), tp=tp, pp=1, ep=tp * dp)
        assert weight_bytes(one) == pytest.approx(expected)
    dense = serving_weight_bytes(SMALL, count_parameters(SMALL), Precision(), tp=2, pp=1, ep=2)
    assert weight_bytes(small(tp=2, dp=4)) == pytest.approx(dense)


@given(st.integers(0, 60), st.integers(1, 5), st.floats(0.0, 3.0))
def test_the_longest_context_is_found(num_blocks: int, num_sequences: int, state: float) -> None:
    held = replace(CACHE, num_blocks=num_blocks, state_blocks=state, window_blocks=())
    found = longest_context(held, num_sequences)
    enough = [tokens for tokens in range(num_blocks * 16 + 1) if held.num_sequences(tokens) >= num_sequences]
    assert found == max(enough, default=0)


def test_a_replica_fits_when_it_holds_the_sequences_and_its_chip_runs_the_format() -> None:
    one = small(kv_blocks=10)
    assert fits(one, 160)
    assert not fits(one, 161)
    assert fits(one, 80, 2)
    assert not fits(one, 81, 2)
    assert not fits(replace(one, precision=Precision.named("nvfp4")), 16)  # an H100 has no FP4
    assert not fits(replace(one, engine=replace(one.engine, reserved_bytes=1e12)), 16)


def test_remedies_are_the_least_changes_that_are_enough(serve: Serve) -> None:
    short = serve("llama-3.1-70b", tp=2, max_context=131_072)
    hint = spelled(remedies(short, 131_072))
    parts = hint.removeprefix("enough: ").split(", or ")
    longest = longest_context(divide_memory(short))
    assert parts[0] == f"max_context={longest // 16 * 16} or less"
    assert parts[1:] == ['precision="fp8"', "tp=4"]
    assert fits(replace(short, precision=Precision.named("fp8")), 131_072)
    # a group that is too small for one sequence says nothing of its length
    alone = serve("llama-3.1-70b", max_context=131_072)
    assert "max_context" not in remedies(alone, 131_072)
    vast = serve("deepseek-v3", "l40s", max_context=131_072)
    assert remedies(vast, 10**9) == "no single change of context, precision or tp is enough"


def test_a_precision_that_the_chip_cannot_run_is_replaced_by_the_widest_that_fits(serve: Serve) -> None:
    wrong = serve("llama-3.1-8b", precision="nvfp4")
    assert 'precision="bf16"' in spelled(remedies(wrong, 1000))
    assert "max_context" not in remedies(wrong, 1000)


@pytest.mark.parametrize(
    ("options", "argument", "token_s"),
    [
        # 131,072 bytes of Llama 8B at 0.7 of a link
        ({"nic_bytes_per_s": 50e9}, 0.0, 131_072 / 35e9),
        ({"nic_bytes_per_s": 50e9}, 100e9, 131_072 / 70e9),
        ({"nic_bytes_per_s": 50e9, "tp": 2}, 0.0, 65_536 / 35e9),
        ({"nic_bytes_per_s": 50e9, "tp": 2, "pp": 4}, 0.0, 16_384 / 35e9),
    ],
)
def test_a_hand_over_moves_each_chips_part_at_once(
    serve: Serve, options: dict[str, object], argument: float, token_s: float
) -> None:
    found = handoff_of(serve("llama-3.1-8b", **options), argument)
    assert found.token_s == pytest.approx(token_s)
    assert found.shown_fraction == pytest.approx(1 / 32)
    assert (found.setup_s, LINK_SHARE) == (SETUP_S, 0.7)


def test_a_hand_over_needs_a_network(serve: Serve) -> None:
    one = serve("llama-3.1-8b")
    own = one.chip.nic_bytes_per_s
    assert handoff_of(one).token_s == pytest.approx(131_072 / (0.7 * own))
    for rate in (math.nan, 0.0, -1.0):
        with pytest.raises(ScenarioError, match="no network rate"):
            handoff_of(replace(one, chip=replace(one.chip, nic_bytes_per_s=rate)))
    with pytest.raises(ScenarioError, match="no network rate"):
        handoff_of(one, -1.0)


def test_tiers_below_the_chip_by_hand(serve: Serve) -> None:
    """A block of 16 tokens is 2 MiB on one chip."""
    block = 16 * 131_072.0
    one = serve(
        "llama-3.1-8b", host_cache_bytes=10.5 * block, host_bytes_per_s=block, drive_cache_bytes=100 * block,
        drive_bytes_per_s=block / 4,
    )  # fmt: skip
    assert lower_tiers(one) == ((10, 1.0), (100, 4.0))
    assert lower_tiers(replace(one, drive_bytes_per_s=9 * block))[1] == (
        100,
        1.0,
    )  # behind the link of the host
    assert lower_tiers(replace(one, tp=2))[0] == (10, 0.5)
    assert lower_tiers(replace(one, pp=4))[0] == (10, 0.25)
    assert lower_tiers(replace(one, host_cache_bytes=0.0)) == ((0, 0.0), (100, 4.0))
    assert token_bytes(replace(one, tp=2, pp=4)) == 131_072 / 8
    for wrong in (
        {"host_cache_bytes": math.inf},
        {"drive_cache_bytes": -1.0},
        {"host_cache_bytes": math.nan},
    ):
        with pytest.raises(ScenarioError, match="on the host"):
            lower_tiers(replace(one, **wrong))
    with pytest.raises(ScenarioError, match="without their rate"):
        lower_tiers(replace(one, drive_bytes_per_s=0.0))


def test_a_chip_without_a_known_link_moves_nothing(serve: Serve) -> None:
    one = serve("llama-3.1-8b")
    blank = replace(one.chip, host_bytes_per_s=math.nan, measured_host_bytes_per_s=math.nan)
    with pytest.raises(ScenarioError, match="no host link"):
        host_bytes_per_s(replace(one, chip=blank))
    assert host_bytes_per_s(replace(one, chip=blank, host_bytes_per_s=7.0)) == 7.0
    assert lower_tiers(replace(one, chip=blank)) == ((0, 0.0), (0, 0.0))
    assert drive_bytes_per_s(one.chip, ()) == 0.0


@pytest.mark.parametrize(
    ("chip", "memory", "visible", "small_chips", "budget"),
    [
        ("h100-sxm", 70e9, math.nan, (), 8192),
        ("h100-sxm", 69e9, math.nan, (), 2048),
        ("h100-sxm", 69e9, 71e9, (), 8192),  # what a program sees counts
        ("h100-sxm", 71e9, 69e9, (), 2048),
        ("h100-sxm", 99e9, math.nan, ("h100",), 2048),
        ("h100-sxm", 99e9, math.nan, ("a100",), 8192),
    ],
)
def test_an_engine_is_modest_below_a_size_and_on_those_named(
    shelf: Catalog, monkeypatch: pytest.MonkeyPatch, chip: str, memory: float, visible: float,
    small_chips: tuple[str, ...], budget: int,
) -> None:  # fmt: skip
    made = replace(
        engine("vllm"), token_budget=8192, max_sequences=512, small_chip_bytes=70e9, small_chips=small_chips,
        small_token_budget=2048, small_max_sequences=0,
    )  # fmt: skip
    monkeypatch.setattr("datahall.inference.engine.engine.engines", lambda: {"vllm": made})
    found = engine_on("vllm", replace(shelf.chip(chip), memory_bytes=memory, visible_memory_bytes=visible))
    assert found.token_budget == budget
    assert found.max_sequences == 512  # 0: there is no other default


@pytest.mark.parametrize(
    "options",
    [
        {"num": 0}, {"num": 1, "rank": 0}, {"num": 1, "num_resident": -1}, {"num": 1, "zipf_factor": -0.1},
        {"num": 1, "zipf_factor": math.inf}, {"num": 1, "zipf_factor": math.nan},
    ],
)  # fmt: skip
def test_adapters_that_cannot_be_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ScenarioError, match="adapters of rank"):
        Adapters(**options)  # type: ignore[arg-type]


def test_adapters_on_the_chips() -> None:
    assert [Adapters(num=5, num_resident=held).resident for held in (0, 3, 5, 9)] == [5, 3, 5, 5]
    assert Adapters(num=1, rank=1, zipf_factor=0.0).resident == 1


def test_an_adapter_stands_beside_each_projection(serve: Serve) -> None:
    """Llama 8B: qkv of three parts 4096 → 6144, output, gate and up of two parts, down."""
    one = serve("llama-3.1-8b", adapters=Adapters(num=1))
    expected = [(4096, 6144, 3, 32), (4096, 4096, 1, 32), (4096, 28672, 2, 32), (14336, 4096, 1, 32)]
    assert sorted(tuple(part) for part in projections(one)) == sorted(expected)
    assert projections(serve("llama-3.1-8b")) == []
    assert len(projections(serve("llama-3.1-8b", adapters=Adapters(num=1, mlp=False)))) == 2
    three = serve("llama-3.1-8b", adapters=Adapters(num=1), pp=3)  # 11 of 32 layers on the heaviest stage
    whole = serve("llama-3.1-8b", adapters=Adapters(num=1))
    assert resident_bytes(three) == pytest.approx(resident_bytes(whole) * 11 / 32)


def test_a_stage_fetches_its_layers_of_an_adapter(serve: Serve) -> None:
    rare = Adapters(num=100, num_resident=1, zipf_factor=0.0)
    one, two = (serve("llama-3.1-8b", adapters=rare, pp=pp, host_bytes_per_s=1e9) for pp in (1, 2))
    assert first_token_s(one) == pytest.approx(2 * first_token_s(two))
    assert first_token_s(one) == pytest.approx(0.99 * 2 * 41_943_040 / 1e9)
    fronted = replace(one, engine=replace(one.engine, first_token_s=0.25))
    assert first_token_s(fronted) == pytest.approx(0.25 + first_token_s(one))


@pytest.mark.parametrize(
    "speculation",
    [
        Speculation(acceptance=-0.1),
        Speculation(acceptance=1.01),
        Speculation(num_draft=-1),
        Speculation(acceptance=math.nan),
    ],
)
def test_chances_and_counts_of_drafts_make_sense(speculation: Speculation) -> None:
    with pytest.raises(ScenarioError, match="make no sense"):
        tokens_per_step(speculation)


def test_drafts_at_the_ends_of_their_ranges() -> None:
    assert tokens_per_step(Speculation(num_draft=0, acceptance=0.5)) == 1.0
    assert tokens_per_step(Speculation(num_draft=3, acceptance=0.0)) == 1.0
    assert tokens_per_step(Speculation(num_draft=3, acceptance=1.0)) == 4.0
    assert expected_tokens(0.5, 2) == 1.75
    assert num_verified(Speculation(num_draft=3)) == 4


def test_what_drafts_is_a_layer_another_model_or_nothing(serve: Serve) -> None:
    layered = replace(SMALL, layers=(FULL, FULL, FULL, WINDOW))
    own = draft_model(small(layered, speculation=Speculation(draft="mtp")))
    assert own is not None
    assert (own.num_layers, own.layers, own.vocab) == (1, (WINDOW,), 1000)
    other = draft_model(serve("llama-3.1-70b", speculation=Speculation(draft="llama-3.2-1b")))
    assert other is not None
    assert other.name == "llama-3.2-1b"
    for none in (None, Speculation(num_draft=0), Speculation(draft="ngram")):
        assert draft_model(small(speculation=none)) is None
    assert shares_tables(small(speculation=Speculation(draft="mtp")))
    assert not shares_tables(small(speculation=Speculation(draft="llama-3.2-1b")))
    assert not shares_tables(small())


def test_experts_that_are_not_spread_are_not_uneven(serve: Serve) -> None:
    tokens = np.array([8.0, 512.0])
    skewed = serve("qwen3-30b-a3b", dp=4, ep=4, routing_skew=1.2)
    moe = skewed.model.moe
    assert moe is not None
    expected = busiest_rank(4 * tokens, moe.num_experts, moe.top_k, 4, 1.2)  # the batches of four ranks meet
    assert imbalance(skewed, tokens).tolist() == expected.tolist()
    assert np.all(expected > 1.0)
    for even in (replace(skewed, ep=1), replace(skewed, routing_skew=0.0), serve("llama-3.1-8b", dp=4, ep=4)):
        assert imbalance(replace(even), tokens).tolist() == [1.0, 1.0]


def test_ranks_meet_at_experts_only_where_there_are_some(serve: Serve) -> None:
    mixture, dense = (serve(name, tp=2, dp=4, ep=8) for name in ("qwen3-30b-a3b", "llama-3.1-8b"))
    assert (sharding_of(mixture).tp, sharding_of(mixture).ep, sharding_of(mixture).num_groups) == (2, 8, 4)
    assert (sharding_of(dense).tp, sharding_of(dense).ep, sharding_of(dense).num_groups) == (2, 1, 1)
    with pytest.raises(ScenarioError, match="ep=3 does not divide"):
        sharding_of(replace(mixture, ep=3))
    assert sharding_of(replace(dense, ep=3)).ep == 1


def test_the_l2_of_a_chip_or_nothing(shelf: Catalog) -> None:
    chip = shelf.chip("h100-sxm")
    l2 = next(level for level in chip.levels if level.name == "l2")
    assert cache_bytes(chip) == l2.capacity_bytes
    assert cache_bytes(replace(chip, levels=())) == 0.0
    assert cache_bytes(replace(chip, levels=(replace(l2, capacity_bytes=math.nan),))) == 0.0

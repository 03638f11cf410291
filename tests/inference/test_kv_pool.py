"""How an engine divides the memory of a chip, by hand on a small model."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from tests.inference.memory_case import CACHE, FULL, MOE, SMALL, WINDOW, replace, small

from datahall.catalog import Catalog
from datahall.catalog.entries.model import Layer, Model, Recurrent
from datahall.errors import InfeasibleError
from datahall.inference.engine.replica import Speculation
from datahall.inference.memory.activation_peak import activation_peak_bytes
from datahall.inference.memory.kv_capacity import kv_capacity
from datahall.inference.memory.kv_pool import divide_memory, runtime_bytes, weight_bytes
from datahall.workload.memory.state import serving_weight_bytes
from datahall.workload.parameters import count_parameters
from datahall.workload.precision import Precision


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
    # what the engine takes is all that it uses; the rest of the chip is left alone
    used = found.weight_bytes + found.activation_bytes + found.reserved_bytes + found.pool_bytes
    assert found.usable_bytes == pytest.approx(used)
    assert found.memory_bytes == 1e9
    if not options.get("fraction_of_free"):
        assert found.usable_bytes == pytest.approx(900e6)


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

"""What a replica is made of, by hand: hand-over, tiers, engine, adapters, drafts, experts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.inference.memory_case import FULL, SMALL, WINDOW, Serve, replace, small

from datahall.catalog import Catalog, load
from datahall.cluster.cluster import cluster_of
from datahall.errors import ScenarioError
from datahall.inference.engine.adapters import adapted, first_token_s, resident_bytes
from datahall.inference.engine.disaggregation import LINK_SHARE, SETUP_S, handoff_of
from datahall.inference.engine.engine import engine, engine_on
from datahall.inference.engine.replica import Adapters, Speculation
from datahall.inference.engine.speculation import (
    draft_model,
    expected_tokens,
    num_verified,
    shares_tables,
    tokens_per_step,
)
from datahall.inference.memory.offload import drive_bytes_per_s, host_bytes_per_s, lower_tiers, token_bytes
from datahall.inference.step.expert_load import imbalance
from datahall.inference.step.kernels import cache_bytes, sharding_of
from datahall.workload.expert_load import busiest_rank


@pytest.mark.parametrize(
    ("options", "argument", "token_s"),
    [
        # 131,072 bytes of Llama 8B at 0.7 of a link, which is half of what the chip is sold with
        ({}, 0.0, 131_072 / 17.5e9),
        ({}, 100e9, 131_072 / 70e9),
        ({"tp": 2}, 0.0, 65_536 / 17.5e9),
        ({"tp": 2, "pp": 4}, 0.0, 16_384 / 17.5e9),
    ],
)
def test_a_hand_over_moves_each_chips_part_at_once(
    serve: Serve, options: dict[str, object], argument: float, token_s: float
) -> None:
    usual = serve("llama-3.1-8b", **options)
    system = cluster_of(usual.chip, 8, nic_bytes_per_s=25e9).system
    found = handoff_of(replace(usual, system=system), argument)
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
    assert sorted(tuple(part)[1:] for part in adapted(one)) == sorted(expected)
    assert adapted(serve("llama-3.1-8b")) == []
    assert len(adapted(serve("llama-3.1-8b", adapters=Adapters(num=1, mlp=False)))) == 2
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
    other = draft_model(
        serve(
            "llama-3.1-70b", speculation=Speculation(draft="llama-3.2-1b", model=load().model("llama-3.2-1b"))
        )
    )
    assert other is not None
    assert other.name == "llama-3.2-1b"
    for none in (None, Speculation(num_draft=0), Speculation(draft="ngram")):
        assert draft_model(small(speculation=none)) is None
    assert shares_tables(small(speculation=Speculation(draft="mtp")))
    assert not shares_tables(
        small(speculation=Speculation(draft="llama-3.2-1b", model=load().model("llama-3.2-1b")))
    )
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

"""The parts of a step: points and tables, what chips send each other, and which kernels run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.catalog import Catalog, load
from datahall.cluster.cluster import cluster_of
from datahall.fabric.collectives.experts import ExpertTime, Tokens
from datahall.inference.engine.adapters import products_s, reads_s
from datahall.inference.engine.engine import engine
from datahall.inference.engine.replica import Adapters, Replica, Speculation, replica_system
from datahall.inference.step import exchange as exchanging
from datahall.inference.step.exchange import exchange, gather_logits, reduced_blocks
from datahall.inference.step.figure import step_breakdown
from datahall.inference.step.kernels import Passes
from datahall.inference.step.price import (
    dense,
    draft_times,
    grid_tokens,
    price_steps,
    round_token_budget,
    sequence_points,
    token_points,
    uneven_stages,
)
from datahall.inference.step.table import decode_time, head_time, prefill_time, tokens_time
from datahall.silicon.kernel import time_operators
from datahall.workload.forward import forward_pass
from datahall.workload.operator import Attention

Serve = Callable[..., Replica]
replace = msgspec.structs.replace


@given(st.integers(1, 40_000))
def test_points_begin_with_every_count_and_end_at_the_last(most: int) -> None:
    for points, all_until in ((token_points(most), 136), (sequence_points(most), 64)):
        assert points[-1] == most
        assert np.all(np.diff(points) > 0)
        first = min(most, all_until)
        assert points[:first].tolist() == list(range(1, first + 1))
        assert np.max(np.diff(points) / points[:-1], initial=0.0) <= 1.0


@given(st.integers(1, 2**17))
def test_neighbouring_points_are_near_each_other(most: int) -> None:
    """Sequences an eighth of an octave at most, and tokens a fifth: between them a time is read off a straight line."""
    sequences, tokens = sequence_points(most), token_points(most)
    assert np.all(sequences[1:] <= 2 ** (1 / 8) * sequences[:-1] + 1)
    assert np.all(tokens[1:] <= np.maximum(1.2 * tokens[:-1], tokens[:-1] + 1))


def test_tokens_are_timed_on_both_sides_of_a_tile() -> None:
    points = set(token_points(20_000).tolist())
    for edge in (160, 192, 992, 1024, 1088, 4032, 4096, 8192, 16_384):
        assert {edge, edge + 1} <= points
    for edge in (160, 1024, 4096):
        assert edge + 2 not in points
    many = sequence_points(2048)
    assert {68, 252, 256, 272, 1008, 1024, 2048} <= set(many.tolist())
    assert token_points(0.4).tolist() == [1.0]
    assert token_points(10.2)[-1] == 11.0


@given(st.integers(1, 300_000))
def test_the_axis_of_contexts_reaches_beyond_the_longest(longest: int) -> None:
    axis = grid_tokens(longest)
    assert axis[0] == 0.0
    assert axis[4] == pytest.approx(1.0)
    assert axis[-2] >= longest
    assert axis[-4] < longest + 2
    np.testing.assert_allclose((axis[1:] + 1) / (axis[:-1] + 1), 2**0.25)


@pytest.mark.parametrize(("parts", "expected"), [
    (1, [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]),
    (2, [0.0, 10.0, 10.0, 15.0, 20.0, 25.0, 30.0]),  # nothing is less than one token on a stage
])  # fmt: skip
def test_values_are_read_between_points(parts: int, expected: list[float]) -> None:
    points = np.array([1.0, 2.0, 6.0])
    values = np.array([10.0, 20.0, 60.0])
    assert dense(points, values, 6, parts).tolist() == pytest.approx(expected)
    table = dense(points, np.outer(values, [1.0, 3.0]), 6, parts)
    assert table[:, 1].tolist() == pytest.approx([3 * value for value in expected])
    assert dense(points, values, 9, 1)[-3:].tolist() == [60.0] * 3  # past the last point nothing is known


@pytest.mark.parametrize(
    ("layers", "pp", "longer"), [(80, 1, 1.0), (80, 4, 1.0), (61, 2, 62 / 61), (61, 4, 64 / 61)]
)
def test_the_fullest_stage_sets_the_pace(serve: Serve, layers: int, pp: int, longer: float) -> None:
    one = serve("llama-3.1-70b", pp=pp)
    cut = replace(one, model=replace(one.model, num_layers=layers, layers=one.model.layers[:1] * layers))
    assert uneven_stages(cut) == pytest.approx(longer)
    assert round_token_budget(cut) == pp * one.engine.token_budget


def test_tensor_chips_reduce_every_block_and_the_embedding(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Llama 70B: 160 blocks and the embedding, 8,192 values of two bytes for each token."""
    sizes = []

    def reduced(_: object, __: object, size_bytes: np.ndarray) -> object:
        sizes.append(size_bytes)
        return exchanging.AllReduceTimes(np.ones_like(size_bytes), "measured")

    monkeypatch.setattr(exchanging, "_reduced", reduced)
    found = exchange(serve("llama-3.1-70b", tp=4), np.array([1.0, 10.0]))
    assert found.tensor_s.tolist() == [161.0, 161.0]
    assert sizes[0].tolist() == [16_384.0, 163_840.0]
    assert found.total_s.tolist() == [161.0, 161.0]
    assert not found.expert_s.any()
    assert not found.stage_s.any()


def test_one_chip_sends_nothing(serve: Serve) -> None:
    found = exchange(serve("llama-3.1-8b"), np.array([1.0, 100.0]))
    assert not found.total_s.any()
    assert not found.stage_s.any()
    assert found.level == "measured"
    assert gather_logits(serve("llama-3.1-8b"), np.array([4.0])).tolist() == [0.0]


@pytest.mark.parametrize(
    ("model", "how"),
    [
        ("llama-3.1-70b", {"tp": 4}),
        ("llama-3.1-70b", {"pp": 2, "tp": 4}),
        ("deepseek-v3", {"dp": 8, "ep": 8}),
    ],
)
def test_what_a_message_takes_does_not_depend_on_the_others_asked_about(
    serve: Serve, model: str, how: dict[str, int]
) -> None:
    replica, tokens = serve(model, **how), np.unique(np.geomspace(1.0, 8192.0, 300).round())
    together = exchange(replica, tokens), gather_logits(replica, tokens)
    for at in range(0, tokens.size, 20):
        alone = exchange(replica, tokens[at : at + 1]), gather_logits(replica, tokens[at : at + 1])
        np.testing.assert_allclose(alone[0].total_s, together[0].total_s[at], rtol=1e-12)
        np.testing.assert_allclose(alone[0].stage_s, together[0].stage_s[at], rtol=1e-12)
        np.testing.assert_allclose(alone[1], together[1][at], rtol=1e-12)


def test_experts_exchange_wide_values_where_the_model_is_wide(serve: Serve) -> None:
    times = []
    for name in ("bf16", "fp32"):
        plain = serve("qwen3-30b-a3b", dp=8, ep=8, precision=name)
        engine = msgspec.structs.replace(plain.engine, expert_exchange="all-to-all")
        found = exchange(msgspec.structs.replace(plain, engine=engine), np.array([4096.0]))
        times.append(float(found.expert_s[0]))
    assert 1.5 < times[1] / times[0] <= 2.0


def test_stages_pass_the_hidden_state_on(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def group(_: object, what: str, size: np.ndarray, ranks: int, link: float) -> np.ndarray:
        calls.append((what, size.tolist(), ranks, 1, link))
        return np.full_like(size, 0.5)

    def to_the_next(_: object, size: np.ndarray, stages: int, chips: int) -> np.ndarray:
        calls.append(("send-recv", size.tolist(), stages, chips, 0.0))
        return np.full_like(size, 0.5)

    monkeypatch.setattr(exchanging, "_group", group)
    monkeypatch.setattr(exchanging, "_to_the_next", to_the_next)
    found = exchange(serve("llama-3.1-70b", pp=2, tp=4, dp=1), np.array([8.0]))
    assert found.stage_s.tolist() == [0.5]
    assert calls == [("send-recv", [8 * 16_384 / 4], 2, 4, 0.0)]
    calls.clear()
    gather_logits(serve("llama-3.1-70b", tp=4), np.array([3.0]))
    assert calls == [("all-gather", [3 * 128_256 * 2.0], 4, 1, 0.0)]
    calls.clear()
    both = exchange(serve("qwen3-30b-a3b", dp=4, ep=4), np.array([8.0]))
    hidden = 8 * 4 * 2048 * 2.0  # the tokens of all ranks come together
    assert calls == [("all-gather", [hidden], 4, 1, 0.0), ("reduce-scatter", [hidden], 4, 1, 0.0)]
    assert both.expert_s.tolist() == [48 * 1.0]
    assert not both.tensor_s.any()


@pytest.mark.parametrize(
    ("how", "dp", "ep", "travels"),
    [
        ("auto", 8, 8, False),  # inside the domain tokens are gathered
        ("auto", 16, 16, True),
        ("auto", 16, 1, False),  # slices of every expert are everywhere
        ("all-to-all", 8, 8, True),
        ("gather", 16, 16, False),
    ],
)
def test_tokens_travel_to_experts_of_other_nodes(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, how: str, dp: int, ep: int, travels: bool
) -> None:
    monkeypatch.setattr(exchanging, "_all_to_all", lambda *_: np.array([7.0]))
    one = serve("deepseek-v3", "h100-sxm", dp=dp, ep=ep)
    one = replace(one, engine=replace(one.engine, expert_exchange=how))
    found = exchange(one, np.array([64.0])).expert_s
    assert (found[0] == 58 * 7.0) == travels


def test_dispatch_is_narrow_where_activations_are(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    widths: list[float] = []

    def phase(_: object, __: object, num_tokens: float, value_bytes: float) -> float:
        widths.append(value_bytes)
        return value_bytes * num_tokens

    monkeypatch.setattr(exchanging, "_phase", phase)
    for precision, narrow in (("fp8", 1.0), ("bf16", 2.0)):
        one = serve("deepseek-v3", "h200-sxm", precision=precision, tp=2, dp=16, ep=32)
        widths.clear()
        system = replica_system(one)
        found = exchanging._all_to_all(one, system, np.array([64.0, 1000.0]))
        assert set(widths) == {narrow, 2.0}
        assert found.tolist() == pytest.approx(
            [(narrow + 2) * 32.0, (narrow + 2) * 500.0]
        )  # tp ranks share them


def test_what_a_decode_brings_takes_the_low_latency_kernels(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = serve("deepseek-v3", "h100-sxm", dp=32, ep=32)
    system, seen = replica_system(one), []
    kernels = exchanging.library().experts

    def run(time_s: float, constants: object, sent: Tokens, **links: object) -> ExpertTime:
        seen.append((constants, sent.num_tokens))
        assert (sent.hidden, sent.top_k, sent.bytes_per_value) == (7168.0, 8.0, 1.0)
        assert (links["num_ranks"], links["num_inside"]) == (32, 8)
        return ExpertTime(time_s * sent.num_tokens, 0.0)

    monkeypatch.setattr(exchanging, "low_latency_time", partial(run, 8.0))
    monkeypatch.setattr(exchanging, "normal_time", partial(run, 2.0))
    assert exchanging._phase(one, system, 256.0, 1.0) == 8.0 * 256
    assert seen == [(kernels["low-deepep"], 256.0)]
    assert exchanging._phase(one, system, 257.0, 1.0) == 8.0 * 256  # as long as what the buffers hold
    assert exchanging._phase(one, system, 4096.0, 1.0) == 2.0 * 4096
    assert seen[-1] == (kernels["normal-deepep"], 4096.0)


@pytest.mark.parametrize("chip", ["h100-sxm", "h200-sxm", "b200-sxm", "gb200"])
@pytest.mark.parametrize(("tp", "dp"), [(1, 8), (1, 16), (4, 16), (1, 72), (1, 320)])
@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_another_token_never_makes_a_step_to_the_experts_shorter(
    serve: Serve, chip: str, tp: int, dp: int, precision: str
) -> None:
    one = serve("deepseek-v3", chip, tp=tp, dp=dp, ep=tp * dp, precision=precision)
    one = replace(one, engine=replace(one.engine, expert_exchange="all-to-all"))
    tokens = np.arange(1.0, 600.0 * tp)
    took = exchange(one, tokens).expert_s
    assert np.all(np.diff(took) >= -1e-12 * took[1:])
    assert np.max(np.diff(took)) <= 1.01 * np.max(np.diff(took[: 200 * tp]))  # nor suddenly longer


def test_blocks_are_reduced_once_each(shelf: Catalog) -> None:
    assert reduced_blocks(shelf.model("deepseek-v3"), at_experts=True) == (61 + 3 + 58, 0)
    falcon = shelf.model("falcon-7b")
    assert falcon.parallel_block
    assert reduced_blocks(falcon, at_experts=True) == (falcon.num_layers, 0)


def test_chips_reach_each_other_in_a_domain(serve: Serve) -> None:
    assert replica_system(serve("llama-3.1-8b")).num_domain == 8
    bare = serve("llama-3.1-8b", "l40s")
    unsold = replace(bare, chip=replace(bare.chip, name="unsold"))
    assert replica_system(unsold).num_domain == 8
    other = cluster_of(bare.chip, 8, num_domain=4, nic_bytes_per_s=7.0).system
    assert replica_system(serve("llama-3.1-8b", "l40s", system=other)) == other


def test_a_collective_between_sizes_is_near_the_one_at_them(serve: Serve) -> None:
    system = replica_system(serve("llama-3.1-70b", tp=4))
    sizes = np.geomspace(1e3, 1e8, 400)
    read = exchanging._group(system, "all-gather", sizes, 4, link=0.0)
    exact = np.concatenate(
        [exchanging._group(system, "all-gather", sizes[i : i + 1], 4, link=0.0) for i in range(0, 400, 37)]
    )
    np.testing.assert_allclose(read[::37], exact, rtol=0.05)
    staged = exchanging._group(system, "all-gather", sizes, 4, link=1e9)
    assert np.all(staged >= 0.7 * sizes / 1e9)


def test_drafting_takes_a_pass_for_each_token(serve: Serve) -> None:
    def replica_with(num_draft: int, draft: str = "llama-3.2-1b") -> Replica:
        how = Speculation(num_draft=num_draft, draft=draft, model=load().model("llama-3.2-1b"))
        return serve("llama-3.1-70b", tp=4, speculation=how)

    sequences = np.array([1.0, 8.0, 64.0])
    one, three = (draft_times(replica_with(num), sequences) for num in (1, 3))
    np.testing.assert_allclose(three, 3 * one)
    small = price_steps(serve("llama-3.2-1b", tp=4), max_tokens=64, max_context=4096).table
    expected = [
        tokens_time(small, n) + head_time(small, n) + decode_time(small, n, 4095.0) for n in (1, 8, 64)
    ]
    np.testing.assert_allclose(one, expected, rtol=1e-6)
    assert not draft_times(serve("llama-3.1-70b", tp=4), sequences).any()
    assert not draft_times(replica_with(2, "ngram"), sequences).any()


def test_verified_tokens_pay_for_rows_of_the_head_and_for_the_draft(serve: Serve) -> None:
    """N-grams cost nothing to draft: a step of n with three drafts is the pass, attention and head of 4·n tokens."""
    drafted = serve("llama-3.1-8b", speculation=Speculation(num_draft=3, acceptance=0.7, draft="ngram"))
    table, plain = price_steps(drafted).table, price_steps(serve("llama-3.1-8b")).table
    assert table.num_verified == 4
    passes = Passes.of(drafted)
    for num in (1, 16, 60):
        wide = passes.decode_s(np.array([float(num)]), np.array([1023.0]), 4)[0, 0]
        head = head_time(plain, 4 * num) - head_time(plain, num)
        assert decode_time(table, num, 1023.0) == pytest.approx(wide + head, rel=0.01)
        assert tokens_time(table, 4 * num) == pytest.approx(tokens_time(plain, 4 * num), rel=1e-6)
    assert price_steps(drafted).tokens_per_step == pytest.approx(2.533, rel=1e-3)


def test_a_price_is_as_sure_as_its_weaker_part(serve: Serve) -> None:
    found = price_steps(serve("llama-3.1-8b"))
    low, high = Passes.of(serve("llama-3.1-8b")).calibration.constants.bands["pass"]
    band = engine("vllm").band("TPOT")
    assert found.band == (min(low, band[0]), max(high, band[1]))
    assert found.level == "measured"
    assert found.stack == "vllm"
    generic = price_steps(serve("llama-3.1-8b", "mi300x", tp=2))
    assert generic.level == "datasheet only"


def test_adapters_are_in_the_price_of_every_pass(serve: Serve) -> None:
    plain, adapted = serve("llama-3.1-8b"), serve("llama-3.1-8b", adapters=Adapters(num=50, zipf_factor=0.0))
    passes = Passes.of(adapted)
    one, two = price_steps(plain).table, price_steps(adapted).table
    for tokens in (1, 100, 4096):
        more = float(products_s(passes, np.array([float(tokens)]))[0])
        assert tokens_time(two, tokens) - tokens_time(one, tokens) == pytest.approx(more, rel=1e-3)
    for num in (1, 16, 64):
        more = float(reads_s(passes, np.array([float(num)]))[0])
        assert decode_time(two, num, 100.0) - decode_time(one, num, 100.0) == pytest.approx(
            more, rel=1e-3, abs=1e-9
        )
    assert price_steps(adapted).table.joined_s.size == 1


def test_the_busiest_rank_holds_up_the_experts_alone(serve: Serve) -> None:
    even = serve("qwen3-30b-a3b", dp=4, ep=4)
    skewed = replace(even, routing_skew=1.2)
    tokens = np.array([256.0])
    plain, slow = ({one.operator.name: one.total_s[0] for one in Passes.of(each).token_kernels(tokens)
                    if np.size(one.total_s)} for each in (even, skewed))  # fmt: skip
    for name, time_s in plain.items():
        if name.startswith("expert_"):
            assert slow[name] > time_s
        else:
            assert slow[name] == pytest.approx(time_s)


def test_experts_are_a_part_of_the_pass(serve: Serve) -> None:
    passes, tokens = Passes.of(serve("qwen3-30b-a3b", tp=2)), np.array([4.0, 512.0])
    whole, experts = passes.tokens_s(tokens)
    kernels = passes.token_kernels(tokens)
    named = sum(one.total_s for one in kernels if one.operator.name.startswith("expert_"))
    assert experts.tolist() == pytest.approx(np.asarray(named).tolist())
    assert np.all(whole > experts)
    assert not {"attention", "head"} & {one.operator.name for one in kernels}


def test_a_short_chunk_splits_its_keys_over_idle_multiprocessors(serve: Serve) -> None:
    one = serve("llama-3.1-8b", "h100-sxm")
    passes = Passes.of(one)
    for chunk, past, faster in ((16.0, 30_000.0, True), (8192.0, 8192.0, False)):
        (found,) = passes.prefill_kernels(np.array([chunk]), np.array([past]))
        shape = found.operator.shape
        assert isinstance(shape, Attention)
        (walked,) = time_operators(one.chip, [found.operator], stack="vllm").kernels
        if faster:
            assert found.time_s[0] < 0.5 * np.ravel(walked.time_s)[0]
        else:
            assert found.time_s[0] == pytest.approx(np.ravel(walked.time_s)[0])


def test_states_of_several_sequences_are_read_for_each(serve: Serve) -> None:
    recurrent = Passes.of(serve("nemotron-h-8b"))
    few, many = recurrent.decode_s(np.array([1.0, 64.0]), np.array([100.0]))[:, 0]
    assert many > few
    states = recurrent.states_s(np.array([1.0, 2.0, 64.0]))
    assert states[0] == pytest.approx(0.0, abs=1e-9)
    assert states[2] > states[1] >= 0.0
    assert not Passes.of(serve("llama-3.1-8b")).states_s(np.array([1.0, 64.0])).any()


def test_verified_queries_share_one_read_of_the_cache(serve: Serve) -> None:
    for model in ("llama-3.1-8b", "deepseek-v3"):
        options = {} if model == "llama-3.1-8b" else {"tp": 8, "precision": "fp8"}
        passes = Passes.of(serve(model, "h200-sxm", **options))
        num, context = np.array([8.0]), np.array([4000.0])
        one, four = (passes.decode_kernels(num, context, verified) for verified in (1, 4))
        for single, several in zip(one, four, strict=True):
            assert np.ravel(several.operator.flop) == pytest.approx(4 * np.ravel(single.operator.flop))
            if isinstance(single.operator.shape, Attention):
                assert np.all(several.operator.shape.num_heads == 4 * single.operator.shape.num_heads)  # type: ignore[union-attr]
                assert np.all(several.operator.shape.num_kv_heads == single.operator.shape.num_kv_heads)  # type: ignore[union-attr]
            else:
                assert np.all(several.operator.shape.rows == 4 * single.operator.shape.rows)  # type: ignore[union-attr]


def test_decodes_in_one_launch_with_a_prompt_wait_for_its_empty_rows(serve: Serve) -> None:
    """Where one launch is for both, the longer the prompt beside them, the longer the decodes."""
    card = serve("llama-3.1-8b", "rtx-pro-6000")
    short, long = (
        step_breakdown(card, num_decodes=32, mean_context=1000, chunks=[(chunk, 0)])
        .at("attention")
        .at("decodes")
        .value
        for chunk in (64, 4096)
    )
    assert 0 < short < long


def test_an_attention_that_packs_nothing_is_the_sum_over_its_layers(serve: Serve) -> None:
    card = Passes.of(serve("llama-3.1-8b", "rtx-pro-6000"))
    joined, empty_s = card.joined_s(np.array([1.0, 32.0]), np.array([100.0, 4000.0]))
    assert joined is not None
    assert joined.shape == (2, 2)
    assert empty_s > 0
    half = replace(
        card.replica, model=replace(card.replica.model, num_layers=16, layers=card.replica.model.layers[:16])
    )
    less, empty_half = Passes.of(half).joined_s(np.array([1.0, 32.0]), np.array([100.0, 4000.0]))
    assert less is not None
    np.testing.assert_allclose(joined, 2 * less)
    assert empty_s == pytest.approx(2 * empty_half)
    for other in (
        serve("llama-3.1-8b", "h100-sxm"),
        serve("deepseek-v3", "rtx-pro-6000", tp=8, precision="fp8"),
    ):
        assert Passes.of(other).joined_s(np.array([1.0]), np.array([100.0])) == (None, 0.0)


def test_a_pass_is_the_forward_pass_of_the_model(serve: Serve) -> None:
    """Outside attention and head nothing is left out and nothing counted twice."""
    one = serve("llama-3.1-8b")
    passes = Passes.of(one)
    names = [kernel.operator.name for kernel in passes.token_kernels(np.array([8.0]))]
    every = [op.name for op in forward_pass(one.model, batch=1.0, query=8.0, past=0.0, fusion="fused")]
    assert sorted([*names, "attention", "head"]) == sorted(every)


@pytest.mark.parametrize(
    ("model", "chip", "options"),
    [
        ("llama-3.1-8b", "h100-sxm", {"adapters": Adapters(num=200, rank=64, zipf_factor=0.0)}),
        ("llama-3.1-8b", "rtx-pro-6000", {}),
        ("qwen3-30b-a3b", "h200-sxm", {"dp": 2, "ep": 2}),
    ],
)
def test_five_layers_in_four_stages_take_a_round_of_eight(
    serve: Serve, model: str, chip: str, options: dict[str, object]
) -> None:
    """The fullest stage has two layers either way: products, attention, adapters and experts wait for it."""
    one = serve(model, chip, pp=4, **options)

    def cut(layers: int) -> Replica:
        kept = replace(one.model, num_layers=layers, layers=one.model.layers[:1] * layers)
        return replace(one, model=kept)

    five, eight = (price_steps(cut(layers), max_context=8192).table for layers in (5, 8))
    sent = [exchange(cut(layers), np.array([64.0])).expert_s[0] for layers in (5, 8)]
    assert tokens_time(five, 256) - sent[0] == pytest.approx(tokens_time(eight, 256) - sent[1], rel=0.03)
    assert decode_time(five, 64, 1023.0) == pytest.approx(decode_time(eight, 64, 1023.0), rel=1e-6)
    assert prefill_time(five, 1023.0, 1023.0) == pytest.approx(prefill_time(eight, 1023.0, 1023.0), rel=1e-6)
    assert np.allclose(five.joined_s, eight.joined_s)
    assert np.allclose(five.empty_s, eight.empty_s)
    assert np.allclose(five.head_s, eight.head_s)
    if one.dp > 1:
        assert five.met_s[256] - sent[0] == pytest.approx(eight.met_s[256] - sent[1], rel=1e-4)
    figures = [
        step_breakdown(cut(layers), num_decodes=64, mean_context=1023, chunks=[(256, 0)]) for layers in (5, 8)
    ]
    for name in ("matrix products", "attention", "adapters", "head"):
        values = [sum(part.value for part in figure.parts if part.name == name) for figure in figures]
        assert values[0] == pytest.approx(values[1], rel=1e-6), name

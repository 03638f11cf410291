"""The table of steps against its kernels, whole forward passes, rooflines and our own measurements on an H200."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

import datahall
from datahall.catalog import Catalog
from datahall.errors import ScenarioError
from datahall.inference.engine.engine import engine
from datahall.inference.engine.replica import Replica, replica_system
from datahall.inference.step.exchange import exchange, reduced_blocks
from datahall.inference.step.expert_load import busiest_rank, popularity
from datahall.inference.step.figure import step_breakdown
from datahall.inference.step.kernels import Passes, calibration_of
from datahall.inference.step.price import price_steps, round_token_budget
from datahall.inference.step.table import (
    StepTable,
    decode_step_time,
    decode_time,
    head_time,
    host_time,
    joined_time,
    prefill_time,
    tokens_time,
)

Serve = Callable[..., Replica]
MEASURED = Path(datahall.__file__).parent / "validation" / "data" / "kernels" / "h200_engine_infer.csv"

EVERY_KIND = [
    ("llama-3.1-8b", {}),
    ("llama-3.1-70b", {"tp": 4}),
    ("gemma-3-27b", {"tp": 2}),
    ("deepseek-v3", {"tp": 8, "precision": "fp8"}),
    ("deepseek-v3", {"dp": 8, "ep": 8, "precision": "fp8", "chip": "h200-sxm"}),
    ("qwen3-next-80b-a3b", {"tp": 4}),
    ("nemotron-h-8b", {}),
    ("gpt-oss-120b", {"tp": 2, "precision": "mxfp4"}),
]
each_kind = pytest.mark.parametrize(("model", "options"), EVERY_KIND)


def step(table: StepTable, num_decodes: int, context: float, chunks: list[tuple[float, float]]) -> float:
    tokens = num_decodes * table.num_verified + int(sum(chunk for chunk, _ in chunks))
    return (
        tokens_time(table, tokens)
        + decode_time(table, num_decodes, context)
        + sum(prefill_time(table, chunk, past) for chunk, past in chunks)
        + head_time(table, num_decodes + len(chunks))
        + host_time(table, num_decodes + len(chunks))
    )


def whole_s(passes: Passes, batch: float, query: float, past: float) -> float:
    kernels = passes.timed(passes.operators(batch, query, past))
    return float(np.ravel(sum(one.total_s for one in kernels))[0])


@each_kind
def test_a_decode_step_is_a_forward_pass_and_its_exchange(
    serve: Serve, model: str, options: dict[str, object]
) -> None:
    replica = serve(model, **options)
    passes, table = Passes.of(replica), price_steps(replica).table
    for num, context in ((1, 511), (16, 2047), (100, 1023), (300, 4095)):
        whole = whole_s(passes, float(num), 1.0, float(context))
        sent = float(exchange(replica, np.array([float(num)])).total_s[0])
        gathered = head_time(table, num) - float(
            np.ravel(sum(one.total_s for one in passes.head_kernels(np.array([float(num)]))))[0]
        )
        assert decode_step_time(table, num, float(context)) - sent - gathered == pytest.approx(
            whole, rel=0.02
        )


@each_kind
def test_a_prompt_is_a_forward_pass_and_its_exchange(
    serve: Serve, model: str, options: dict[str, object]
) -> None:
    replica = serve(model, **options)
    passes, table = Passes.of(replica), price_steps(replica).table
    for tokens in (1023, 4095, 8191):
        whole = whole_s(passes, 1.0, float(tokens), 0.0) - float(
            np.ravel(sum(one.total_s for one in passes.head_kernels(np.array([1.0]))))[0]
        )
        sent = float(exchange(replica, np.array([float(tokens)])).total_s[0])
        found = tokens_time(table, tokens) + prefill_time(table, float(tokens), 0.0) - sent
        assert found == pytest.approx(whole, rel=0.02)


@each_kind
def test_what_lies_between_points_is_near_the_kernels(
    serve: Serve, model: str, options: dict[str, object]
) -> None:
    replica = serve(model, **options)
    passes, table = Passes.of(replica), price_steps(replica).table
    draw = np.random.default_rng(11)
    tokens = np.unique(np.round(2.0 ** draw.uniform(0, 13, 80)))
    direct = passes.tokens_s(tokens)[0] + exchange(replica, tokens).total_s
    read = np.array([tokens_time(table, int(one)) for one in tokens])
    assert np.mean(np.abs(read / direct - 1)) < 0.01
    num, context = np.round(2.0 ** draw.uniform(0, 10, 80)), np.round(2.0 ** draw.uniform(5, 15, 80))
    attention = np.array([passes.decode_s(num[i : i + 1], context[i : i + 1])[0, 0] for i in range(80)])
    whole = np.array([tokens_time(table, int(one)) for one in num])
    errors = [decode_time(table, int(num[i]), context[i]) - attention[i] for i in range(80)]
    assert np.mean(np.abs(errors) / (whole + attention)) < 0.01  # of the step that it is part of


@each_kind
def test_more_work_takes_longer(serve: Serve, model: str, options: dict[str, object]) -> None:
    table = price_steps(serve(model, **options)).table
    # libraries change kernels with the number of rows, so a step may be a little shorter than the one before it
    for column in (
        table.tokens_s,
        table.head_s,
        table.decode_s[:, 40],
        table.decode_s[64],
        table.prefill_s[44],
        table.prefill_s[:, 40],
    ):
        highest = np.maximum.accumulate(column)
        assert np.all(column[1:] > 0.85 * highest[1:])
        assert column[-1] > column[len(column) // 2] > 0


@each_kind
def test_no_step_beats_the_roofline(serve: Serve, model: str, options: dict[str, object]) -> None:
    replica = serve(model, **options)
    passes, table = Passes.of(replica), price_steps(replica).table
    for num, context in ((1, 1000.0), (64, 4000.0), (512, 1000.0)):
        n, c = np.array([float(num)]), np.array([context])
        kernels = [
            *passes.token_kernels(n),
            *passes.decode_kernels(n, c, verified=1),
            *passes.head_kernels(n),
        ]
        bound = sum(
            float(np.ravel(one.operator.count * one.roofline_s)[0]) for one in kernels if one.kind != "stream"
        )
        assert decode_step_time(table, num, context) > bound


def test_eight_chips_decode_a_large_model_faster_than_one(serve: Serve) -> None:
    one, eight = (price_steps(serve("llama-3.1-70b", tp=tp)).table for tp in (1, 8))
    for num in (1, 32, 256):
        ratio = decode_step_time(one, num, 2000.0) / decode_step_time(eight, num, 2000.0)
        assert 2.0 < ratio < 8.0


def test_a_pipeline_works_on_as_many_batches_as_it_has_stages(serve: Serve) -> None:
    whole, cut = serve("llama-3.1-70b", tp=4), serve("llama-3.1-70b", tp=4, pp=2)
    one, two = price_steps(whole).table, price_steps(cut).table
    assert decode_step_time(two, 1, 1000.0) >= decode_step_time(
        one, 1, 1000.0
    )  # a lone sequence gains nothing
    # a round of 256 lasts as long as a step of 128 and the hops
    assert decode_step_time(two, 256, 1000.0) == pytest.approx(decode_step_time(one, 128, 1000.0), rel=0.05)
    assert prefill_time(two, 4096.0, 0.0) == pytest.approx(prefill_time(one, 4096.0, 0.0) / 2)
    assert round_token_budget(cut) == 2 * round_token_budget(whole)


def test_experts_spread_over_attention_ranks_cost_exchange_and_save_weights(serve: Serve) -> None:
    alone = serve("deepseek-v3", "h200-sxm", precision="fp8", dp=8, ep=8)
    split = serve("deepseek-v3", "h200-sxm", precision="fp8", dp=8, ep=1)
    tokens = np.array([64.0, 4096.0])
    assert np.all(exchange(alone, tokens).expert_s > 0)
    assert np.all(exchange(alone, tokens).tensor_s == 0)
    assert Passes.of(split).sharding.expert_tp == 8
    # whole experts make fuller tiles than slices of every expert
    assert np.all(Passes.of(alone).tokens_s(tokens)[0] <= 1.001 * Passes.of(split).tokens_s(tokens)[0])


def test_tokens_travel_to_experts_on_other_nodes_as_deepep_measures_it(serve: Serve) -> None:
    """DeepEP on H800 (400 Gb/s NICs), 128 tokens of a rank, 32 ranks: dispatch 155 µs and combine 273 µs."""
    wide = serve("deepseek-v3", "h100-sxm", precision="fp8", dp=32, ep=32)
    layer_s = exchange(wide, np.array([128.0])).expert_s[0] / 58
    assert layer_s == pytest.approx((155 + 273) * 1e-6, rel=0.1)


def test_every_block_is_reduced_once(shelf: Catalog) -> None:
    assert reduced_blocks(shelf.model("llama-3.1-70b"), at_experts=True) == (160, 0)
    assert reduced_blocks(shelf.model("deepseek-v3"), at_experts=False) == (61 + 3, 58)


def test_cards_without_links_talk_over_the_servers_pcie(serve: Serve) -> None:
    assert replica_system(serve("llama-3.1-8b", "l40s", tp=2)).num_domain == 8
    assert exchange(serve("llama-3.1-8b", "l40s", tp=2), np.array([1024.0])).total_s[0] > 0


def test_a_popular_expert_holds_up_its_rank() -> None:
    tokens = np.array([64.0, 4096.0])
    assert np.all(busiest_rank(tokens, 256, 8, 1, 1.2) == 1.0)
    skewed = [busiest_rank(tokens, 256, 8, num, 1.2) for num in (2, 8, 32)]
    assert np.all(np.diff(skewed, axis=0) > 0)
    assert np.all(skewed[-1] <= 32.0)


@pytest.mark.parametrize("num_ranks", [4, 8, 32])
@pytest.mark.parametrize("exponent", [1.01, 1.2])
def test_the_busiest_rank_is_that_of_random_placements(num_ranks: int, exponent: float) -> None:
    draw, tokens = np.random.default_rng(5), np.array([1024.0])
    shares = popularity(tokens, 256, 8, exponent)[0]
    placed = [draw.permutation(shares).reshape(num_ranks, -1).sum(axis=1).max() for _ in range(300)]
    expected = num_ranks * float(np.mean(placed))
    assert busiest_rank(tokens, 256, 8, num_ranks, exponent)[0] == pytest.approx(expected, rel=0.16)


def test_skewed_routing_slows_expert_ranks(serve: Serve) -> None:
    even, skewed = (
        price_steps(serve("deepseek-v3", "h200-sxm", precision="fp8", dp=8, ep=8, routing_skew=skew)).table
        for skew in (0.0, 1.2)
    )
    assert tokens_time(skewed, 2048) > 1.05 * tokens_time(even, 2048)


def test_an_uneven_spread_of_experts_is_refused(serve: Serve) -> None:
    with pytest.raises(ScenarioError, match="ep=3"):
        price_steps(serve("deepseek-v3", "h200-sxm", precision="fp8", dp=8, ep=3))


def test_an_engine_whose_kernels_nobody_measured_says_whose_it_takes(shelf: Catalog) -> None:
    stack, found = calibration_of(shelf.chip("h100-sxm"), "an engine of tomorrow")
    assert (stack, found.level) == ("vllm", "measured")
    stack, found = calibration_of(shelf.chip("mi300x"), "vllm")
    assert (stack, found.level) == (None, "datasheet only")


def test_the_breakdown_is_the_step(serve: Serve) -> None:
    replica = serve("llama-3.1-70b", tp=4)
    figure = step_breakdown(replica, num_decodes=64, mean_context=1500, chunks=[(2000, 1000)])
    assert sum(part.value for part in figure.parts) == pytest.approx(figure.value)
    assert {"matrix products", "attention", "exchange", "head", "host"} <= {
        part.name for part in figure.parts
    }
    assert figure.value == pytest.approx(
        step(price_steps(replica).table, 64, 1500.0, [(2000.0, 1000.0)]), rel=0.01
    )


ANCHORS = {
    "llama3-8b": ("llama-3.1-8b", 1),
    "llama3-70b": ("llama-3.1-70b", 1),
    "llama3-70b-tp8shard": ("llama-3.1-70b", 8),
}


@pytest.mark.parametrize("phase", ["decode", "prefill"])
@pytest.mark.parametrize("name", ANCHORS)
def test_our_own_passes_on_an_h200(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, name: str, phase: str
) -> None:
    """Whole passes of a small engine of library calls, on one chip: a shard of eight has no exchange there."""
    rows = [
        row
        for row in csv.DictReader(MEASURED.read_text().splitlines())
        if (row["model"], row["phase"]) == (name, phase)
    ]
    model, tp = ANCHORS[name]
    replica = serve(model, "h200-sxm", tp=tp)
    num_layers = int(rows[0]["layers_run"])
    replica = msgspec.structs.replace(
        replica,
        engine=msgspec.structs.replace(
            engine("vllm"), stack="pytorch", token_budget=16384, host_step_s=0.0, host_sequence_s=0.0
        ),
        model=msgspec.structs.replace(
            replica.model, num_layers=num_layers, layers=replica.model.layers[:num_layers]
        ),
    )
    silent = exchange(msgspec.structs.replace(replica, tp=1), np.ones(1))
    monkeypatch.setattr(
        "datahall.inference.step.price.exchange",
        lambda _, tokens: msgspec.structs.replace(
            silent, tensor_s=0 * tokens, expert_s=0 * tokens, stage_s=0 * tokens
        ),
    )
    monkeypatch.setattr("datahall.inference.step.price.gather_logits", lambda _, rows: 0 * rows)
    table = price_steps(replica).table
    ratios = []
    for row in rows:
        batch, length, measured_s = int(row["batch"]), int(row["tokens_or_ctx"]), float(row["ms_run"]) * 1e-3
        found = (
            decode_step_time(table, batch, float(length))
            if phase == "decode"
            else step(table, 0, 0.0, [(float(length), 0.0)] * batch)
        )
        ratios.append(found / measured_s)
    assert len(rows) >= 12
    assert np.mean(np.abs(np.array(ratios) - 1)) < 0.08


@pytest.mark.parametrize("peer_to_peer", [True, False])
@pytest.mark.parametrize(
    ("model", "options"), [("qwen3-32b", {"tp": 2}), ("qwen3-30b-a3b", {"dp": 2, "ep": 2})]
)
def test_one_more_decode_never_shortens_a_step_of_two_cards(
    serve: Serve, model: str, options: dict[str, object], peer_to_peer: bool
) -> None:
    replica = msgspec.structs.replace(serve(model, chip="rtx-pro-6000", **options), peer_to_peer=peer_to_peer)
    table = price_steps(replica).table
    times_s = np.array([decode_step_time(table, n, 1200.0) for n in range(1, 257)])
    assert np.all(times_s > 0.98 * np.maximum.accumulate(times_s))


def test_cards_that_send_through_their_host_take_longer(serve: Serve) -> None:
    replica = serve("qwen3-32b", chip="rtx-pro-6000", tp=2)
    tokens = np.array([1.0, 64.0, 2048.0])
    staged = exchange(msgspec.structs.replace(replica, peer_to_peer=False), tokens)
    assert np.all(staged.total_s > exchange(replica, tokens).total_s)


def test_decodes_beside_a_prompt_cost_more_where_the_kernel_does_not_pack_their_heads(serve: Serve) -> None:
    card, server = (
        price_steps(serve("llama-3.1-8b", chip=name)).table for name in ("rtx-pro-6000", "h100-sxm")
    )
    assert 1.5 < joined_time(card, 128, 1300.0, 1024.0) / decode_time(card, 128, 1300.0) < 2.2
    assert joined_time(server, 128, 1300.0, 1024.0) == decode_time(server, 128, 1300.0)


def test_the_breakdown_knows_decodes_beside_a_prompt(serve: Serve) -> None:
    replica = serve("llama-3.1-8b", chip="rtx-pro-6000")
    table = price_steps(replica).table
    figure = step_breakdown(replica, num_decodes=64, mean_context=1500, chunks=[(1000, 500)])
    extra_s = joined_time(table, 64, 1500.0, 1000.0) - decode_time(table, 64, 1500.0)
    assert figure.value == pytest.approx(step(table, 64, 1500.0, [(1000, 500)]) + extra_s, rel=0.03)
    assert extra_s > 0.06 * figure.value

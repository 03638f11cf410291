"""Laws that every pass obeys, whatever the numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.catalog import Catalog
from datahall.catalog.entries.model import Model
from datahall.workload.backward import training_pass
from datahall.workload.forward import forward_pass
from datahall.workload.operator import (
    Gemm,
    GroupedGemm,
    Stream,
    total_bytes,
    total_flop,
    total_weight_bytes,
)
from datahall.workload.precision import PRESETS, Precision
from datahall.workload.sharding import Sharding

KINDS = ("llama-3.1-8b", "gpt-3-175b", "mixtral-8x7b", "deepseek-v3", "gemma-3-27b", "qwen3-next-80b-a3b")
NORMED = [one for one in Catalog(user=False).models() if one.qk_norm != "none"]
kinds = st.sampled_from(KINDS)
few = settings(max_examples=25, deadline=None)


@few
@given(
    kinds,
    st.lists(
        st.tuples(st.integers(1, 64), st.integers(1, 500), st.integers(0, 5000)), min_size=1, max_size=5
    ),
)
def test_columns_give_what_scalars_give(
    models: dict[str, Model], kind: str, rows: list[tuple[int, int, int]]
) -> None:
    batch, query, past = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    columns = forward_pass(models[kind], batch=batch, query=query, past=past, latent="expanded")
    for index, (one_batch, one_query, one_past) in enumerate(rows):
        alone = forward_pass(
            models[kind],
            batch=float(one_batch),
            query=float(one_query),
            past=float(one_past),
            latent="expanded",
        )
        for column, single in zip(columns, alone, strict=True):
            for field in ("flop", "read_bytes", "write_bytes", "weight_bytes"):
                whole = np.broadcast_to(getattr(column, field), len(rows))
                assert whole[index] == pytest.approx(getattr(single, field), rel=1e-12), (single.name, field)


@few
@given(kinds, st.integers(1, 6), st.lists(st.integers(1, 900), min_size=1, max_size=5))
def test_the_chunks_of_a_prompt_do_the_work_of_the_prompt(
    models: dict[str, Model], kind: str, batch: int, chunks: list[int]
) -> None:
    def flop(query: float, past: float) -> float:
        return float(
            total_flop(
                forward_pass(
                    models[kind], batch=batch, query=query, past=past, logits="all", latent="absorbed"
                )
            )
        )

    starts = np.cumsum([0, *chunks[:-1]])
    parts = sum(flop(query, past) for query, past in zip(chunks, starts, strict=True))
    assert parts == pytest.approx(flop(sum(chunks), 0), rel=1e-12)


@few
@given(
    st.sampled_from(["llama-3.1-8b", "gpt-3-175b", "mixtral-8x7b", "gemma-3-27b"]),
    st.sampled_from([1, 2, 4, 8]),
    st.integers(1, 32),
    st.integers(1, 600),
)
def test_the_shards_of_tensor_parallelism_sum_to_the_whole(
    models: dict[str, Model], kind: str, tp: int, batch: int, query: int
) -> None:
    def flops(sharding: Sharding) -> dict[str, float]:
        step = forward_pass(models[kind], batch=batch, query=query, sharding=sharding)
        return {
            one.name: float(one.flop)
            for one in step
            if isinstance(one.shape, (Gemm, GroupedGemm)) and one.name != "router"
        }

    whole, part = flops(Sharding()), flops(Sharding(tp=tp))
    assert {name: tp * flop for name, flop in part.items()} == pytest.approx(whole)


@few
@given(kinds, st.sampled_from(sorted(PRESETS)), st.integers(1, 64), st.integers(0, 4000))
def test_no_operator_moves_less_than_its_weights(
    models: dict[str, Model], kind: str, preset: str, batch: int, past: int
) -> None:
    step = forward_pass(models[kind], batch=batch, query=1, past=past, precision=Precision.named(preset))
    for one in step:
        assert one.read_bytes >= one.weight_bytes >= 0
        assert one.flop >= 0
        assert one.write_bytes > 0
    assert total_bytes(step) > total_weight_bytes(step) > 0


@few
@given(kinds, st.integers(1, 64), st.integers(1, 3000), st.integers(1, 1000))
def test_more_context_is_never_less_work(
    models: dict[str, Model], kind: str, batch: int, past: int, more: int
) -> None:
    def cost(context: int) -> tuple[float, float]:
        step = forward_pass(models[kind], batch=batch, query=1, past=context)
        return float(total_flop(step)), float(total_bytes(step))

    near, far = cost(past), cost(past + more)
    assert far[0] >= near[0]
    assert far[1] >= near[1]


@few
@given(kinds, st.integers(1, 4), st.integers(2, 500), st.sampled_from([1, 2]))
def test_context_parallelism_divides_training_work(
    models: dict[str, Model], kind: str, batch: int, half: int, cp: int
) -> None:
    def flop(sharding: Sharding) -> float:
        step = training_pass(models[kind], batch=batch, seq=2 * half, sharding=sharding)
        return float(total_flop(step))

    assert cp * flop(Sharding(cp=cp)) == pytest.approx(flop(Sharding()), rel=1e-12)


@pytest.mark.parametrize("model", NORMED, ids=lambda model: model.name)
def test_the_norm_of_queries_and_keys_is_divided_row_by_row(model: Model) -> None:
    """A search over layouts asks for every degree at once."""
    degrees = np.array([1.0, 2.0])
    columns = training_pass(model, batch=1.0, seq=256.0, sharding=Sharding(tp=degrees))
    norms = [one for one in columns if one.name.startswith("qk_norm")]
    assert norms
    for row, tp in enumerate(degrees.tolist()):
        alone = training_pass(model, batch=1.0, seq=256.0, sharding=Sharding(tp=tp))
        same = [one for one in alone if one.name.startswith("qk_norm")]
        for column, single in zip(norms, same, strict=True):
            assert isinstance(column.shape, Stream)
            assert isinstance(single.shape, Stream)
            assert np.broadcast_to(column.shape.row_width, 2)[row] == single.shape.row_width > 0
            assert np.broadcast_to(column.read_bytes, 2)[row] == single.read_bytes

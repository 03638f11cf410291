"""Measured kernels and whole forward passes: what the silicon room is judged on.

Files are told apart by their columns: our H200 tables (GEMM, attention, grouped GEMM, element-wise, forward passes)
and the kernel tables of AIConfigurator (GEMM, attention, MoE layers), which were measured under vLLM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from datahall.validation.kernels.our_tables import (
    MODELS,
    our_attention,
    our_elementwise,
    our_experts,
    our_gemm,
    our_pass,
)
from datahall.validation.kernels.prediction import each
from datahall.validation.kernels.vllm_tables import SYSTEMS, table_attention, table_experts, table_gemm
from datahall.validation.measurement import Format, Outcome, Row
from datahall.validation.scorecard import Prediction

__all__ = ["FORMATS", "MODELS", "SYSTEMS", "our_pass"]


def _by_row(predict: Callable[[Row], Prediction]) -> Callable[[Sequence[Row]], Iterable[Outcome]]:
    return lambda rows: each(rows, predict)


FORMATS = (
    Format("GEMM", frozenset({"dtype", "m", "n", "k", "ms"}), _by_row(our_gemm)),
    Format(
        "attention",
        frozenset({"kind", "batch", "q_len", "kv_len", "heads", "kv_heads", "head_dim", "ms"}),
        _by_row(our_attention),
    ),
    Format(
        "grouped GEMM",
        frozenset({"tokens", "experts", "topk", "hidden", "expert_ffn", "op", "ms", "how"}),
        _by_row(our_experts),
    ),
    Format("element-wise", frozenset({"op", "tokens", "width", "ms"}), _by_row(our_elementwise)),
    Format(
        "forward passes",
        frozenset({"model", "precision", "layers_run", "phase", "batch", "tokens_or_ctx", "ms_run"}),
        _by_row(our_pass),
    ),
    Format(
        "GEMM table", frozenset({"system", "gemm_dtype", "m", "n", "k", "latency_ms"}), _by_row(table_gemm)
    ),
    Format(
        "attention table",
        frozenset({"system", "batch_size", "q_len", "kv_len_past", "num_heads", "latency_ms"}),
        _by_row(table_attention),
    ),
    Format(
        "MoE table",
        frozenset({"system", "moe_dtype", "num_tokens", "num_experts", "topk", "latency_ms"}),
        _by_row(table_experts),
    ),
)

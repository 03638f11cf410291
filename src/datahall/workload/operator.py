"""What a chip is asked to do: one operator with its shape, its arithmetic and its traffic.

Shapes hold plain numbers or NumPy columns: the same function describes one operator or a hundred thousand.
Traffic is the least that can cross the memory interface: each operand once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

Number: TypeAlias = "float | NDArray[np.float64]"


class Gemm(msgspec.Struct, frozen=True):
    """An (m × k) activation times a (k × n) weight."""

    m: Number
    n: Number
    k: Number


class GroupedGemm(msgspec.Struct, frozen=True):
    """One (rows/num_experts × k) times (k × n) GEMM per expert, or per head of a batched projection.

    `rows` token copies spread over the `num_experts` experts that live on the chip, hit or not.
    """

    rows: Number  # token copies that reach this chip, all experts together
    num_experts: Number
    n: Number
    k: Number
    batched: bool = False  # equal rows each, as one batched product: heads, not routed experts


class Attention(msgspec.Struct, frozen=True):
    """Scaled dot-product attention of `batch` sequences on one chip.

    Each sequence has `q_len` new tokens that see `kv_len` tokens, themselves included.
    With a window a token sees at most `window` of them (0: all).
    """

    batch: Number
    q_len: Number
    kv_len: Number
    num_heads: Number
    num_kv_heads: Number
    head_dim: Number
    value_dim: Number
    window: float = 0.0  # a property of the layer, never a column
    causal: bool = True


class Stream(msgspec.Struct, frozen=True):
    """Memory-bound work: so many bytes in and out, in so many kernels.

    `rows` work reduces along rows of `row_width` elements (norms); `strided` work reads the halves of a fused
    projection element by element, as unfused library kernels do; `cast` work finds a scale, then casts.
    """

    num_kernels: Number = 1.0
    pattern: Literal["plain", "rows", "strided", "cast"] = "plain"
    row_width: Number = 0.0


Shape: TypeAlias = Gemm | GroupedGemm | Attention | Stream


class Operator(msgspec.Struct, frozen=True, kw_only=True):
    """One operator of a pass: done `count` times, each with this shape, arithmetic and traffic."""

    name: str
    shape: Shape
    precision: str  # of the arithmetic: "bf16", "fp8", …
    weight_precision: str  # of the stored weights or cache that is streamed in: "bf16", "int4", …
    flop: Number
    read_bytes: Number  # weights and cache included
    write_bytes: Number
    weight_bytes: Number = 0.0
    count: float = 1.0
    backward: bool = False

    @property
    def intensity_flop_per_byte(self) -> Number:
        """Arithmetic per byte moved [FLOP/B]."""
        return self.flop / (self.read_bytes + self.write_bytes)


def total_flop(operators: Iterable[Operator]) -> Number:
    """Arithmetic of a pass, repeated operators included [FLOP]."""
    return sum((one.count * one.flop for one in operators), 0.0)


def total_bytes(operators: Iterable[Operator]) -> Number:
    """Least memory traffic of a pass, reads and writes [B]."""
    return sum((one.count * (one.read_bytes + one.write_bytes) for one in operators), 0.0)


def total_weight_bytes(operators: Iterable[Operator]) -> Number:
    """Weights that a pass streams in [B]."""
    return sum((one.count * one.weight_bytes for one in operators), 0.0)


def gemm_flop(m: Number, n: Number, k: Number) -> Number:
    """Arithmetic of an (m × k)·(k × n) product: a multiply and an add per term [FLOP].

        FLOP = 2·m·n·k

    >>> gemm_flop(1, 6144, 4096)
    50331648
    """
    return 2 * m * n * k


def visible_tokens(query: Number, past: Number, window: float = 0.0) -> Number:
    """Query–key pairs of a causal chunk: each new token sees the past, its forerunners and itself.

    Parameters: query, new tokens of the sequence; past, tokens before them; window, the most a token can
    see (0: no limit).

        Σ_{i=1..q} min(past + i, w)  =  T(past + q) − T(past),   T(n) = m(m+1)/2 + (n − m)·w,  m = min(n, w)

    so that the chunks of a prompt add up to the prompt.

    >>> visible_tokens(4, past=0), visible_tokens(2, past=0) + visible_tokens(2, past=2)
    (10.0, 10.0)
    >>> float(visible_tokens(1, past=99, window=8))
    8.0
    """
    return _pairs_up_to(past + query, window) - _pairs_up_to(past, window)


def _pairs_up_to(length: Number, window: float) -> Number:
    if not window:
        return length * (length + 1) / 2
    inside = np.minimum(length, window)
    pairs: Number = inside * (inside + 1) / 2 + (length - inside) * window
    return pairs


def attention_flop(
    pairs: Number, num_heads: Number, head_dim: Number, value_dim: Number | None = None
) -> Number:
    """Arithmetic of scores and weighted values over `pairs` query–key pairs [FLOP].

        FLOP = 2·pairs·heads·(head_dim + value_dim)

    The softmax (about 5 FLOP per pair and head) runs beside the tensor cores and is not counted.
    Reference: Dao et al. (2022), FlashAttention, whose benchmarks count the same way.

    >>> attention_flop(pairs=visible_tokens(2048, past=0), num_heads=32, head_dim=128)
    34376515584.0
    """
    return 2 * pairs * num_heads * (head_dim + (head_dim if value_dim is None else value_dim))


def experts_hit(tokens: Number, num_experts: Number, top_k: Number, num_local: Number) -> Number:
    """Expected number of a chip's experts that at least one token reaches, under uniform routing.

    Parameters: tokens routed, all chips of the expert group together; experts of the layer; experts per
    token; experts on this chip.

        hit = E_local·(1 − (1 − k/E)^tokens)

    >>> experts_hit(1, 256, 8, 256), round(experts_hit(64, 256, 8, 32), 1)
    (8.0, 27.8)
    """
    missed = (1 - top_k / num_experts) ** tokens
    return num_local * (1 - missed)


def keys_read(query: Number, past: Number, window: float) -> Number:
    """Tokens whose keys and values a causal chunk needs at least once.

        past + q,  and with a window  min(past + q, w + q − 1)

    >>> keys_read(1, past=4095, window=0), float(keys_read(1, past=4095, window=1024))
    (4096, 1024.0)
    """
    if not window:
        return past + query
    seen: Number = np.minimum(past + query, window + query - 1)
    return seen

"""Arithmetic per token, and the share of the peak that a run achieves, with the convention stated.

Publications differ in what they count as a model's FLOPs; a comparison of MFU is one of conventions first.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from datahall.catalog.entries.model import Model
from datahall.workload.forward import forward_pass, served_pass
from datahall.workload.memory.kv_cache import kv_bytes_per_token
from datahall.workload.operator import Attention, Number, Operator, attention_flop, total_bytes, total_flop
from datahall.workload.precision import Precision

Convention = Literal["causal", "full", "matmul"]


def forward_flop_per_token(model: Model, context: Number, convention: Convention = "causal") -> Number:
    """Arithmetic of one token of a sequence of `context` tokens, averaged over the sequence [FLOP].

        2·N_matmul + attention:
        "causal"  4·n·d·(c + 1)/2 per attention layer, what must be done (Llama 3, FlashAttention)
        "full"    4·n·d·c, as if every token saw all (PaLM's MFU, Megatron-LM)
        "matmul"  none: the 2N of scaling laws

    N_matmul are the weights that a token is multiplied by: active experts and the head count, the
    embedding lookup does not.  The scan of recurrent layers is counted with them.
    References: Kaplan et al. (2020); Chowdhery et al. (2022), appendix B; Narayanan et al. (2021), appendix.

    >>> from datahall.catalog.entries.model import Layer
    >>> llama = Model(name="llama-3.1-8b", title="", family="", year=2024, num_layers=32, hidden=4096,
    ...     num_heads=32, num_kv_heads=8, head_dim=128, ffn=14336, vocab=128256, max_context=131072,
    ...     layers=(Layer(mixer="full", mlp="dense"),) * 32)
    >>> [round(float(forward_flop_per_token(llama, 8192, c)) / 1e9, 2) for c in ("causal", "full", "matmul")]
    [17.16, 19.3, 15.01]
    """
    operators = forward_pass(
        model, batch=1.0, query=context, logits="all", cached=False, latent="expanded", quantise=False
    )
    cores = [one for one in operators if isinstance(one.shape, Attention)]
    causal = total_flop(cores)
    matmul = (total_flop(operators) - causal) / context
    if convention == "matmul":
        return matmul
    if convention == "causal":
        return matmul + causal / context
    return matmul + sum((one.count * _all_pairs_flop(one.shape) for one in cores), 0.0) / context


def training_flop_per_token(model: Model, context: Number, convention: Convention = "causal") -> Number:
    """Arithmetic of forward and backward for one token: three forwards [FLOP], the numerator of MFU.

        6·N_matmul + 3·attention        (causal: + 6·L·h·c for n·d = h)

    Recomputation is left out; hardware FLOPs (HFU) add it.
    """
    return 3 * forward_flop_per_token(model, context, convention)


def mfu_fraction(
    tokens_per_s: Number, flop_per_token: Number, num_chips: Number, peak_flop_per_s: Number
) -> Number:
    """Model FLOPs utilisation: useful arithmetic over what the chips could do.

        MFU = tokens/s · FLOP/token / (chips · peak)

    Reference: Chowdhery et al. (2022), PaLM, appendix B.

    >>> round(mfu_fraction(22592.7, 18.56e9, 1, 989.5e12), 3)
    0.424
    """
    return tokens_per_s * flop_per_token / (num_chips * peak_flop_per_s)


def _all_pairs_flop(shape: object) -> Number:
    assert isinstance(shape, Attention)
    pairs = shape.batch * shape.q_len * shape.kv_len
    return attention_flop(pairs, shape.num_heads, shape.head_dim, shape.value_dim)


class TokenWork(msgspec.Struct, frozen=True, kw_only=True):
    """What one token of a model costs, whatever chip it runs on."""

    forward_flop: float  # mean over a sequence, causal attention counted
    training_flop: float
    matmul_flop: float  # matrix products alone: the 2N of scaling laws
    decode_bytes: float  # moved by one decoded token that runs alone
    kv_bytes: float  # added to the cache


def token_work(model: Model, context: int, precision: Precision) -> TokenWork:
    """Arithmetic and bytes of one token in a sequence of `context` tokens."""

    def described(formats: Precision) -> tuple[Operator, ...]:
        return forward_pass(model, batch=1.0, query=1.0, past=float(context - 1), precision=formats)

    decode = served_pass(described, model, precision)
    return TokenWork(
        forward_flop=float(forward_flop_per_token(model, context)),
        training_flop=float(training_flop_per_token(model, context)),
        matmul_flop=float(forward_flop_per_token(model, context, "matmul")),
        decode_bytes=float(total_bytes(decode)),
        kv_bytes=float(kv_bytes_per_token(model, precision)),
    )

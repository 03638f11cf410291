"""How many kernels and passes over memory the work between the GEMMs takes, by style of engine."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from datahall.errors import UnknownNameError


class Passes(msgspec.Struct, frozen=True):
    """Kernels launched, and how often each element is read and written, in elements of the wide format."""

    num_kernels: float
    reads: float
    writes: float
    pattern: Literal["plain", "rows", "strided"] = "plain"


class Fusion(msgspec.Struct, frozen=True, kw_only=True):
    """The element-wise kernels of an engine.

    `norm` and `add_norm` (a residual addition, then a norm) count per element of the hidden width, `rope`
    per element of queries and keys, `gated` (activation times up-projection) per element of the product,
    `loss` per logit.  What has no backward of its own here reads what forward read and wrote, and writes
    what forward read.
    """

    norm: Passes
    add: Passes
    add_norm: Passes
    rope: Passes
    gated: Passes
    plain: Passes
    loss: Passes
    norm_backward: Passes
    add_norm_backward: Passes
    loss_backward: Passes

    @classmethod
    def named(cls, name: str) -> Fusion:
        """Return the kernels of a style of engine: "fused", "reduced", "lean" or "eager".

        >>> Fusion.named("lean").gated
        Passes(num_kernels=2, reads=3, writes=2, pattern='strided')
        """
        if name not in STYLES:
            raise UnknownNameError("fusion style", name, STYLES, hint=f"styles: {', '.join(STYLES)}")
        return STYLES[name]


_ADD = Passes(1, 2, 1)
_ONCE = Passes(1, 1, 1)
_NORM = Passes(1, 1, 1, "rows")

# vLLM, SGLang, TensorRT-LLM: one kernel for addition and norm, one for SiLU and product.
_FUSED = Fusion(
    norm=_NORM,
    add=_ADD,
    add_norm=Passes(1, 2, 2, "rows"),
    rope=_ONCE,
    gated=Passes(1, 2, 1),
    plain=_ONCE,
    loss=_ONCE,  # cross-entropy that leaves its gradient in place of the logits
    norm_backward=Passes(1, 2, 1),
    add_norm_backward=Passes(1, 3, 1),
    loss_backward=Passes(0, 0, 0),
)

STYLES: Mapping[str, Fusion] = MappingProxyType(
    {
        "fused": _FUSED,
        # The same where the all-reduce before a norm also adds and normalises: its rows, no kernel of their own.
        "reduced": msgspec.structs.replace(_FUSED, add_norm=Passes(0, 2, 2, "rows")),
        # One kernel per named operation, as in a small engine of library calls.
        "lean": Fusion(
            norm=_NORM,
            add=_ADD,
            add_norm=Passes(2, 3, 2, "rows"),
            rope=Passes(2, 1, 1),
            gated=Passes(2, 3, 2, "strided"),
            plain=_ONCE,
            loss=Passes(4, 7, 4),  # Megatron: cast, maximum, exponential in place, sum
            norm_backward=Passes(1, 2, 1),
            add_norm_backward=Passes(2, 4, 2),
            loss_backward=Passes(2, 4, 3),
        ),
        # Hugging Face Transformers uncompiled: a norm is cast, square, mean, + ε, rsqrt, product, cast and
        # weight (a 4-byte element counts twice); rotary is two products, a negation, a concatenation and an
        # addition for queries and again for keys; the loss is cast, log-softmax, gather.
        "eager": Fusion(
            norm=Passes(8, 10, 8),
            add=_ADD,
            add_norm=Passes(9, 12, 9),
            rope=Passes(10, 5.5, 4.5),
            gated=Passes(2, 3, 2, "strided"),
            plain=_ONCE,
            loss=Passes(3, 3, 4),
            norm_backward=Passes(15, 24, 15),
            add_norm_backward=Passes(16, 26, 16),
            loss_backward=Passes(3, 6, 5),
        ),
    }
)

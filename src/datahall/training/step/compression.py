"""Gradients made smaller before they are exchanged: fewer bytes on the wire, more work on the chip.

What it does to the loss is not modelled: a step is timed as if every step were as good as without it.  1-bit Adam,
for one, needs an uncompressed warm-up of 15 to 25 % of the steps.  What was published of that: `training/ladder`.
References: Lin et al. (2018), Deep Gradient Compression; Tang et al. (2021), 1-bit Adam; Vogels et al. (2019),
PowerSGD; Peng et al. (2023), FP8-LM.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.catalog.entries.model import Model
from datahall.scenario.words import COMPRESSIONS

SGD_RANK = 4.0  # of PowerSGD's two factors; its authors' middle choice
BLOCK = 128.0  # values that share one fp32 scale
KEPT_SHARE = 0.001  # of the values that top-k sends; Lin et al. (2018)
CAVEAT = "convergence is not modelled: every step is taken to be as good as an uncompressed one"


class Compression(msgspec.Struct, frozen=True, kw_only=True):
    """What one value of a gradient costs: on the wire, in kernels before and after, and kept between steps [B]."""

    name: str
    title: str
    wire_bytes: float  # NaN: depends on the shape of the weights
    kernel_bytes: float  # read and written beside the exchange, 32-bit gradients
    kept_bytes: float = 0.0  # error that is fed back in the next step
    sparse: bool = False  # each rank sends other values: a sum over ranks has those of all of them


# Kernel bytes of top-k, signs and factors are what their time is worth at that share of the bandwidth: PyTorch 2.11,
# compiled, on matrices of 4096² on one H200, 2026-11 (casts took 13.5 there); top-k without a sampled threshold 124.
METHODS: Mapping[str, Compression] = MappingProxyType(
    {
        # cast there (4 read, 2 written) and back
        "bf16": Compression(name="bf16", title="16-bit gradients", wire_bytes=2.0, kernel_bytes=12.0),
        # largest value of a block, cast there, and back
        "fp8": Compression(
            name="fp8",
            title="8-bit gradients, a scale per block",
            wire_bytes=1.0 + 4.0 / BLOCK,
            kernel_bytes=14.0,
        ),
        # a value and its index; the threshold is that of a sample
        "top-k": Compression(
            name="top-k",
            title=f"the largest {100 * KEPT_SHARE:g} % of the values, the others added to the next step's",
            wire_bytes=KEPT_SHARE * 8.0,
            kernel_bytes=97.0,
            kept_bytes=4.0,
            sparse=True,
        ),
        # 16 in kernels of its own: gradient and error read, error and signs written, signs read, gradient written
        "1-bit": Compression(
            name="1-bit",
            title="signs with the error fed back",
            wire_bytes=1.0 / 8.0 + 4.0 / 1024.0,
            kernel_bytes=36.0,
            kept_bytes=4.0,
        ),
        # 24 in kernels of its own: gradient and error read, twice multiplied, once restored and the error written
        "power-sgd": Compression(
            name="power-sgd",
            title=f"two factors of rank {SGD_RANK:g}, the error fed back",
            wire_bytes=float("nan"),
            kernel_bytes=70.0,
            kept_bytes=4.0,
        ),
    }
)


def wire_bytes(method: Compression | None, model: Model, plain_bytes: float) -> float:
    """Bytes of one gradient value on the wire; never more than without compression.

        PowerSGD of rank r on a weight of m × n:   4·r·(m + n)/(m·n),  here m = hidden, n the width of the MLP

    >>> from datahall.catalog import load
    >>> gpt = load().model("gpt-3-175b")
    >>> round(4.0 / wire_bytes(METHODS["1-bit"], gpt, 4.0), 1)
    31.0
    """
    if method is None:
        return plain_bytes
    if np.isnan(method.wire_bytes):
        width = model.ffn or (model.moe.expert_ffn if model.moe else model.hidden)
        return min(plain_bytes, 4.0 * SGD_RANK * (model.hidden + width) / (model.hidden * width))
    return min(plain_bytes, method.wire_bytes)


def wire_column(codes: NDArray[np.int8], model: Model, plain_bytes: float) -> NDArray[np.float64]:
    """Bytes of one gradient value on the wire for every row of a space."""
    table = [wire_bytes(METHODS.get(name), model, plain_bytes) for name in COMPRESSIONS]
    return np.array(table)[codes]


def summed_column(
    codes: NDArray[np.int8], model: Model, plain_bytes: float, ranks: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The same of a sum over so many ranks; of sparse ones it has the values of all, and is never more than dense.

    >>> from datahall.catalog import load
    >>> top_k = np.array([COMPRESSIONS.index("top-k")] * 2, np.int8)
    >>> summed_column(top_k, load().model("gpt-3-175b"), 4.0, np.array([8.0, 1024.0])).tolist()
    [0.064, 4.0]
    """
    sparse = np.array([name in METHODS and METHODS[name].sparse for name in COMPRESSIONS])[codes]
    wire = wire_column(codes, model, plain_bytes)
    return np.where(sparse, np.minimum(plain_bytes, wire * ranks), wire)


def kernel_column(codes: NDArray[np.int8], model: Model, plain_bytes: float) -> NDArray[np.float64]:
    """Bytes moved in the chip's memory per gradient value for every row; nothing where the wire gains nothing."""
    table = [
        method.kernel_bytes if method and wire_bytes(method, model, plain_bytes) < plain_bytes else 0.0
        for method in map(METHODS.get, COMPRESSIONS)
    ]
    return np.array(table)[codes]


def kept_column(codes: NDArray[np.int8]) -> NDArray[np.float64]:
    """Bytes kept from step to step per gradient value for every row of a space."""
    return np.array([METHODS[name].kept_bytes if name in METHODS else 0.0 for name in COMPRESSIONS])[codes]

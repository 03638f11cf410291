"""Kernels of matrix products by the formats they take, and which stands in for one that nobody measured."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from datahall.catalog.number_formats import FORMATS, is_wide, unit_for


class KernelFormat(msgspec.Struct, frozen=True, kw_only=True):
    """What a kernel multiplies in, and its relatives, the nearest first."""

    unit: str = ""  # of its arithmetic; "": it is named after it
    packed: str = ""  # how kernels are named that take weights of this unit and widen them
    products: tuple[str, ...] = ()  # whose constants a plain product takes where it has none of its own
    experts: tuple[str, ...] = ()  # and a product of experts


# A kernel is named after its arithmetic, or WEIGHTS-ARITHMETIC where weights are kept in fewer bits; fp8-block takes a
# scale per block of weights.  One without a row has no relatives: it takes the constants of bf16.
KERNELS: Mapping[str, KernelFormat] = MappingProxyType(
    {
        "fp16": KernelFormat(experts=("bf16",)),
        "fp8": KernelFormat(packed="int8", experts=("fp8-block",)),
        "fp8-block": KernelFormat(unit="fp8"),
        "fp6": KernelFormat(products=("fp4", "fp8")),
        "fp4": KernelFormat(packed="mxfp4", products=("fp8",), experts=("mxfp4-fp8", "fp8", "fp8-block")),
        "int8": KernelFormat(packed="int8", products=("fp8",), experts=("fp8", "fp8-block")),
        "int4": KernelFormat(packed="int4", products=("fp8",)),
        "mxfp4-fp8": KernelFormat(unit="fp8", experts=("fp8-block",)),
        "mxfp4-bf16": KernelFormat(unit="bf16", experts=("int4-bf16", "bf16")),
        "int4-bf16": KernelFormat(unit="bf16", experts=("mxfp4-bf16", "bf16")),
        "int8-bf16": KernelFormat(unit="bf16", experts=("int4-bf16", "bf16")),
    }
)
_PLAIN = KernelFormat()


def kernel_format(precision: str, weight_precision: str, *, block_scaled: bool = False) -> str:
    """Which kernel multiplies: the format of the arithmetic, and that of the weights where it is narrower.

    >>> kernel_format("bf16", "int4"), kernel_format("fp8", "fp8", block_scaled=True), kernel_format("fp4", "nvfp4")
    ('int4-bf16', 'fp8-block', 'fp4')
    """
    compute = unit_for(precision)
    packed = KERNELS.get(unit_for(weight_precision), _PLAIN).packed
    if is_wide(compute) and packed:
        return f"{packed}-bf16"
    if compute == "fp8" and packed and FORMATS[packed].bits < FORMATS[compute].bits:
        return "mxfp4-fp8"  # also of int4: the one kernel of 4-bit weights under FP8 that was measured
    return "fp8-block" if compute == "fp8" and block_scaled else compute


def arithmetic_of(kernel: str) -> str:
    """The unit that a kernel, or a number format, multiplies in.

    >>> arithmetic_of("int4-bf16"), arithmetic_of("nvfp4")
    ('bf16', 'fp4')
    """
    return KERNELS.get(kernel, _PLAIN).unit or unit_for(kernel)


def products_like(kernel: str) -> tuple[str, ...]:
    """Kernels whose constants a plain product takes that has none under its own name, the nearest first.

    >>> products_like("fp6"), products_like("int4-bf16")
    (('fp6', 'fp4', 'fp8', 'bf16'), ('bf16', 'bf16'))
    """
    unit = arithmetic_of(kernel)
    return unit, *KERNELS.get(unit, _PLAIN).products, "bf16"


def experts_like(kernel: str) -> tuple[str, ...]:
    """Kernels whose constants a product of experts takes, its own first.

    >>> experts_like("int8"), experts_like("tf32")
    (('int8', 'fp8', 'fp8-block', 'fp8', 'bf16'), ('tf32', 'bf16', 'fp8'))
    """
    last = ("fp8", "bf16") if casts_input(kernel) else ("bf16", "fp8")
    return kernel, *KERNELS.get(kernel, _PLAIN).experts, *last


def casts_input(kernel: str) -> bool:
    """Whether a kernel's input must first be cast to fewer bits.

    >>> casts_input("fp8-block"), casts_input("int4-bf16")
    (True, False)
    """
    return not is_wide(arithmetic_of(kernel))

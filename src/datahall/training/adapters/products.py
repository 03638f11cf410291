"""The kernels that adapters add to a micro-batch, and those that frozen weights do not need.

Beside a product of m tokens by a k × n weight, forward: tokens × A, its result × B, and their sum with the product;
backward: the gradients of both matrices and of what went in.  A frozen weight has no gradient of its own: a token
costs 4 FLOP a weight and not 6.  In NF4 it is brought to 16 bits each time before it is multiplied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from datahall.catalog.number_formats import bytes_per_value
from datahall.training.adapters.kept import WIDE_PRODUCTS
from datahall.workload.adapters.count import ADAPTED, adapted_columns
from datahall.workload.backward import Gradients, gradient_operators
from datahall.workload.fusion import Fusion
from datahall.workload.operator import Gemm, GroupedGemm, Number, Operator, Stream, gemm_flop

if TYPE_CHECKING:
    from datahall.training.step.step import Job

BESIDE = "_adapter_"  # in the name of an adapter's kernels
WIDEN = "dequantise_"


def is_frozen_gradient(job: Job, one: Operator) -> bool:
    """Whether an operator makes the gradient of a weight that is frozen."""
    if job.adapters is None or BESIDE in one.name:
        return False
    return one.name.endswith("_wgrad") or one.name == "embedding_backward"


def tuning_operators(
    job: Job, operators: Sequence[Operator], fusion: str, gradients: Gradients
) -> tuple[Operator, ...]:
    """What adapters and frozen weights add to the operators of a micro-batch; `_recompute` ones bring their own."""
    if job.adapters is None:
        return ()
    found: list[Operator] = []
    for one in operators:
        again = one.name.endswith("_recompute")
        if one.backward and not again:
            continue
        forward = [*_widened(one, job), *_beside(one, job)]
        found += [_named_again(each) for each in forward] if again else forward
        if not again:
            style = Fusion.named(fusion)
            found += [msgspec.structs.replace(each, backward=True) for each in _widened(one, job)]
            found += [undone for each in _beside(one, job) for undone in _undone(each, style, gradients, job)]
    return tuple(found)


def _named_again(one: Operator) -> Operator:
    return msgspec.structs.replace(one, name=f"{one.name}_recompute", backward=True)


def _beside(one: Operator, job: Job) -> Iterator[Operator]:
    """The forward kernels of the adapter beside a product; none where it has none."""
    assert job.adapters is not None
    name = one.name.removesuffix("_recompute")
    parts = ADAPTED[job.adapters.targets].get(name, 0)
    if not parts or not isinstance(one.shape, Gemm):
        return
    m, k, inner = one.shape.m, one.shape.k, float(job.adapters.rank * parts)
    n = one.shape.n * adapted_columns(job.model, job.adapters.targets)
    yield _product(one, f"{name}{BESIDE}shrink", m, k, inner, inner, job)
    yield _product(one, f"{name}{BESIDE}expand", m, float(job.adapters.rank), n, inner, job)
    summed = m * n * job.value_bytes
    yield _moved(one, f"{name}{BESIDE}sum", 2.0 * summed, summed, job)


def _product(one: Operator, name: str, m: Number, k: Number, n: Number, inner: float, job: Job) -> Operator:
    """A thin product; `inner` values lie between the two for each token, of all matrices that are joined."""
    value, weights = job.value_bytes, job.value_bytes * k * n
    into, out = (inner, n) if name.endswith("expand") else (k, inner)
    return Operator(
        name=name,
        shape=Gemm(m, n, k),
        precision=job.precision.wide_compute,
        weight_precision=job.precision.wide,
        flop=gemm_flop(m, n, k),
        read_bytes=value * m * into + weights,
        write_bytes=value * m * out,
        weight_bytes=weights,
        count=one.count,
    )


def _undone(one: Operator, style: Fusion, gradients: Gradients, job: Job) -> tuple[Operator, ...]:
    """Backward of an adapter's kernel; what went into both is added to the gradient of the product's own input."""
    if isinstance(one.shape, Gemm):
        wide = msgspec.structs.replace(
            job.precision, weights=job.precision.wide, activations=job.precision.wide
        )
        return gradient_operators(one, style, gradients, wide)
    return (msgspec.structs.replace(one, name=f"{one.name}_backward", backward=True),)


def _widened(one: Operator, job: Job) -> tuple[Operator, ...]:
    """The weight of a product brought from NF4 to the format that is multiplied."""
    assert job.adapters is not None
    name = one.name.removesuffix("_recompute")
    if not job.adapters.quantised or name in WIDE_PRODUCTS or not isinstance(one.shape, Gemm | GroupedGemm):
        return ()
    values = one.weight_bytes / bytes_per_value(one.weight_precision)
    return (_moved(one, f"{WIDEN}{name}", job.adapters.frozen_bytes * values, job.value_bytes * values, job),)


def _moved(one: Operator, name: str, read_bytes: Number, write_bytes: Number, job: Job) -> Operator:
    return Operator(
        name=name,
        shape=Stream(),
        precision=job.precision.wide,
        weight_precision=job.precision.wide,
        flop=0.0,
        read_bytes=read_bytes,
        write_bytes=write_bytes,
        count=one.count,
    )

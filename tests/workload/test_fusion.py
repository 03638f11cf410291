"""Passes over memory between the GEMMs, added up from the kernels that each style runs one after the other."""

from __future__ import annotations

import pytest

from datahall.errors import UnknownNameError
from datahall.workload.fusion import STYLES, Fusion

Kernels = list[
    tuple[float, float]
]  # elements read and written by each kernel; one of four bytes counts twice

ADD: Kernels = [(2, 1)]
NORM: Kernels = [(1, 1)]
GATED_APART: Kernels = [(1, 1), (2, 1)]  # the activation, then the product with the other half
CAST_UP, CAST_DOWN = (1, 2), (2, 1)
# cast, square, mean, + ε, 1/√, product, cast, weight; what is one number a row counts nothing
EAGER_NORM: Kernels = [CAST_UP, (2, 2), (2, 0), (0, 0), (0, 0), (2, 2), CAST_DOWN, (1, 1)]
# times cosine, half of it negated, put together, times sine, added: for queries, and as many kernels for keys
EAGER_ROPE: Kernels = [(1, 1), (0.5, 0.5), (1, 1), (1, 1), (2, 1)]


@pytest.mark.parametrize(
    ("style", "name", "kernels"),
    [
        ("fused", "norm", NORM),
        ("fused", "add", ADD),
        ("fused", "add_norm", [(2, 2)]),  # the sum is kept beside its norm
        ("fused", "rope", [(1, 1)]),
        ("fused", "gated", [(2, 1)]),
        ("fused", "plain", [(1, 1)]),
        ("fused", "loss", [(1, 1)]),
        ("fused", "norm_backward", [(2, 1)]),  # what came in, and the gradient of what went out
        ("fused", "add_norm_backward", [(3, 1)]),
        ("fused", "loss_backward", []),
        ("lean", "norm", NORM),
        ("lean", "add_norm", ADD + NORM),
        ("lean", "gated", GATED_APART),
        ("lean", "loss", [CAST_UP, (2, 0), (2, 2), (2, 0)]),
        ("lean", "norm_backward", [(2, 1)]),
        ("lean", "add_norm_backward", [(2, 1), *ADD]),
        ("lean", "loss_backward", [(2, 2), CAST_DOWN]),
        ("eager", "norm", EAGER_NORM),
        ("eager", "add_norm", ADD + EAGER_NORM),
        ("eager", "gated", GATED_APART),
        ("eager", "loss", [CAST_UP, (2, 2), (0, 0)]),
        ("eager", "loss_backward", [(0, 2), (4, 2), CAST_DOWN]),
    ],
)
def test_passes_are_those_of_the_kernels(style: str, name: str, kernels: Kernels) -> None:
    found = getattr(Fusion.named(style), name)
    reads, writes = (sum(one[place] for one in kernels) for place in (0, 1))
    assert (found.num_kernels, found.reads, found.writes) == (len(kernels), reads, writes)


def test_queries_and_keys_are_turned_by_kernels_of_their_own() -> None:
    reads, writes = (sum(one[place] for one in EAGER_ROPE) for place in (0, 1))
    eager, lean = STYLES["eager"].rope, STYLES["lean"].rope
    assert (eager.num_kernels, eager.reads, eager.writes) == (2 * len(EAGER_ROPE), reads, writes)
    assert (lean.num_kernels, lean.reads, lean.writes) == (2, 1, 1)


def test_a_norm_in_the_all_reduce_moves_as_much_without_a_kernel() -> None:
    fused, reduced = STYLES["fused"], STYLES["reduced"]
    assert reduced.add_norm.num_kernels == 0
    assert (reduced.add_norm.reads, reduced.add_norm.writes) == (fused.add_norm.reads, fused.add_norm.writes)


@pytest.mark.parametrize("style", sorted(STYLES))
def test_an_addition_before_a_norm_is_felt_backwards_too(style: str) -> None:
    one = STYLES[style]
    assert one.add_norm_backward.reads > one.norm_backward.reads
    if style == "eager":  # an addition of its own
        more = one.add_norm_backward
        less = one.norm_backward
        assert (more.num_kernels - less.num_kernels, more.reads - less.reads, more.writes - less.writes) == (
            1,
            2,
            1,
        )


def test_a_style_that_nobody_knows_is_refused() -> None:
    with pytest.raises(UnknownNameError):
        Fusion.named("leen")

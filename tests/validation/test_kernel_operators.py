"""What a measured row of kernels is taken to have moved."""

from __future__ import annotations

from datahall.validation.kernels.operators import expert_product
from datahall.workload.operator import GroupedGemm


def test_experts_read_their_rows_and_the_weights_that_are_hit() -> None:
    """100 rows of 64 values and 4 experts of 64 × 32: 12,800 + 16,384 bytes in 16 bits, half of each in 8."""
    shape = GroupedGemm(rows=100.0, num_experts=8.0, n=32.0, k=64.0)
    wide, narrow = (expert_product("up", shape, 4.0, precision) for precision in ("bf16", "fp8"))
    assert (wide.read_bytes, wide.weight_bytes, wide.write_bytes) == (29_184.0, 16_384.0, 6_400.0)
    assert (narrow.read_bytes, narrow.weight_bytes, narrow.write_bytes) == (14_592.0, 8_192.0, 6_400.0)

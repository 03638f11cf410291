"""Formulas are plain arithmetic, so quantities with units pass through them."""

import pint
import pytest

from datahall.workload.flops import mfu_fraction
from datahall.workload.memory.recipe import StateRecipe
from datahall.workload.memory.state import ChipParameters, state_bytes
from datahall.workload.operator import attention_flop, gemm_flop


@pytest.fixture(scope="module")
def unit() -> pint.UnitRegistry:
    registry = pint.UnitRegistry()
    for name in ("flop", "token", "chip", "parameter", "head", "channel"):
        registry.define(f"{name} = [{name}]")
    return registry


def test_mfu_is_a_pure_number(unit: pint.UnitRegistry) -> None:
    fraction = mfu_fraction(
        1e4 * unit("token/second"),
        2e9 * unit("flop/token"),
        8 * unit("chip"),
        1e15 * unit("flop/second/chip"),
    )
    assert fraction.check("[]")


def test_a_gemm_is_rows_by_columns_by_depth(unit: pint.UnitRegistry) -> None:
    product = gemm_flop(8 * unit.token, 16 * unit.channel, 32 * unit.channel)
    assert product.units == unit.token * unit.channel**2


def test_attention_is_pairs_by_heads_by_width(unit: pint.UnitRegistry) -> None:
    flop = attention_flop(10 * unit.token**2, 4 * unit.head, 16 * unit.channel / unit.head)
    assert flop.units == unit.token**2 * unit.channel


def test_state_is_parameters_times_bytes(unit: pint.UnitRegistry) -> None:
    chip = ChipParameters(1e9 * unit.parameter, 2e9 * unit.parameter)
    state = state_bytes(chip, StateRecipe.named("megatron"), zero=1, dp=4)
    assert state.total_bytes.units == unit.parameter

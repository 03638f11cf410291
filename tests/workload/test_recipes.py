"""Bytes of a parameter in training, from the formats that each recipe keeps."""

from __future__ import annotations

import pytest

from datahall.catalog.number_formats import bytes_per_value
from datahall.workload.memory.recipe import RECIPES


@pytest.mark.parametrize(
    ("name", "weight", "gradient", "master", "moment"),
    [
        ("megatron", "bf16", "fp32", "fp32", "fp32"),
        ("bf16-gradients", "bf16", "bf16", "fp32", "fp32"),
        ("precision-aware", "bf16", "fp32", "fp32", "bf16"),
        ("fp8-parameters", "fp8", "fp32", "fp32", "fp32"),
        ("fp32", "fp32", "fp32", "", "fp32"),  # the weights are their own master
        ("pure-bf16", "bf16", "bf16", "", "bf16"),
    ],
)
def test_a_recipe_is_its_formats(name: str, weight: str, gradient: str, master: str, moment: str) -> None:
    found = RECIPES[name]
    assert found.weight == bytes_per_value(weight)
    assert found.gradient == bytes_per_value(gradient)
    assert found.master == (bytes_per_value(master) if master else 0.0)
    assert found.moments == 2 * bytes_per_value(moment)
    assert found.optimizer == found.master + found.moments
    assert found.total == found.weight + found.gradient + found.optimizer


def test_every_recipe_is_written_down_here() -> None:
    assert len(RECIPES) == 6

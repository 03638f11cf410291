"""Layers that lack a block have no operators of it, and a norm for each that is left."""

from __future__ import annotations

import msgspec
import pytest

from datahall.catalog import Catalog
from datahall.catalog.entries.model import Layer
from datahall.workload.forward import layer_operators
from datahall.workload.fusion import Fusion
from datahall.workload.mixer import mixer_operators
from datahall.workload.mlp import mlp_operators
from datahall.workload.precision import Precision
from datahall.workload.sharding import Sharding
from datahall.workload.step import Chunk, Step

LLAMA = Catalog(user=False).model("llama-3.1-8b")


def step(**model: object) -> Step:
    return Step(
        model=msgspec.structs.replace(LLAMA, **model), chunks=(Chunk(1.0, 4.0, past=0.0),), sharding=Sharding(),
        precision=Precision.named("bf16"), fusion=Fusion.named("fused"), tokens=4.0,
    )  # fmt: skip


def names(layer: Layer, **model: object) -> list[str]:
    return [one.name for one in layer_operators(step(**model), layer)]


def test_a_block_that_is_not_there_has_no_operators() -> None:
    assert mlp_operators(step(), Layer(mixer="full", mlp="none"), 1.0) == ()
    assert mixer_operators(step(), Layer(mixer="none", mlp="dense"), 1.0) == ()
    whole = names(Layer(mixer="full", mlp="dense"))
    mixer, mlp = names(Layer(mixer="full", mlp="none")), names(Layer(mixer="none", mlp="dense"))
    assert set(mixer) | set(mlp) == set(whole) | {"post_norm"}
    assert not set(mixer) & set(mlp) - {"post_norm"}


@pytest.mark.parametrize("norms", [1, 2, 4])
def test_every_norm_of_a_layer_is_run_and_every_block_added(norms: int) -> None:
    """Norms beside the blocks' own stand alone, and so does the addition of a block without a norm."""
    found = {one.name: float(one.count) for one in layer_operators(
        step(norms_per_layer=norms), Layer(mixer="full", mlp="dense"), 3.0)}  # fmt: skip
    own = sum(name in {"mixer_norm", "mlp_norm"} for name in found)
    assert own == min(2, norms)
    assert found.get("post_norm", 0.0) == 3.0 * max(0, norms - 2)
    assert found.get("residual_add", 0.0) == 3.0 * max(0, 2 - norms)

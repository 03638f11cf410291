"""Memory as a chain where something is missing: frozen weights, a stage without layers, everything outside."""

from __future__ import annotations

import msgspec
import pytest

from datahall.breakdown import Breakdown, false_nodes
from datahall.catalog import Catalog
from datahall.training.adapters.adapters import Adapters
from datahall.training.layout.layout import Layout
from datahall.training.leaf import Degrees
from datahall.training.memory.bookkeeping import BOOKS
from datahall.training.memory.figure import memory_figure
from datahall.training.memory.peak import stage_memories
from datahall.training.memory.tensors import AGAIN, TensorRanking, stage_tensors
from datahall.training.step.step import Job

SHELF = Catalog(user=False)
H100 = SHELF.chip("h100-sxm")
JOB = Job(model=SHELF.model("llama-3.1-8b"), seq=4096, global_batch=32)
ADAPTERS = msgspec.structs.replace(JOB, adapters=Adapters(rank=16, targets="attention"))


def figures(job: Job, layout: Layout, books: str = "nemo") -> list[Breakdown]:
    stages = stage_memories(job, H100, layout, BOOKS[books])
    found = [memory_figure(job, Degrees(layout), one, BOOKS[books], "1f1b", "memory") for one in stages]
    for stage, figure in zip(stages, found, strict=True):
        assert figure.value == pytest.approx(float(stage.memory.total_bytes[0]), rel=1e-12)
        assert false_nodes(figure) == []
    return found


def names(figure: Breakdown) -> set[str]:
    return {one.name for _, one in figure.walk()}


@pytest.mark.parametrize("books", sorted(BOOKS))
@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_of_frozen_weights_adapters_alone_have_gradients_and_moments(books: str, zero: int) -> None:
    layout = Layout(tp=2, pp=2, dp=4, zero=zero)
    for frozen, whole in zip(figures(ADAPTERS, layout, books), figures(JOB, layout, books), strict=True):
        assert frozen.value < whole.value
        for name in ("gradients", "optimizer states"):
            state = next(one for _, one in frozen.walk() if one.name == name)
            assert "parameters of the adapters" in names(state)
            assert not {"dense parameters", "tables"} & names(state)


def test_a_stage_without_layers_holds_what_its_end_holds() -> None:
    """The first stage has the token table alone, or the last one the head."""
    for split in ((0, 32), (32, 0)):
        stages = figures(JOB, Layout(pp=2, dp=2, split=split))
        assert len(stages) == 2
        empty = stages[split.index(0)]
        assert "activations" not in names(empty)
        assert empty.value < stages[1 - split.index(0)].value


@pytest.mark.parametrize(
    "offload", [("optimizer",), ("activations",), ("parameters",), ("optimizer", "activations")]
)
@pytest.mark.parametrize("zero", [0, 2, 3])
def test_what_lies_outside_is_not_on_the_chip(offload: tuple[str, ...], zero: int) -> None:
    layout = Layout(tp=2, pp=2, dp=4, zero=zero, micro_batch=2)
    inside = figures(JOB, layout)
    outside = figures(JOB, msgspec.structs.replace(layout, offload=offload))
    for less, more in zip(outside, inside, strict=True):
        assert less.value <= more.value
    assert min(less.value for less in outside) < min(more.value for more in inside)


def test_the_smaller_tensors_are_told_together() -> None:
    layout = Layout(tp=2, cp=2, pp=2, dp=2)
    (stage, *_) = stage_memories(JOB, H100, layout, BOOKS["nemo"])
    tensors = stage_tensors(JOB, layout, stage, BOOKS["nemo"])
    ranking = TensorRanking(tensors[:3], tensors[3:])
    assert ranking.smaller_bytes == pytest.approx(sum(one.size_bytes for one in tensors[3:]))
    assert ranking.smaller_held_bytes == pytest.approx(sum(one.held_bytes for one in tensors[3:]))
    # sequences that are passed around keep the output of attention a second time
    assert AGAIN in {one.name for one in tensors}
    alone = stage_tensors(JOB, Layout(tp=2, pp=2, dp=4), stage, BOOKS["nemo"])
    assert AGAIN not in {one.name for one in alone}

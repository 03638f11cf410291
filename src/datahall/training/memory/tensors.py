"""The tensors that a layer keeps from forward to backward on one chip, by name."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from datahall.catalog.entries.model import Layer
from datahall.training.layout.layout import Layout
from datahall.training.memory.bookkeeping import Bookkeeping
from datahall.training.memory.peak import StageMemory
from datahall.training.step.micro_batch import sharding_of
from datahall.training.step.shard import saved_tensors, tensor_bytes
from datahall.training.step.step import Job

AGAIN = "attention_output_before_exchange"


class KeptTensor(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor of some layers, for one micro-batch on one chip."""

    name: str
    value_bytes: float
    size_bytes: float
    num_layers: int = 1
    held_bytes: float = 0.0  # of all micro-batches in flight


def kept_tensors(job: Job, layout: Layout, kind: Layer, books: Bookkeeping) -> tuple[KeptTensor, ...]:
    """What one layer keeps; attention over a split context keeps its output twice, before and after the exchange."""
    shard, found = sharding_of(layout), []
    for tensor in saved_tensors(job, kind, books, layout.recompute, layout.modules):
        size = float(tensor_bytes(tensor, float(layout.micro_batch), job.seq, shard))
        found.append(KeptTensor(name=tensor.name, value_bytes=tensor.value_bytes, size_bytes=size))
        if tensor.name == "attention_output" and layout.cp > 1:
            found.append(KeptTensor(name=AGAIN, value_bytes=tensor.value_bytes, size_bytes=size))
    return tuple(found)


class TensorRanking(msgspec.Struct, frozen=True):
    """The largest tensors by name, and what all smaller ones take together."""

    largest: tuple[KeptTensor, ...]
    smaller: tuple[KeptTensor, ...]

    @property
    def smaller_bytes(self) -> float:
        """Of one micro-batch."""
        return sum(tensor.size_bytes for tensor in self.smaller)

    @property
    def smaller_held_bytes(self) -> float:
        """Of all micro-batches in flight."""
        return sum(tensor.held_bytes for tensor in self.smaller)


def ranked(tensors: Sequence[KeptTensor], most: int) -> TensorRanking:
    """So many of the largest, and the others."""
    largest_first = sorted(tensors, key=lambda tensor: -tensor.size_bytes)
    return TensorRanking(tuple(largest_first[:most]), tuple(largest_first[most:]))


def stage_tensors(job: Job, layout: Layout, stage: StageMemory, books: Bookkeeping) -> tuple[KeptTensor, ...]:
    """What the layers of a stage keep of one micro-batch, by name, the largest first."""
    found: dict[str, KeptTensor] = {}
    for kind, count in stage.run.layers:
        for one in kept_tensors(job, layout, kind, books):
            known = found.get(one.name)
            size = count * one.size_bytes + (known.size_bytes if known else 0.0)
            layers = count + (known.num_layers if known else 0)
            held = size * stage.num_in_flight
            found[one.name] = msgspec.structs.replace(
                one, size_bytes=size, num_layers=layers, held_bytes=held
            )
    return tuple(sorted(found.values(), key=lambda one: -one.size_bytes))

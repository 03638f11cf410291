"""What a model server asks of a model, whatever runs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from datahall.serve.modelserver.tensor import Array, Tensor

Arrays: TypeAlias = Mapping[str, Array]


class Runner(Protocol):
    """A model in memory. Any thread may call it, and as many at once as it has workers."""

    platform: str  # as the Open Inference Protocol calls it
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    has_rows: bool  # rows of several clients may be laid into one call

    def run(self, arrays: Arrays) -> Arrays:
        """One call of the model."""

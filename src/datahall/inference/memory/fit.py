"""What fits on which chip: the smallest power-of-two group that holds a model and some sequences.

The engine's own division of the memory decides: `datahall.inference.memory.kv_pool`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.errors import ScenarioError
from datahall.inference.engine.engine import engine, engine_on
from datahall.inference.engine.replica import Adapters, Replica
from datahall.inference.memory.kv_pool import KvCapacity, divide_memory, runtime_bytes
from datahall.workload.precision import Precision
from datahall.workload.sharding import Sharding

ENGINE = "vllm"  # whose division of the memory is meant where none is named
LARGEST_GROUP = 64

# chips that most people ask about; any other is there by name
COMMON = (
    "a100-sxm-80gb",
    "l40s",
    "h100-sxm",
    "h200-sxm",
    "b200-sxm",
    "b300-sxm",
    "rtx-pro-6000",
    "mi300x",
    "mi325x",
    "mi355x",
    "tpu-v5e",
    "tpu-v6e",
    "gaudi3",
    "trainium2",
)


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """A model on a group of one kind of chip; `tp` 0 where there is none, and `why` says the reason."""

    chip: Chip
    tp: int
    why: str = ""
    capacity: KvCapacity
    seq: int  # tokens of a sequence

    @property
    def weight_bytes(self) -> float:
        """Weights on one chip."""
        return self.capacity.weight_bytes

    @property
    def free_bytes(self) -> float:
        """Memory of one chip left for sequences."""
        return self.capacity.pool_bytes

    @property
    def sequence_bytes(self) -> float:
        """Cache of one sequence on one chip."""
        return self.capacity.blocks(self.seq) * self.capacity.block_bytes

    @property
    def usable_bytes(self) -> float:
        """Memory of one chip for weights and sequences."""
        return self.weight_bytes + self.free_bytes

    @property
    def num_sequences(self) -> int:
        """Sequences that the group holds at once."""
        return self.capacity.num_sequences(self.seq)

    @property
    def leaves_domain(self) -> bool:
        """Whether the group is larger than the chips' scale-up domain."""
        return self.tp > max(1, self.chip.num_scale_up_domain)


def usable_bytes(chip: Chip) -> float:
    """Memory of a chip that an engine takes, activations included [B]."""
    return engine(ENGINE).memory_fraction * runtime_bytes(chip)


def fit(model: Model, chip: Chip, *, seq: int, batch: int, precision: Precision) -> Fit:
    """The smallest power-of-two group that holds `batch` sequences of `seq` tokens."""
    largest = on_group(model, chip, LARGEST_GROUP, seq, precision)
    why = why_not(chip, precision)
    if why:
        return msgspec.structs.replace(largest, tp=0, why=why)
    for tp in legal_groups(model):
        found = on_group(model, chip, tp, seq, precision)
        if found.free_bytes > 0 and found.num_sequences >= batch:
            return found
    return msgspec.structs.replace(largest, tp=0, why="too small, even 64 of them")


def why_not(chip: Chip, precision: Precision) -> str:
    """Why a chip cannot multiply in a precision; nothing where it can."""
    if precision.compute in chip.peak_flop_per_s:
        return ""
    lacks = "has no" if precision.compute in chip.lacks else "no peak published for"
    return f"{lacks} {precision.compute.upper()}"


def best(fits: Sequence[Fit]) -> int | None:
    """The row with the fewest chips, then the most sequences; None where nothing fits."""
    rows = [index for index, one in enumerate(fits) if one.tp]
    return min(rows, key=lambda index: (fits[index].tp, -fits[index].num_sequences), default=None)


def legal_groups(model: Model) -> list[int]:
    """The powers of two that the heads and widths of a model divide by."""
    found = []
    tp = 1
    while tp <= LARGEST_GROUP:
        try:
            Sharding(tp=float(tp)).check(model)
        except ScenarioError:
            pass
        else:
            found.append(tp)
        tp *= 2
    return found or [1]


def on_group(
    model: Model,
    chip: Chip,
    tp: int,
    seq: int,
    precision: Precision,
    engine_name: str = ENGINE,
    adapters: Adapters | None = None,
) -> Fit:
    """A model on `tp` chips as an engine divides their memory."""
    replica = Replica(
        model=model,
        chip=chip,
        engine=engine_on(engine_name, chip),
        precision=precision,
        tp=tp,
        max_context=seq,
        adapters=adapters,
    )
    return Fit(chip=chip, tp=tp, capacity=divide_memory(replica), seq=seq)

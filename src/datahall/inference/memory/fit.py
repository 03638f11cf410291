"""What fits on which chip: the smallest group that holds a model and some sequences.

The engine's own division of the memory decides: `datahall.inference.memory.kv_pool`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.errors import ScenarioError
from datahall.inference.engine.build import replica_of
from datahall.inference.engine.replica import Replica
from datahall.inference.memory.kv_pool import KvCapacity, divide_memory
from datahall.scenario.sections.deployment import Deployment
from datahall.workload.precision import Precision
from datahall.workload.sharding import Sharding

LARGEST_SEARCHED = 64  # chips of a group up to which a model is tried for fit

# chips that most people ask about; any other is there by name
OFTEN_ASKED = (
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
    """A replica and how its memory is divided; `tp` 0 where no group holds it, and `why` says the reason."""

    replica: Replica
    tp: int
    why: str = ""
    capacity: KvCapacity
    context: int  # tokens of a sequence

    @property
    def chip(self) -> Chip:
        return self.replica.chip

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
        return self.capacity.blocks(self.context) * self.capacity.block_bytes

    @property
    def usable_bytes(self) -> float:
        """Memory of one chip for weights and sequences."""
        return self.weight_bytes + self.free_bytes

    @property
    def weight_fraction(self) -> float:
        """Weights over that memory; above 1 they do not fit."""
        return self.weight_bytes / self.usable_bytes

    @property
    def num_sequences(self) -> int:
        """Sequences that the group holds at once."""
        return self.capacity.num_sequences(self.context)

    @property
    def num_domain(self) -> int:
        """Chips that reach each other without the network; cards without links of their own share a server's bus."""
        return self.replica.num_domain

    @property
    def leaves_domain(self) -> bool:
        """Whether the group is larger than the chips' scale-up domain."""
        return self.tp > self.num_domain

    def cache_bytes(self, num_sequences: int) -> float:
        """Cache of some sequences on one chip."""
        return num_sequences * self.sequence_bytes

    def held_bytes(self, num_sequences: int) -> float:
        """Weights and the cache of some sequences on one chip."""
        return self.weight_bytes + self.cache_bytes(num_sequences)

    def missing_bytes(self, num_sequences: int) -> float:
        """What one chip lacks for some sequences; below zero it is what is left."""
        return self.held_bytes(num_sequences) - self.usable_bytes

    def left_bytes(self, num_sequences: int) -> float:
        """What is left of one chip beside some sequences; below zero it is what is lacking."""
        return -self.missing_bytes(num_sequences)

    @property
    def kept_back_bytes(self) -> float:
        """Memory of one chip that is neither for weights nor for sequences."""
        return self.capacity.memory_bytes - self.usable_bytes

    def holds(self, num_sequences: int) -> bool:
        """Whether it holds so many sequences of the context."""
        return self.free_bytes > 0 and self.num_sequences >= num_sequences


def on_group(replica: Replica, tp: int, context: int) -> Fit:
    """A replica on `tp` chips, as its engine divides their memory for sequences of some length."""
    wider = msgspec.structs.replace(replica, tp=tp, max_context=context)
    return Fit(replica=wider, tp=tp, capacity=divide_memory(wider), context=context)


def fits_on(replica: Replica, context: int, num_sequences: int, tp: int | None = None) -> Fit | None:
    """The group asked for, or the smallest one, if it holds the sequences and its chip runs the precision."""
    if why_not(replica.chip, replica.precision):
        return None
    groups = (tp,) if tp else legal_groups(replica.model)
    return next(
        (found for group in groups if (found := on_group(replica, group, context)).holds(num_sequences)), None
    )


def smallest_fit(
    model: Model, chip: Chip, *, context: int, num_sequences: int, precision: str, catalog: Catalog
) -> Fit:
    """The smallest group of a chip that holds a model and some sequences, or why none does."""
    replica = replica_of(Deployment(chip=chip.name, precision=precision), model, catalog)
    found = fits_on(replica, context, num_sequences)
    if found is not None:
        return found
    why = why_not(chip, replica.precision) or f"too small, even {LARGEST_SEARCHED} of them"
    return msgspec.structs.replace(on_group(replica, LARGEST_SEARCHED, context), tp=0, why=why)


def fewest_chips(replica: Replica) -> int:
    """The smallest tensor parallelism at which a replica holds one sequence; 1 where none does.

    Sequences are as long as the replica accepts, or of one block where it does not say.
    """
    if why_not(replica.chip, replica.precision):
        return 1
    for tp in legal_groups(replica.model):
        found = divide_memory(msgspec.structs.replace(replica, tp=tp))
        needed = found.blocks(replica.max_context or found.block_tokens)
        if found.pool_bytes > 0 and found.num_blocks >= needed:
            return tp
    return 1


def why_not(chip: Chip, precision: Precision) -> str:
    """Why a chip cannot multiply in a precision; nothing where it can."""
    if chip.multiplies(precision.operands):
        return ""
    if precision.compute in chip.peak_flop_per_s:
        lacks = "has no" if chip.refuses_scales(precision.operands) else "is not known to have"
        return f"{lacks} {precision.operands.upper()}"
    lacks = "has no" if precision.compute in chip.lacks else "has no published peak for"
    return f"{lacks} {precision.compute.upper()}"


def best(fits: Sequence[Fit]) -> int | None:
    """The row with the fewest chips, then the most sequences; None where nothing fits."""
    rows = [index for index, row in enumerate(fits) if row.tp]
    return min(rows, key=lambda index: (fits[index].tp, -fits[index].num_sequences), default=None)


def legal_groups(model: Model) -> list[int]:
    """The powers of two that the heads and widths of a model divide by."""
    return list(_legal_groups(model)) or [1]


def _legal_groups(model: Model) -> Iterator[int]:
    tp = 1
    while tp <= LARGEST_SEARCHED:
        try:
            Sharding(tp=float(tp)).check(model)
        except ScenarioError:
            pass
        else:
            yield tp
        tp *= 2

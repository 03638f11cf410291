"""What fits on which chip: the smallest power-of-two group that holds a model and some sequences.

usable = USABLE_FRACTION · memory that the driver reports
free   = usable − weights(tp)         sequences = ⌊free / KV cache of one sequence(tp)⌋
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import msgspec

from datahall.catalog.chip import Chip
from datahall.catalog.model import Model
from datahall.errors import ScenarioError
from datahall.workload.kv_cache import kv_bytes
from datahall.workload.parameters import ParameterCount
from datahall.workload.precision import Precision
from datahall.workload.sharding import Sharding
from datahall.workload.state import serving_weight_bytes

USABLE_FRACTION = 0.9  # vLLM's gpu_memory_utilization; the rest is activations, workspaces and the driver
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
    usable_bytes: float
    weight_bytes: float
    sequence_bytes: float

    @property
    def free_bytes(self) -> float:
        """Memory of one chip left for sequences."""
        return self.usable_bytes - self.weight_bytes

    @property
    def num_sequences(self) -> int:
        """Sequences that the group holds at once."""
        return int(self.free_bytes // self.sequence_bytes) if self.sequence_bytes > 0 else 0

    @property
    def leaves_domain(self) -> bool:
        """Whether the group is larger than the chips' scale-up domain."""
        return self.tp > max(1, self.chip.num_scale_up_domain)


def usable_bytes(chip: Chip) -> float:
    """Memory of a chip that an engine hands out [B]."""
    visible = chip.visible_memory_bytes if isfinite(chip.visible_memory_bytes) else chip.memory_bytes
    return USABLE_FRACTION * visible


def fit(
    model: Model, counts: ParameterCount, chip: Chip, *, seq: int, batch: int, precision: Precision
) -> Fit:
    """The smallest power-of-two group that holds `batch` sequences of `seq` tokens."""
    largest = _on(model, counts, chip, LARGEST_GROUP, seq, precision)
    if precision.compute not in chip.peak_flop_per_s:
        why = "has no" if precision.compute in chip.lacks else "no peak published for"
        return msgspec.structs.replace(largest, tp=0, why=f"{why} {precision.compute.upper()}")
    for tp in legal_groups(model):
        found = _on(model, counts, chip, tp, seq, precision)
        if found.free_bytes > 0 and found.num_sequences >= batch:
            return found
    return msgspec.structs.replace(largest, tp=0, why="too small, even 64 of them")


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


def _on(model: Model, counts: ParameterCount, chip: Chip, tp: int, seq: int, precision: Precision) -> Fit:
    return Fit(
        chip=chip,
        tp=tp,
        usable_bytes=usable_bytes(chip),
        weight_bytes=float(serving_weight_bytes(model, counts, precision, tp=tp)),
        sequence_bytes=float(kv_bytes(model, seq, precision, tp=tp)),
    )

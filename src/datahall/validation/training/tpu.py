"""Runs on TPUs: slices, what one device is, and fully sharded layouts over the torus.

MaxText shards parameters over the axes of a slice and keeps one copy on each slice; its batch is stated per device.
"""

from __future__ import annotations

import re
from math import prod

from datahall.catalog.entries.chip import Chip
from datahall.errors import ScenarioError
from datahall.fabric.topology.grids.tpu_pod import FLAT, PODS, slice_for
from datahall.validation.measurement import Row, RowError

BY_SIZE = {prod(shape): shape for shape in FLAT}
DEVICES = {"tpu-v7x": 2}  # devices that JAX sees on one chip
LARGEST = 3072  # chips of the largest slice of the PaLM paper; later runs state their slices


def slice_shape(row: Row, chip: Chip, num_chips: int) -> tuple[int, ...]:
    """The sides of one slice of a run: as its hardware says, else all chips or the largest slice."""
    found = re.search(r"\((\d+)x v\d\w*-(\d+)\)", row.text("hardware"))
    slices = int(found[1]) if found else _num_slices(chip, num_chips)
    if num_chips % slices:
        raise RowError(f"{num_chips} chips are not {slices} equal slices")
    size = num_chips // slices
    if chip.name in PODS:
        try:
            return slice_for(size, PODS[chip.name])
        except ScenarioError as problem:
            raise RowError(problem.message) from None
    if size not in BY_SIZE:
        raise RowError(f"no slice of {chip.name} has {size} chips")
    return BY_SIZE[size]


def _num_slices(chip: Chip, num_chips: int) -> int:
    most = min(LARGEST, prod(PODS[chip.name].largest)) if chip.name in PODS else max(BY_SIZE)
    return -(-num_chips // most)


def on_tpu(row: Row, chip: Chip) -> Row:
    """A row of MaxText with the micro-batch and batch that its batch per device, or its tokens a step, give."""
    num_chips = int(row.positive("n_gpus"))
    tp = int(row.positive("tp")) if row.text("tp") else 0
    if not tp:
        raise RowError("the row does not state tp")
    if not row.text("seq_len"):
        raise RowError("the row does not state seq_len")
    seq = row.positive("seq_len")
    if row.text("device_batch"):
        batch = int(row.positive("device_batch") * num_chips * DEVICES.get(chip.name, 1))
    elif row.text("tokens_per_step"):
        batch = round(row.positive("tokens_per_step") / seq)
    elif row.text("global_batch_seqs"):
        batch = int(row.positive("global_batch_seqs"))
    else:
        raise RowError("the row does not state a batch")
    ranks = num_chips // tp
    cells = {
        "global_batch_seqs": str(batch),
        "micro_batch": str(max(1, batch // ranks)),
        "pp": "1",
        "zero_stage": "3",
    }
    return Row(row.where, row.cells | cells)

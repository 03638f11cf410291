"""What a row measured: the step, as stated or by the convention of a rate, and the peak of memory."""

from __future__ import annotations

import re

from datahall.cluster.cluster import Cluster
from datahall.training.step.step import Job
from datahall.units import GIB
from datahall.validation.measurement import Row, RowError
from datahall.validation.training.sources import Source
from datahall.workload.flops import training_flop_per_token

MEMORY = (  # words that give a peak of memory, and the unit they are in
    (re.compile(r"real alloc ([\d.]+) GiB"), GIB),
    (re.compile(r"peak mem ([\d.]+) GiB"), GIB),
    (re.compile(r"max mem ([\d.]+) ?GB"), GIB),  # nvidia-smi's MiB, divided by 1,024
    (re.compile(r"max_memory_usage ([\d.]+) ?GB"), 1e9),
)


def measured(row: Row, job: Job, cluster: Cluster, source: Source) -> float:
    """The measured step [s]: as stated, from the token rate, or from a FLOP rate by its convention."""
    tokens = float(job.global_batch * job.seq)
    chips = cluster.num_chips
    if row.text("iter_time_s"):
        return row.positive("iter_time_s")
    if row.text("tokens_per_s"):
        return tokens / row.positive("tokens_per_s")
    if row.text("tokens_per_s_per_chip"):
        return tokens / (row.positive("tokens_per_s_per_chip") * chips)
    if row.text("tflops_per_gpu") and "hardware FLOPs incl. recompute" in row.text("flops_convention"):
        return _hardware_flop(job) * tokens / (row.positive("tflops_per_gpu") * 1e12 * chips)
    rate = _flop_per_s(row, cluster)
    if rate and source.convention is not None:
        each = float(training_flop_per_token(job.model, float(job.seq), source.convention))
        return each * tokens / (rate * chips)
    raise RowError("the row states neither a step time nor a token rate")


def _flop_per_s(row: Row, cluster: Cluster) -> float:
    """The model FLOPs of one chip a second, or 0; MFU is of the dense bf16 peak."""
    if row.text("tflops_per_gpu"):
        return row.positive("tflops_per_gpu") * 1e12
    if row.text("mfu_pct"):
        return row.positive("mfu_pct") / 100 * cluster.chip.peak("bf16")
    return 0.0


def _hardware_flop(job: Job) -> float:
    """FLOPs of a token with full recomputation: 96·l·h²·(1 + s/6h + V/16lh).

    Reference: Narayanan et al. (2021), arXiv:2104.04473, appendix.
    """
    width, depth = float(job.model.hidden), float(job.model.num_layers)
    extra = 1 + job.seq / (6 * width) + job.model.vocab / (16 * depth * width)
    return 96.0 * depth * width**2 * extra


def measured_memory(row: Row) -> float:
    """The measured peak of memory on the fullest chip [B]; 0 where the row states none."""
    for words, unit_bytes in MEMORY:
        if found := words.search(row.text("notes")):
            return float(found[1]) * unit_bytes
    return 0.0

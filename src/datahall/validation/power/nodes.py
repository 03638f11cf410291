"""Mean power of the nodes of MLPerf Training runs.

A row names a benchmark, a system and its nodes; the layout is the one that submissions of that size use.  A run does
other things before its steps are under way, for the same time whatever its length, which short runs feel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from datahall.catalog import load
from datahall.catalog.entries.chip import Chip
from datahall.cluster.cluster import cluster_of
from datahall.power.activity import Phase
from datahall.power.chip import idle_power_w
from datahall.power.constants import band_of, basis_of, constants
from datahall.power.server import server_power_w
from datahall.power.training import TrainingPower, mean_power_w
from datahall.training.layout.layout import Layout
from datahall.training.pipeline.execution import simulate_step
from datahall.training.step.framework import framework
from datahall.training.step.step import Job
from datahall.validation.inference.names import chip_of
from datahall.validation.measurement import Outcome, Row, RowError
from datahall.validation.power.guard import guarded
from datahall.validation.scorecard import Prediction, Unsupported
from datahall.validation.training.layouts import MLPERF_ADAPTERS
from datahall.validation.training.sources import SOURCES
from datahall.workload.precision import Precision

NODE_POWER = "node power"
CHIPS = r"GB300|GB200|B300|B200|GH200|H200|H100|H800|A100|L40S|MI\d{3}X|Gaudi ?\d|TPU[- ]?v\w+|Trillium"
SMALL_BYTES, LARGE_BYTES = (
    100e9,
    170e9,
)  # of a chip: below the first four hold the adapted model, from the other one
LORA_BATCH, LORA_GROUP = 8, 8  # sequences; chips that share one at most, tp · cp
GPT3_BATCH, GPT3_TP, GPT3_PP, GPT3_VPP = 2048, 4, 8, 6


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A row as we understand it: what a chip of the node does in a step, and what was measured."""

    row: Row
    chip: Chip
    num_chips: int  # of the node
    phases: tuple[Phase, ...]
    duration_s: float
    at_the_wall: bool


def predict_nodes(rows: Sequence[Row]) -> Iterable[Outcome]:
    """Predict each row; what cannot be expressed is counted with its reason."""
    for row in rows:
        yield from guarded(row, predict_node)


def predict_node(row: Row) -> Iterator[Prediction | Unsupported]:
    """The mean power of a node."""
    node = understood(row)
    server = constants().server
    drawn_w = server_power_w(
        node.chip,
        mean_chip_w(node, server.start_s),
        node.num_chips,
        at_the_wall=node.at_the_wall,
    )
    low, high = band_of("server", node.chip)
    nodes = int(row.count("n_nodes"))
    yield Prediction(
        source=row.text("source"),
        hardware=node.chip.name,
        model=row.text("benchmark"),
        label=f"{row.text('benchmark')} on {row.text('system')}, {nodes} nodes, {row.text('measurement_point')}",
        where=row.where,
        measured=row.positive("mean_node_W"),
        predicted=drawn_w,
        low=drawn_w * low,
        high=drawn_w * high,
        unit="w",
        metric=NODE_POWER,
        basis=basis_of(node.chip),
    )


def mean_chip_w(node: Node, start_s: float) -> float:
    """Mean power of a chip over a run: idle until its steps are under way, then as in its steps [W]."""
    waits = min(1.0, start_s / node.duration_s)
    return waits * idle_power_w(node.chip) + (1.0 - waits) * mean_power_w(node.chip, node.phases)


def understood(row: Row) -> Node:
    """Read a row: the chip, the benchmark's job and layout, and where power was read."""
    chip = chip_in(row.text("system"))
    num_chips = int(row.count("gpus_per_node"))
    whole = num_chips * int(row.count("n_nodes"))
    job, layout = _laid_out(row.text("benchmark"), chip, whole)
    cluster = cluster_of(chip, whole, catalog=load())
    run = simulate_step(job, cluster, layout, framework(_framework(row.text("benchmark"))))
    return Node(
        row=row,
        chip=chip,
        num_chips=num_chips,
        phases=TrainingPower(run=run).phases,
        duration_s=row.positive("duration_s"),
        at_the_wall=not re.match(r"\s*dc\b", row.text("measurement_point"), re.IGNORECASE),
    )


def chip_in(system: str) -> Chip:
    """The chip in the name of a system, where letters and digits may touch it.

    >>> chip_in("8xXE9680x8H100-SXM-80GB-POWER").name, chip_in("SR780aV3-8xB200_SXM_180GB").name
    ('h100-sxm', 'b200-sxm')
    """
    found = re.search(r"(" + CHIPS + r")[-_ ]?(NVL(?!\d)|PCIe)?", system, re.IGNORECASE)
    return chip_of(f"{found[1]} {found[2] or ''}".strip() if found else system)


def _framework(benchmark: str) -> str:
    """Whose overheads: as of the submissions in the ledger of training."""
    return next(one.framework for one in SOURCES if one.words == f"({benchmark})")


def _laid_out(benchmark: str, chip: Chip, num_chips: int) -> tuple[Job, Layout]:
    if benchmark == "llama2_70b_lora":
        return _adapters(chip, num_chips)
    if benchmark == "gpt3":
        return _gpt3(chip, num_chips)
    raise RowError(f'we know no layout of the benchmark "{benchmark}"')


def _adapters(chip: Chip, num_chips: int) -> tuple[Job, Layout]:
    """Adapters of a 70B model: a batch of eight until there are more than eight chips for each of its sequences.

    Submissions of MLPerf Training v4.0 to v5.0 (config_*tp*pp*cp*.sh): tp 4 on one H100 node, tp 4 cp 2 on more,
    tp 2 on an H200 node, tp 1 on a B200 node.
    """
    batch = max(LORA_BATCH, -(-num_chips // LORA_GROUP))
    least = 4 if chip.memory_bytes < SMALL_BYTES else 2 if chip.memory_bytes < LARGE_BYTES else 1
    group = least
    while num_chips // group > batch:
        group *= 2
    tp = min(group, least)
    if num_chips % group or batch % (num_chips // group):
        raise RowError("submissions of that many chips are not known to us")
    job = Job(
        model=load().model("llama-2-70b"), seq=8192, global_batch=batch, precision=_narrow(chip),
        adapters=MLPERF_ADAPTERS,
    )  # fmt: skip
    layout = Layout(
        tp=tp, pp=1, vpp=1, cp=group // tp, ep=1, dp=num_chips // group, zero=1, micro_batch=1, recompute="none",
        sequence_parallel=tp > 1,
    )  # fmt: skip
    return job, layout


def _gpt3(chip: Chip, num_chips: int) -> tuple[Job, Layout]:
    """GPT-3 175B: tp 4, pp 8 in chunks of two layers, micro-batches of two (config_DGXH100_64x8x128x4x8_mbs2.sh)."""
    group = GPT3_TP * GPT3_PP
    if num_chips % group or GPT3_BATCH % (2 * (num_chips // group)):
        raise RowError("submissions of that many chips are not known to us")
    job = Job(model=load().model("gpt-3-175b"), seq=2048, global_batch=GPT3_BATCH, precision=_narrow(chip))
    layout = Layout(
        tp=GPT3_TP, pp=GPT3_PP, vpp=GPT3_VPP, cp=1, ep=1, dp=num_chips // group, zero=1, micro_batch=2,
        recompute="none", sequence_parallel=True,
    )  # fmt: skip
    return job, layout


def _narrow(chip: Chip) -> Precision:
    return Precision.named("fp8" if chip.multiplies("fp8") else "bf16")

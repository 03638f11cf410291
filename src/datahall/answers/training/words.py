"""What answers about training say alike: why a layout lost, routing, what a file held besides."""

from __future__ import annotations

from datahall.cluster.across import lain_across
from datahall.cluster.cluster import Cluster
from datahall.counted import counted
from datahall.errors import option
from datahall.training.adapters.adapters import trained_parameters, trained_share
from datahall.training.layout.file import LayoutFile
from datahall.training.layout.layout import Layout
from datahall.training.layout.search import Change, Loss
from datahall.training.pipeline.execution import Execution
from datahall.training.step.compression import CAVEAT
from datahall.training.step.experts import layout_load
from datahall.training.step.parts import PARTS
from datahall.training.step.step import Job
from datahall.units import fmt

SAME_STEP = 5e-4  # share of a step within which two are the same


def beside_simulation(run: Execution, away: float) -> str:
    """How far the closed form is from what was simulated, as a share of that; that one sum is itself is no evidence."""
    if not run.is_checked:
        return "the same sum: without stages nothing here is computed in two ways"
    if abs(away) < SAME_STEP:
        return "as the simulation does"
    return f"{fmt(abs(away), 'fraction')} {'more' if away > 0 else 'less'} than the simulation"


def why_lost(loss: Loss, *, leaves_domain: bool | None = None) -> str:
    """One clause on why a layout is not the chosen one; with `leaves_domain`, of one that could have been."""
    if not loss.fits and loss.over_bytes <= 0:
        return "the host does not hold what it moves there"
    if not loss.fits:
        return f"does not fit by {fmt(loss.over_bytes, 'bytes', 3)}"
    away, more = loss.slower_fraction, f"{fmt(loss.more_s, 's', 3)} more {PARTS[loss.part]}"
    if abs(away) < SAME_STEP:
        return "equally fast"
    if away < 0:
        faster = f"{fmt(loss.faster_fraction, 'fraction')} faster"
        if leaves_domain is None:
            return faster
        return (
            f"{faster}, too little to tell; {'tp leaves the domain' if leaves_domain else 'less memory free'}"
        )
    return f"{fmt(away, 'fraction')} slower: {more}"


def choice_changed(change: Change) -> str:
    """One choice of a layout before and after: "micro-batch 1 → 2"."""
    before, after = (_choice(change.name, value) for value in (change.before, change.after))
    return f"{change.name.replace('_', '-')} {before} → {after}"


def _choice(name: str, value: object) -> str:
    if isinstance(value, tuple):
        return " and ".join(map(str, value)) or "nothing"
    return "usual" if name in ("etp", "shard") and not value else str(value)


def routing_notes(job: Job, layout: Layout) -> tuple[str, ...]:
    """What was taken for granted of the routing; nothing where no experts are spread."""
    if job.model.moe is None or layout.ep == 1:
        return ()
    load = f"the busiest of {layout.ep} expert ranks has {layout_load(job, layout):.3f} of the mean load"
    if job.imbalance is not None:
        return (f"{load} (as asked)",)
    return (
        f"{load} (chance alone, as where routing is forced even); a router that nothing holds even cost Qwen3-235B 8 "
        "to 20 % of its rate (NVIDIA, H100): try an imbalance of 1.2",
    )


def leaf_notes(cluster: Cluster, layout: Layout) -> tuple[str, ...]:
    """That where leaves end decides, beside their taper, what chips exchange over them."""
    block = layout.num_sharing_chips
    cut = lain_across(cluster, block)
    if cut is None or block == layout.tp:
        return ()
    return (
        f"a {cut.name} holds {counted(cut.num_below, 'chip')}: of the groups that share gradients, {block} chips in a "
        f"row, some lie across two of them; another {option('oversubscription')} makes it hold another number, and a "
        "narrower network can be the faster one",
    )


def torus_failure_notes(longer_fraction: float | None) -> tuple[str, ...]:
    """What failed links of a torus do to a step; nothing where none has failed."""
    if longer_fraction is None:
        return ()
    does = (
        f"makes the step {fmt(longer_fraction, 'fraction')} longer in closed form"
        if longer_fraction
        else "changes nothing of this step"
    )
    return (
        f"the failure {does}: failed links of a torus narrow the ways out of chips and the middles of its axes; a ring "
        "along an axis is timed as if its links were whole",
    )


def compression_notes(layout: Layout) -> tuple[str, ...]:
    """That compressed gradients change what is learnt."""
    return () if layout.compression == "none" else (f"gradients {layout.compression}: {CAVEAT}",)


def adapter_notes(job: Job) -> tuple[str, ...]:
    """What is trained in place of the weights, and what their frozen format is; nothing where all weights train."""
    if job.adapters is None:
        return ()
    trained = fmt(trained_parameters(job), "parameters")
    quantised = "NF4, doubly quantised, and brought to 16 bits for each product"
    frozen = quantised if job.adapters.quantised else job.value_width
    return (
        f"{job.adapters.words}: {trained} train, {fmt(trained_share(job), 'fraction')} of the weights besides routed "
        f"experts, which have none; those are frozen in {frozen}, have neither gradients nor states, and a checkpoint "
        "holds the adapters alone",
    )


def file_notes(file: LayoutFile | None) -> tuple[str, ...]:
    """What of a layout file says nothing here."""
    if file is None or not file.ignored:
        return ()
    return (f"ignored in {file.path}: {', '.join(file.ignored)}",)

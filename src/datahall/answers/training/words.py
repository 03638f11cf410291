"""What answers about training say alike: the layout as inputs of a follow-up, routing, what a file held besides."""

from __future__ import annotations

from datahall.training.layout.file import LayoutFile
from datahall.training.layout.layout import Layout
from datahall.training.step.compression import CAVEAT
from datahall.training.step.experts import layout_load
from datahall.training.step.step import Job
from datahall.units import fmt


def beside_simulation(away: float) -> str:
    """How far the closed form is from what was simulated, as a share of that."""
    if abs(away) < 5e-4:
        return "as the simulation does"
    return f"{fmt(abs(away), 'fraction')} {'more' if away > 0 else 'less'} than the simulation"


def routing_notes(job: Job, layout: Layout) -> tuple[str, ...]:
    """What was taken for granted of the routing; nothing where no experts are spread."""
    if job.model.moe is None or layout.ep == 1:
        return ()
    why = "as asked" if job.imbalance is not None else "chance alone, as where routing is forced even"
    return (
        f"the busiest of {layout.ep} expert ranks has {layout_load(job, layout):.3f} of the mean load ({why}); a "
        "router that nothing holds even cost Qwen3-235B 8 to 20 % of its rate (NVIDIA, H100): try an imbalance of 1.2",
    )


def compression_notes(layout: Layout) -> tuple[str, ...]:
    """That compressed gradients change what is learnt."""
    return () if layout.compression == "none" else (f"gradients {layout.compression}: {CAVEAT}",)


def file_notes(file: LayoutFile | None) -> tuple[str, ...]:
    """What of a layout file says nothing here."""
    if file is None or not file.ignored:
        return ()
    return (f"ignored in {file.path}: {', '.join(file.ignored)}",)

"""What the files of a training run say alike: how many nodes, how often to save, how layers are cut into stages."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import isfinite
from typing import NamedTuple, TypeVar

from datahall.catalog.entries.model import Model
from datahall.catalog.entries.tool import Tool
from datahall.counted import counted
from datahall.planner.artefacts.refused import DRIVEN, refuse
from datahall.planner.artefacts.script import Origin
from datahall.planner.training.plan import TrainingPlan
from datahall.reliability.sections.goodput import Goodput
from datahall.training.layout.layout import Layout
from datahall.training.step.stage import head_layers, part_layers
from datahall.units import fmt
from datahall.workload.memory.recipe import StateRecipe

T = TypeVar("T")


class Run(NamedTuple):
    """A plan of a training run, and where its files are from."""

    plan: TrainingPlan
    precision: str
    origin: Origin

    @property
    def layout(self) -> Layout:
        return self.plan.layout

    @property
    def model(self) -> Model:
        return self.plan.job.model

    @property
    def num_beside(self) -> int:
        """Chips that the run takes of one node."""
        return min(self.plan.cluster.num_host_chips, self.plan.num_chips)

    @property
    def num_nodes(self) -> int:
        return -(-self.plan.num_chips // self.num_beside)

    @property
    def hub(self) -> str:
        """The model on the hub, whose tokeniser goes with it; "" where the catalogue knows none."""
        return next((name for name in self.model.aliases if "/" in name), "")

    @property
    def save_steps(self) -> int | None:
        """Steps from one copy to storage to the next; None where nothing ever fails."""
        run = self.plan.part(Goodput).run
        interval_s = run.plan.last.interval_s
        return max(1, round(interval_s / run.step_s)) if isfinite(interval_s) else None

    @property
    def parts(self) -> tuple[int, ...]:
        """Layers of each chunk of a stage, in the order of the model."""
        layout = self.layout
        cut = part_layers(
            self.model.num_layers, layout.pp * layout.vpp, layout.split, head_layers(self.model)
        )
        return tuple(int(layers) for layers in cut)

    @property
    def num_micro(self) -> int:
        """Micro-batches of a replica in a step."""
        return self.layout.num_micro(self.plan.job.global_batch)

    @property
    def what(self) -> str:
        """The run in a line."""
        plan = self.plan
        return (
            f"{fmt(plan.num_tokens, 'tokens')} through {self.model.name} in {plan.num_steps:,} steps on "
            f"{plan.num_chips:,} × {plan.cluster.chip.name}, {counted(self.num_nodes, 'node')} of "
            f"{counted(self.num_beside, 'chip')}: {self.layout.words}, {self.precision}"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What it is, and which copies the plan also keeps that storage has not."""
        plan = self.plan.part(Goodput).run.plan
        nearer = ", ".join(
            f"{one.tier.name} every {fmt(one.interval_s, 's', 3)}" for one in plan.cadences[:-1]
        )
        copies = f"copies to storage alone are written here; the plan also has {nearer}" if nearer else ""
        return (
            self.what,
            f"its times are those of {self.plan.search.framework.title}",
            *((copies,) if copies else ()),
        )


def check_launch(run: Run, tool: Tool) -> None:
    """Refuse adapters, chips that PyTorch does not drive, and a run on a part of its last node."""
    tuned = run.plan.job.adapters
    refuse(tool, (tuned.words,) if tuned is not None else ())
    vendor, num_chips = run.plan.cluster.chip.vendor, run.plan.num_chips
    refuse(tool, (f"chips of {vendor}",) if vendor not in DRIVEN else ())
    refuse(
        tool,
        (f"{num_chips:,} chips, no whole nodes of {run.num_beside:,}",) if num_chips % run.num_beside else (),
    )


def beyond_state(run: Run, kept: Collection[str]) -> str:
    """What is said of the formats of the state, where it is none of those that a tool keeps; "" where it is."""
    recipe = run.plan.search.books.recipe
    if any(StateRecipe.named(name) == recipe for name in kept):
        return ""
    return f"a state of {recipe.total:g} bytes a parameter, as of no recipe of its own"


def state_of(run: Run, kept: Mapping[str, T]) -> T:
    """What a tool is told of the formats of the state, which it keeps."""
    recipe = run.plan.search.books.recipe
    return next(told for name, told in kept.items() if StateRecipe.named(name) == recipe)


def expert_degree(layout: Layout) -> int:
    """Chips that share one expert: as said, or what tensor parallelism leaves."""
    return layout.etp or max(1, layout.tp // layout.ep)

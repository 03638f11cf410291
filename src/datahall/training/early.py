"""What is asked of a training run, looked at before anything heavy is loaded: what cannot be is refused at once.

It is refused here alone: the rooms that compute are asked what has been looked at.  What only the wires know is found
when the machine is built.
"""

from __future__ import annotations

import msgspec

from datahall.catalog.entries.model import Model
from datahall.catalog.number_formats import bytes_per_value
from datahall.errors import ScenarioError, option
from datahall.fabric.design.chips import usual_chip
from datahall.fabric.design.early import check_design
from datahall.scenario.idle import does_nothing
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign, no_chips
from datahall.scenario.sections.training import TrainingJob, TrainingLayout
from datahall.training.layout.asked import check_laid_out, laid_out, precision_of
from datahall.training.layout.file import LayoutFile
from datahall.training.step.framework import framework
from datahall.workload.memory.recipe import RECIPES, StateRecipe
from datahall.workload.precision import Precision


def check_run(scenario: Scenario) -> None:
    """Refuse a layout that cannot run, a job that cannot be trained, and a machine that cannot be wired."""
    laid = laid_out(scenario)
    check_laid_out(scenario, laid)
    check_machine(scenario)
    check_job(scenario, laid.file)


def check_step(scenario: Scenario) -> None:
    """The same of a step: it runs on so many chips, be it that its replicas or the fabric say how many."""
    laid = laid_out(scenario)
    if scenario.one(FabricDesign).chips is None and laid.fewest:
        raise no_chips()
    check_run(scenario)


def says_layout(scenario: Scenario) -> bool:
    """Whether anything was said of the layout; of experts that there are none of is nothing."""
    asked, dense = scenario.one(TrainingLayout), scenario.model().moe is None
    if dense and asked.ep in (None, 1) and asked.etp in (None, 1):
        asked = msgspec.structs.replace(asked, ep=None, etp=None)
    return asked != TrainingLayout()


def check_machine(scenario: Scenario) -> None:
    """Refuse parts that cannot make the topology that is asked for, before the rooms that compute are loaded."""
    design = scenario.one(FabricDesign)
    if design.topology:
        check_design(design, scenario.catalog)


def check_state(state: str, precision: Precision) -> None:
    """Refuse a state whose weights have fewer bits than they are multiplied with."""
    needed = bytes_per_value(precision.compute)
    if StateRecipe.named(state).weight < needed:
        wide = ", ".join(name for name, recipe in RECIPES.items() if recipe.weight >= needed)
        raise ScenarioError(
            f"{option('state', state)} keeps weights of {8 * StateRecipe.named(state).weight:g} bits, and "
            f"{precision.compute} multiplies those of {8 * needed:g}",
            hint=f"states for it: {wide}",
        )


def check_adapters(asked: TrainingJob, model: Model, precision: Precision) -> None:
    """Refuse adapters that have nothing to stand beside, and frozen weights of a format that nothing brings to the one
    that is multiplied."""
    attends = any(layer.mixer in ("full", "window") for layer in model.layers)
    if asked.lora_targets == "query-value" and not attends:
        raise ScenarioError(
            f"{model.title or model.name} has no queries and values of its own: it attends by latents, or not at all",
            field="lora_targets", hint=f"leave {option('lora_targets')} out",
        )  # fmt: skip
    adapted = (
        {"full", "window", "mla"} if asked.lora_targets == "attention" else {"full", "window", "mla", "dense"}
    )
    if not any({layer.mixer, layer.mlp} & adapted for layer in model.layers):
        raise ScenarioError(
            f"{model.title or model.name} has no layer that adapters stand beside", field="lora",
            hint="recurrences and routed experts have none",
        )  # fmt: skip
    if asked.quantised and precision.quantises_activations:
        raise ScenarioError(
            f"{option('quantised')} beside {option('precision', precision.activations)}: weights in "
            "NF4 are brought to 16 bits and multiplied there",
            field="quantised", hint=option("precision", "bf16"),
        )  # fmt: skip


def check_job(scenario: Scenario, file: LayoutFile | None = None) -> None:
    """Refuse a job whose words nobody knows, or that says something of what its chip or model does not have."""
    asked, model = scenario.one(TrainingJob), scenario.model()
    framework(asked.framework)
    chip = usual_chip(scenario.one(FabricDesign), scenario.catalog)
    precision = Precision.named(precision_of(asked, file))
    with scenario.at(field="precision"):
        chip.peak(precision.operands)
    if asked.state:
        with scenario.at(field="state"):
            check_state(asked.state, precision)
    if asked.lora is not None:
        check_adapters(asked, model, precision)
    if asked.imbalance_ratio and model.moe is None:
        raise ScenarioError(
            does_nothing("imbalance", f"{model.title or model.name} has no experts"),
            field="imbalance",
            hint=f"leave {option('imbalance')} out",
        )

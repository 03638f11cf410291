"""A plan of a training run as it is asked for, refused before anything heavy is loaded."""

from __future__ import annotations

from math import ceil

import msgspec

from datahall.economics.early import check_buying
from datahall.economics.supply.limits import cannot_be_had, left_out
from datahall.errors import ScenarioError, option
from datahall.fabric.design.chips import own_chips, usual_chip
from datahall.fabric.design.early import chosen_parts, on_each
from datahall.fabric.flows.early import check_numbers
from datahall.planner.training.sections.early import check_beside
from datahall.scenario.buying import BUYING_ROWS, chip_ways
from datahall.scenario.idle import does_nothing
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign, no_chips
from datahall.scenario.sections.failure import Failure
from datahall.scenario.sections.money.purchase import Purchase
from datahall.scenario.sections.training import TrainingJob, TrainingLayout
from datahall.scenario.sections.wanted.goal import Goal
from datahall.training.early import check_job, check_machine, check_run, check_step, says_layout
from datahall.training.layout.asked import laid_out
from datahall.workload.precision import HALVES


def chips_of(scenario: Scenario) -> int | None:
    """How many chips to lay a run out on: as was said, or all of a fabric that was built, unless a deadline says."""
    design = scenario.one(FabricDesign)
    if design.chips is not None or scenario.one(TrainingJob).deadline_s is not None:
        return design.chips
    chips = own_chips(design, scenario.catalog)
    if chips is None and scenario.one(TrainingLayout).file:
        laid = laid_out(scenario)
        return None if laid.fewest else laid.num_chips
    return chips


def check_plan(scenario: Scenario) -> None:
    """Refuse a plan that leaves nothing to choose, or everything; and a job or a machine that cannot be."""
    for one in on_each(scenario):
        _check_plan(one)


def _check_plan(scenario: Scenario) -> None:
    check_beside(scenario)
    asked, num_chips = scenario.one(TrainingJob), chips_of(scenario)
    if scenario.one(TrainingLayout).file:
        if asked.deadline_s is not None:
            raise ScenarioError(
                f"{option('layout')} is of so many chips, and {option('deadline')} asks how many",
                field="layout",
                hint=f"{option('chips')} in place of {option('deadline')}, or leave {option('layout')} out",
            )
        check_step(scenario)
    open_number = (
        num_chips is None and asked.lora is None
    )  # adapters are laid out on the fewest chips that hold them
    if (asked.deadline_s is None and open_number) or (asked.deadline_s is not None and num_chips is not None):
        raise ScenarioError(
            "say either how many chips there are or when it must be done",
            field="chips",
            hint=f"{option('chips', 2048)}, or {option('deadline', '30d')}",
        )
    _check_goal(scenario, num_chips)
    check_buying(scenario, "run")
    check_machine(scenario)
    _check_supply(scenario)
    check_job(scenario)
    if num_chips is not None:
        _check_failed(scenario, num_chips)


def _check_goal(scenario: Scenario, num_chips: int | None) -> None:
    """Refuse tokens of others, which train nothing, and the fewest chips where their number is said."""
    ways = scenario.one(Purchase).buy
    for word in ways:
        if word not in chip_ways():
            raise ScenarioError(
                f"{BUYING_ROWS[word].called} sells tokens and trains no model",
                field="buy",
                hint=option("buy", ",".join(way for way in ways if way in chip_ways()) or "rent,own"),
            )
    if num_chips is not None and scenario.one(Goal).objective == "chips":
        raise ScenarioError(
            does_nothing("objective", "how many chips there are is said"),
            field="objective",
            hint=f"{option('deadline', '30d')} in place of {option('chips')}",
        )


def _check_supply(scenario: Scenario) -> None:
    """Refuse a chip that cannot be had, and say which can."""
    chip = usual_chip(scenario.one(FabricDesign), scenario.catalog)
    why = left_out(scenario, [chip])
    if why:
        raise cannot_be_had(scenario, why, "chip")


def _check_failed(scenario: Scenario, num_chips: int) -> None:
    """Refuse failures of chips that a fabric has not; one of parts has whole domains, which need not be full."""
    design, catalog = scenario.one(FabricDesign), scenario.catalog
    if not design.topology:
        return
    count = own_chips(design, catalog)
    if count is None:
        domain = chosen_parts(msgspec.structs.replace(design, chips=num_chips), catalog).num_domain
        count = ceil(num_chips / domain) * domain
    for index, failure in enumerate(scenario.all(Failure)):
        with scenario.at(index, section="failure"):
            check_numbers(failure.chips, count, "chip")


def check_laid_step(scenario: Scenario) -> None:
    """Refuse a step that cannot be laid out or trained, on the layout that is asked for or, where none is, on any."""
    if says_layout(scenario):
        check_step(scenario)
        return
    if chips_of(scenario) is None:
        raise no_chips()
    check_machine(scenario)
    check_job(scenario)


def check_ladder(scenario: Scenario) -> None:
    """Refuse a job that cannot be laid out or trained; on how many chips need not be said."""
    asked = in_half(scenario)
    if says_layout(asked):
        check_run(asked)
        return
    check_machine(asked)
    check_job(asked)


def in_half(scenario: Scenario) -> Scenario:
    """The question in 16 bits, which a ladder is laid out in: in the format of them that the chip multiplies."""
    chip = usual_chip(scenario.one(FabricDesign), scenario.catalog)
    name = next((one for one in HALVES if chip.multiplies(one)), None)
    return scenario.having(msgspec.structs.replace(scenario.one(TrainingJob), precision=name))

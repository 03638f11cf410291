"""Inputs of a fabric, a collective or flows that change nothing as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from datahall.answers.fabric.collective_table import algorithms
from datahall.cluster import idle as of_collective
from datahall.cluster.cluster import Cluster
from datahall.cluster.collective import CollectiveTime
from datahall.cluster.wiring import wiring_of
from datahall.fabric.design import idle as of_fabric
from datahall.fabric.design.design import Design
from datahall.fabric.design.early import check_used
from datahall.scenario.idle import do_nothing, does_nothing, idle_notes
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import CollectiveCall, FabricDesign
from datahall.scenario.sections.failure import Failure


def idle_in_fabric(scenario: Scenario, made: Design) -> tuple[str, ...]:
    """Of a fabric that was laid."""
    return idle_notes(scenario, of_fabric.idle_inputs_of_domain(made))


def idle_beside(scenario: Scenario, names: Sequence[str]) -> tuple[str, ...]:
    """Of each of several fabrics; what none of them has a use for is refused."""
    asked, catalog = scenario.one(FabricDesign), scenario.catalog
    idle = {name: of_fabric.idle_inputs(asked, name, catalog, beside=True) for name in names}
    check_used(tuple(idle.values()))
    return tuple(
        f"{name}: {does_nothing(word, why)}"
        for name, reasons in idle.items()
        for word, why in reasons.items()
    )


def idle_in_collective(
    scenario: Scenario, cluster: Cluster, found: CollectiveTime, only: tuple[str, ...], *, says_chips: bool
) -> tuple[str, ...]:
    """Of a collective that was timed; without `says_chips` the fabric says how many chips take part."""
    level = scenario.one(CollectiveCall).level
    idle = of_collective.idle_inputs(
        cluster, found, wiring_of(scenario), scenario.catalog, level=level, only=only
    )
    if not says_chips:
        idle.pop("on", None)
    return idle_notes(scenario, idle | _no_more(found))


def _no_more(found: CollectiveTime) -> dict[str, str]:
    """Whether there is nothing but what is shown anyway."""
    same = found.ways and algorithms(found, every=True).rows == algorithms(found, every=False).rows
    return {"all": f"these are all there are for {found.choice.collective}"} if same else {}


def said_of_run(scenario: Scenario) -> tuple[str, ...]:
    """What was said of a run that may have done nothing."""
    act = ("on", "chips", "chip", "name", "bandwidth", "job", "background")
    names = [*scenario.form.fields, *(table.name for table in scenario.form.tables)]
    return tuple(
        name for name in names if name not in act and (scenario.given(name) or scenario.said.get(name))
    )


def idle_in_run(scenario: Scenario, idle: Mapping[str, str], *, sprays: bool) -> tuple[str, ...]:
    """Of flows that were simulated; and of failures that did something, a time to reroute that did not.

    Who sprays packets sends fewer by a part that keeps some of its bandwidth; other routing stays with it.
    """
    slowed = any(one.reroute_s is not None and one.left_fraction > 0 for one in scenario.all(Failure))
    why = "the part keeps some of its bandwidth, and only who sprays packets sends fewer that way"
    stays = slowed and not sprays and "failure" not in idle
    return (*idle_notes(scenario, idle), *((do_nothing(["reroute"], why),) if stays else ()))

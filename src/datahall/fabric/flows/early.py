"""What cannot be simulated on a fabric, refused from the question alone, before anything is laid."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal, get_args

from datahall.catalog.entries.network.transport import Transport
from datahall.errors import ScenarioError, option
from datahall.fabric.design.chips import num_chips, own_chips
from datahall.fabric.design.early import check_design
from datahall.fabric.design.idle import idle_error
from datahall.scenario.idle import is_changed
from datahall.scenario.scenario import Attempts, Scenario
from datahall.scenario.sections.fabric import Background, FabricDesign, FabricJob, Network, Stall
from datahall.scenario.sections.views import Simulation

Fidelity = Literal["closed-form", "symmetric", "full"]
FIDELITIES: tuple[Fidelity, ...] = get_args(Fidelity)


def check_flows(scenario: Scenario) -> None:
    """Refuse a fabric that cannot be wired, and who sends nothing, or from where no chip is.

    Of a file the room that builds it does, together with all that only that room knows.
    """
    asked, design = scenario.one(Simulation), scenario.one(FabricDesign)
    if scenario.document is not None:
        return
    if asked.check_with:
        check_levels(asked.detail, asked.check_with)
    tries = Attempts(scenario)
    tries.make(partial(check_sent, scenario))
    tries.make(partial(check_network, scenario))
    if design.bandwidth_bytes_per_s is None:
        tries.make(partial(_check_wired, scenario), field="on")
    tries.finish()
    _check_ends(scenario, tries)
    tries.finish()


def _check_wired(scenario: Scenario) -> None:
    design = scenario.one(FabricDesign)
    num_chips(design, scenario.catalog)
    check_design(design, scenario.catalog)


def _check_ends(scenario: Scenario, tries: Attempts) -> None:
    design = scenario.one(FabricDesign)
    if design.bandwidth_bytes_per_s is not None:
        return
    num_hosts = own_chips(design, scenario.catalog) or num_chips(design, scenario.catalog)
    for index, job in enumerate(scenario.all(FabricJob)):
        tries.make(partial(check_endpoints, job.ranks, num_hosts, "ranks"), index=index, section="job")
        tries.make(partial(check_joined, len(job.ranks) or num_hosts), index=index, section="job")
    for index, one in enumerate(scenario.all(Background)):
        for key, numbers in (("hosts", one.hosts), ("target", () if one.target is None else (one.target,))):
            tries.make(partial(check_endpoints, numbers, num_hosts, key), index=index, section="background")
    for index, stall in enumerate(scenario.all(Stall)):
        tries.make(partial(check_stall, stall, num_hosts), index=index, section="stall")


def check_sent(scenario: Scenario) -> None:
    """Refuse a question without jobs and without background."""
    if not scenario.all(FabricJob) and not scenario.all(Background):
        raise ScenarioError(
            "nothing is sent",
            where=scenario.path,
            field="job",
            hint=f"add a {option('job', 'collective=all-reduce,size=64MB')} or a {option('background')}",
        )


def check_endpoints(numbers: Sequence[int], num_hosts: int, key: str) -> None:
    """Refuse numbers of chips that a fabric does not have."""
    outside = next((one for one in numbers if one >= num_hosts), None)
    if outside is not None:
        raise ScenarioError(
            f"{key}: endpoint {outside} is not there",
            field=key,
            hint=f"the fabric has 0 to {num_hosts - 1:,}",
        )


def check_joined(num_chips: int) -> None:
    """Refuse a collective of one chip alone."""
    if num_chips < 2:
        raise ScenarioError("a collective joins two chips or more", field="ranks", hint=option("ranks", 2))


def check_network(scenario: Scenario) -> None:
    """Refuse losses of a transport that loses nothing, and lanes of one that holds nobody back."""
    network = scenario.one(Network)
    transport = scenario.catalog.transport(network.transport)
    check_loss(transport, network.loss_fraction)
    if not transport.holds_back and is_changed(scenario, "lanes"):
        raise idle_error("lanes", f"{transport.title} drops packets and holds nobody back", "")


def check_loss(transport: Transport, loss_fraction: float) -> None:
    """Refuse a share that is none, and packets lost by a transport that loses none."""
    if not 0.0 <= loss_fraction < 1.0:
        raise ScenarioError(
            f"a loss of {loss_fraction:g}", field="loss", hint="0 or more and below 1, e.g. 0.001"
        )
    if transport.holds_back and loss_fraction > 0.0:
        raise ScenarioError(
            f"{transport.name} does not drop packets when congested",
            field="loss",
            hint=f"use {option('transport', 'tcp')}",
        )


def check_numbers(chosen: Sequence[int], count: int, what: str) -> None:
    """Refuse numbers of parts that are not there."""
    wrong = next((one for one in chosen if not 0 <= one < count), None)
    if wrong is not None:
        raise ScenarioError(
            f"there is no {what} {wrong}", hint=f"0 to {count - 1}" if count else f"it has no {what} at all"
        )


def check_stall(asked: Stall, num_hosts: int) -> None:
    """Refuse a stall of a chip that is not there."""
    if asked.chip >= num_hosts:
        raise ScenarioError(f"chip {asked.chip} is not there", field="chip", hint=f"0 to {num_hosts - 1:,}")


def check_levels(level: str, other: str) -> tuple[Fidelity, Fidelity]:
    """Two levels to compare, the coarser first; a level says nothing beside itself."""
    if other == level:
        known = ", ".join(one for one in FIDELITIES if one != level)
        raise ScenarioError(
            f"{option('check_with', other)} is the detail that is simulated",
            field="check_with",
            hint=f"one of {known}",
        )
    both = sorted((one for one in FIDELITIES if one in (level, other)), key=FIDELITIES.index)
    return both[0], both[1]

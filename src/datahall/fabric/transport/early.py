"""The network that transports are held against, and what is refused of it before it is laid."""

from __future__ import annotations

import msgspec

from datahall.errors import ScenarioError, option
from datahall.fabric.design.chips import is_built
from datahall.fabric.design.design import Design
from datahall.fabric.design.early import check_built, check_design
from datahall.fabric.design.idle import idle_error
from datahall.fabric.design.topologies import topology_of_parts
from datahall.scenario.idle import is_changed
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.transports import Transports
from datahall.scenario.usual import USUAL_NETWORK
from datahall.scenario.words import SPLITTING

MOST_CHIPS = 524_288  # each sends to eight others beside a stuck receiver: four million paths at once
HINT = "a network of switches between hosts, e.g. fat-tree, rail-optimised, tree, or nvl72 with more than 72 chips"


def network(asked: FabricDesign) -> FabricDesign:
    """The fabric that was asked for, or a fat tree."""
    return msgspec.structs.replace(asked, topology=asked.topology or USUAL_NETWORK)


def check_transports(scenario: Scenario) -> None:
    """Refuse, before anything is laid, chips that scale-up links alone join, and what no design can be made of."""
    _check_paths(scenario)
    asked, catalog = network(scenario.one(FabricDesign)), scenario.catalog
    if is_built(asked.topology, catalog):
        check_built(asked, catalog, whole=True)
    elif topology_of_parts(asked.topology).kind == "direct":
        raise _no_network(asked.topology)
    check_design(asked, catalog)
    if (asked.chips or 0) > MOST_CHIPS:
        raise ScenarioError(
            f"{asked.chips:,} chips are more than can be followed one by one",
            field="chips",
            hint=f"at most {option('chips', MOST_CHIPS)}: so many take half a minute",
        )


def _check_paths(scenario: Scenario) -> None:
    """Refuse queue pairs where no transport keeps to the path of one."""
    names = scenario.one(Transports).transports
    hashed = any(scenario.catalog.transport(name).routing in SPLITTING for name in names)
    if not hashed and is_changed(scenario, "paths"):
        able = [one.name for one in scenario.catalog.transports() if one.routing in SPLITTING]
        raise idle_error("paths", "each packet has a path of its own", f"add one of {', '.join(able)}")


def check_joined(made: Design) -> None:
    """Refuse a fabric that is one scale-up domain, or wires between chips: no transport is between its hosts."""
    if made.parts.switch is None or made.counts.num_hosts == made.parts.num_domain:
        raise _no_network(made.fabric.name)


def _no_network(name: str) -> ScenarioError:
    return ScenarioError(f"{name} has no network between hosts", field="on", hint=HINT)

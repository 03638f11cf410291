"""What a serving plan comes to over months: what failures leave of it, what its replicas load, and what it draws."""

from __future__ import annotations

from functools import partial

from datahall.cluster.wiring import wiring_of
from datahall.datapath.sections.weights import weights_need
from datahall.inference.engine.machine import machine_of
from datahall.inference.engine.replica import exchanging_chips
from datahall.inference.memory.kv_pool import weight_bytes
from datahall.planner.serving.candidate import Candidate
from datahall.planner.serving.plan import ServingPlan
from datahall.power.sections.service import ServicePower
from datahall.power.sections.unknown import UnknownPower, power_or_why
from datahall.power.site import Machines, building_of, lone_machines, machines_of
from datahall.reliability.sections.upkeep import upkeep_of
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.operations.site import Site


def with_operations(plan: ServingPlan, scenario: Scenario) -> ServingPlan:
    """The plan with its failures, its weights and its power, or that nobody knows it."""
    best = plan.chosen
    replica, catalog = best.replica, scenario.catalog
    weights = weights_need(catalog, replica.chip, weight_bytes(replica), replica.num_chips)
    upkeep = upkeep_of(
        scenario, replica.chip, best.num_deployed, replica.num_chips, weights.load_s, num_spare=best.num_spare
    )
    plan = plan.with_section(upkeep).with_section(weights)
    return plan.with_section(power_of(best, scenario))


def power_of(best: Candidate, scenario: Scenario) -> ServicePower | UnknownPower:
    """What a candidate draws, or that nobody knows it."""
    chip = best.replica.chip
    return power_or_why(chip, lambda: _machines(best, scenario), partial(_power, best, scenario))


def _power(best: Candidate, scenario: Scenario, machines: Machines) -> ServicePower:
    site = scenario.one(Site)
    return ServicePower(
        held=best.held,
        num_replicas=best.num_deployed,
        rate_per_s=best.offered_per_s,
        full_rate_per_s=best.full_rate_per_s,
        machines=machines,
        building=building_of(site, scenario.catalog),
        grid=scenario.catalog.grid(site.grid),
    )


def _machines(best: Candidate, scenario: Scenario) -> Machines:
    """The servers, and the network where replicas stretch over it: what leads to users is not counted."""
    replica, num_chips, catalog = best.replica, best.num_chips, scenario.catalog
    within = exchanging_chips(replica) <= replica.num_domain
    cluster = None if within else machine_of(replica.chip, num_chips, wiring_of(scenario), catalog)
    if cluster is None:
        return lone_machines(replica.chip, catalog, num_chips)
    return machines_of(cluster, catalog, num_chips)

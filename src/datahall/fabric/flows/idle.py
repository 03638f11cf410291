"""Which inputs a run was given for nothing: the flows would have met the same links at the same rates without them."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
import numpy as np

from datahall.catalog import Catalog
from datahall.fabric.design.asked import fabric_of
from datahall.fabric.design.left_out import each_left_out, same_without
from datahall.fabric.flows.jobs import traffic
from datahall.fabric.flows.outcome import Outcome, lost_links, meets
from datahall.fabric.routing.paths import num_paths
from datahall.fabric.topology.graph import Fabric, Ints
from datahall.scenario.sections.fabric import LINKS, PARTS, WIRING, FabricDesign


def idle_inputs(
    outcome: Outcome, asked: FabricDesign, catalog: Catalog, said: Collection[str]
) -> dict[str, str]:
    """Those of the inputs that were `said` which changed nothing of a run, and why."""
    if not said:
        return {}
    met, carried = outcome.traffic.flows.paths.links, np.flatnonzero(outcome.run.link_bytes > 0)
    used = np.union1d(met, carried).astype(np.int32)  # those that stand for a pool, and the others of it
    found = {
        **_of_wiring(outcome, asked, catalog, used),
        **_of_stalls(outcome),
        **_of_transport(outcome),
        **({} if _failures_act(outcome, used) else {"failure": "no flow meets what is out"}),
        **({} if outcome.scenario.jobs else {"check_with": "background has no end to compare"}),
        **(_of_routing(outcome) if {"lanes", "seed", "routing", "paths"} & set(said) else {}),
    }
    return {name: why for name, why in found.items() if name in said}


def _of_wiring(outcome: Outcome, asked: FabricDesign, catalog: Catalog, used: Ints) -> dict[str, str]:
    def why(less: FabricDesign) -> str:
        other = fabric_of(less, catalog)
        return "no flow meets what it changes" if _alike(outcome.scenario.wired, other, used) else ""

    return same_without(each_left_out(asked, WIRING, PARTS, LINKS), why)


def _alike(one: Fabric, other: Fabric, used: Ints) -> bool:
    """Whether two fabrics join the same ends, with the same links where flows pass."""
    return (
        np.array_equal(one.link_source, other.link_source)
        and np.array_equal(one.link_target, other.link_target)
        and np.array_equal(one.link_bytes_per_s[used], other.link_bytes_per_s[used])
        and np.array_equal(one.link_latency_s[used], other.link_latency_s[used])
    )


def _of_routing(outcome: Outcome) -> dict[str, str]:
    net, flows, reasons = outcome.scenario.net, outcome.traffic, {}
    if not net.carrier.head_of_line:
        reasons["lanes"] = "with two lanes no flow waits behind another, so more are no better"
    if not net.routing.rule.draws and not outcome.scenario.bursts:
        reasons["seed"] = "nothing is drawn at random"
    sent = flows.source >= 0
    pairs = np.unique(flows.source[sent] * np.int64(net.fabric.num_hosts) + flows.target[sent])
    ends = np.divmod(pairs, net.fabric.num_hosts)
    if not net.routing.rule.sprays and bool((num_paths(net.fabric, *ends) <= 1).all()):
        names = ("routing", "paths", *(() if outcome.scenario.bursts else ("seed",)))
        reasons |= dict.fromkeys(
            names, "there is one shortest path between any two of them, and flows share it"
        )
    return reasons


def _of_transport(outcome: Outcome) -> dict[str, str]:
    carrier = outcome.scenario.net.carrier
    if not carrier.transport.holds_back and not carrier.loss_fraction:
        return {"transport": "nothing is lost, and what drops nothing is as fast as credits"}
    return {}


def _of_stalls(outcome: Outcome) -> dict[str, str]:
    stalls, reasons = outcome.scenario.stalls, {}
    met = [one for one in stalls if meets(outcome, one.link, one.start_s, one.end_s)]
    if not met:
        reasons["stall"] = "nothing is sent there then"
    watchdog_s, late = outcome.scenario.net.carrier.stuck_s, outcome.run.makespan_s
    if all(one.end_s - one.start_s <= watchdog_s or one.start_s + watchdog_s >= late for one in met):
        reasons["watchdog"] = "it would come after the end of the stall, or of all"
    return reasons


def _failures_act(outcome: Outcome, used: Ints) -> bool:
    scenario = outcome.scenario
    if any(meets(outcome, *lost) for lost in lost_links(scenario.changes, scenario.net.fabric, used)):
        return True
    whole = msgspec.structs.replace(scenario.net, fabric=scenario.wired, steady=False, known_later=())
    if whole.fabric is scenario.net.fabric:
        return False
    before = traffic(whole, scenario.jobs, scenario.bursts, outcome.level).flows.paths
    now = outcome.traffic.flows.paths
    return not (
        np.array_equal(before.links, now.links)
        and np.array_equal(before.offsets, now.offsets)
        and _alike(scenario.net.fabric, scenario.wired, used)
    )

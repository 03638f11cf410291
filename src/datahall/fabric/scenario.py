"""A scenario of a fabric: how it is wired, which jobs talk over it, what else is on it, what fails when."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import msgspec

from datahall.catalog import Catalog
from datahall.catalog import document as documents
from datahall.catalog.document import Document
from datahall.errors import DatahallError, DocumentError
from datahall.fabric.flows.congestion import KINDS, Kind, Transport, pause_storm
from datahall.fabric.flows.jobs import Burst, Job, Level, Net, Routing, Traffic, traffic
from datahall.fabric.flows.simulate import NO_CHANGES, Changes, Run, merged, simulate
from datahall.fabric.flows.symmetry import simulate_folded
from datahall.fabric.routing.ecmp import POLICIES, Policy
from datahall.fabric.scenario_fabric import FABRIC, read_fabric
from datahall.fabric.scenario_file import Read, Reader, Rule, number
from datahall.fabric.scenario_traffic import (
    BACKGROUND,
    FAILURE,
    JOB,
    STALL,
    Ask,
    Stall,
    read_burst,
    read_failure,
    read_job,
    read_stall,
)

MANY_FLOWS = 50_000  # above it, ends that lie within GRAIN of a flow's own time are taken together
GRAIN = 0.01

ROOT = {
    "version": Rule("count", 1.0, required=True),
    "kind": Rule("text", "fabric", ("fabric",)),
    "name": Rule("text", ""),
    "seed": Rule("count", 0.0),
}
NET = {
    "routing": Rule("text", "ecmp", POLICIES),
    "paths": Rule("count", 1.0, least=1),
    "transport": Rule("text", "infiniband", KINDS),
    "lanes": Rule("count", 2.0, least=1),
    "loss": Rule("fraction", 0.0),
    "selective_repeat": Rule("flag", False),
    "watchdog": Rule("s", 0.1),
}


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a run needs."""

    name: str
    path: str
    net: Net
    jobs: tuple[Job, ...]
    asks: tuple[Ask, ...]
    bursts: tuple[Burst, ...]
    changes: Changes
    stalls: tuple[Stall, ...] = ()


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario that was played at one level."""

    scenario: Scenario
    level: Level
    traffic: Traffic
    run: Run
    grain_fraction: float = 0.0  # how far apart ends may lie that were taken together


def read_scenario(path: str | Path, catalog: Catalog | None = None) -> Scenario:
    """Read and check a scenario; all its problems are raised together."""
    return scenario_of(documents.read(Path(path)), catalog)


def play(scenario: Scenario, level: Level = "symmetric") -> Outcome:
    """Run a scenario, folding alike flows at the symmetric level where nothing forbids it."""
    flows = traffic(scenario.net, scenario.jobs, scenario.bursts, level)
    capacity = scenario.net.fabric.link_bytes_per_s
    changes = scenario.changes
    for stall in scenario.stalls:
        storm = pause_storm(
            flows.flows.paths, stall.link, capacity, at_s=stall.at_s, until_s=stall.until_s,
            watchdog_s=scenario.net.transport.watchdog_s,
        )  # fmt: skip
        changes = merged(changes, storm)
    grain = GRAIN if flows.flows.num_flows > MANY_FLOWS else 0.0
    if level == "symmetric" and not flows.head_of_line:
        run = simulate_folded(flows.flows, capacity, changes=changes, grain_fraction=grain)
    else:
        run = simulate(
            flows.flows, capacity, changes=changes, grain_fraction=grain, head_of_line=flows.head_of_line
        )
    return Outcome(scenario=scenario, level=level, traffic=flows, run=run, grain_fraction=grain)


def scenario_of(document: Document, catalog: Catalog | None = None) -> Scenario:
    """The scenario that a document describes."""
    reader = Reader(document)
    known = {*ROOT, "fabric", "job", "background", "failure", "stall"}
    plain = {key: value for key, value in document.content.items() if key in ROOT or key not in known}
    root = reader.table((), plain, ROOT)
    if root["version"] != 1:
        reader.problem(("version",), f"version is {root['version']:g}", "this release reads version = 1")
    wired = reader.table(("fabric",), document.content.get("fabric"), FABRIC | NET)
    if "fabric" not in document.content:
        reader.problem((), "[fabric] is missing", 'e.g. topology = "fat-tree", chips = 1024')
    fabric = read_fabric(reader, wired, catalog)
    jobs = reader.tables("job", JOB)
    bursts = reader.tables("background", BACKGROUND)
    failures = reader.tables("failure", FAILURE)
    stalls = reader.tables("stall", STALL)
    if not jobs and not bursts:
        reader.problem((), "nothing is sent", "add a [[job]] or a [[background]]")
    if fabric is None:
        raise DocumentError(document.path, reader.problems)
    transport = _transport(reader, wired)
    seed = int(number(root["seed"]))
    made = [job for place, values in jobs if (job := read_job(reader, place, values, fabric)) is not None]
    name = str(root["name"]) or Path(document.path).stem
    scenario = Scenario(
        name=name,
        path=document.path,
        net=Net(
            fabric=fabric,
            routing=Routing(cast(Policy, wired["routing"]), int(number(wired["paths"]))),
            transport=transport,
            seed=seed,
        ),
        jobs=tuple(job for job, _ in made),
        asks=tuple(ask for _, ask in made),
        bursts=tuple(read_burst(reader, place, values, fabric, seed) for place, values in bursts),
        changes=merged(
            NO_CHANGES, *(read_failure(reader, place, values, fabric) for place, values in failures)
        ),
        stalls=tuple(read_stall(reader, place, values, fabric) for place, values in stalls),
    )
    if reader.problems:
        raise DocumentError(document.path, reader.problems)
    return scenario


def _transport(reader: Reader, wired: dict[str, Read]) -> Transport:
    try:
        return Transport(
            kind=cast(Kind, wired["transport"]),
            virtual_lanes=int(number(wired["lanes"])),
            loss_fraction=number(wired["loss"]),
            selective_repeat=bool(wired["selective_repeat"]),
            watchdog_s=number(wired["watchdog"]),
        )
    except DatahallError as error:
        reader.problem(("fabric", "loss"), error.message, error.hint)
        return Transport()

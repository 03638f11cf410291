"""A way to route is its name in `scenario.words` and one row of a table; everything else is read from that row."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from datahall.catalog import Catalog
from datahall.errors import ScenarioError
from datahall.fabric.design.asked import fabric_of
from datahall.fabric.flows.asked import job_of
from datahall.fabric.flows.crosscheck import job_times
from datahall.fabric.flows.jobs import Net, Routing
from datahall.fabric.flows.outcome import FlowScenario
from datahall.fabric.routing import policies
from datahall.fabric.routing.paths import route
from datahall.fabric.routing.policies import RULES, Asked, Rule, Spread
from datahall.scenario.sections.fabric import FabricDesign, FabricJob
from datahall.scenario.words import POLICIES

HOUSE = Path(policies.__file__).parents[2]
NEW = "by-source"


def test_every_word_has_its_row() -> None:
    assert tuple(RULES) == POLICIES
    assert len({rule.title for rule in RULES.values()} - {""}) == len(POLICIES)


def test_nobody_asks_for_a_routing_by_its_name() -> None:
    words = "|".join(POLICIES)
    spelled = re.compile(
        rf"(?:policy|routing)\w* (?:[!=]=|in|not in) .*\"(?:{words})\"|\"routing=(?:{words})\""
    )
    found = [
        f"{path.relative_to(HOUSE)}: {line.strip()}"
        for path in HOUSE.rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if spelled.search(line)
    ]
    assert found == []


def by_source(asked: Asked) -> Spread:
    pick = asked.source.astype(np.int64)
    return Spread(paths=route(asked.fabric, asked.source, asked.target, pick, partial=asked.partial))


def times(routing: str) -> list[float]:
    fabric = fabric_of(
        FabricDesign(topology="clos", chips=64, radix=16, oversubscription=(2.0,)), Catalog(user=False)
    )
    job = job_of(FabricJob(collective="all-to-all", algorithm="pairwise", size_bytes=64e6), 0, fabric)[0]
    flows = FlowScenario(net=Net(fabric=fabric, routing=Routing(routing)), wired=fabric, jobs=(job,), asks=())
    return [job_times(flows, level)[0] for level in ("closed-form", "symmetric", "full")]


def test_a_row_more_is_a_routing_more_at_every_level(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ScenarioError, match="not a way to route"):
        times(NEW)
    monkeypatch.setitem(RULES, NEW, Rule(by_source, "by its source"))
    closed, *simulated = times(NEW)
    assert closed == times("deterministic")[0]
    assert all(took >= closed * (1 - 1e-9) for took in simulated)
    # the same row under another name is the same routing
    monkeypatch.setitem(RULES, NEW, RULES["spray"])
    assert times(NEW) == times("spray")

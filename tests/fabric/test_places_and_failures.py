"""What failures, stalls and uneven groups do to sprayed packets, to rings on rails and to the closed form."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from datahall.answer import Answer
from datahall.answers.ask import ask, form_of
from datahall.answers.reply import answer_of
from datahall.catalog import Catalog
from datahall.errors import InfeasibleError, ScenarioError
from datahall.fabric.collectives.algorithms.steps import phases
from datahall.fabric.flows.congestion import paused
from datahall.fabric.flows.outcome import flow_scenario
from datahall.fabric.flows.simulate import NO_CHANGES, Changes
from datahall.fabric.routing.paths import CutOffError
from datahall.scenario.read import read_names

SHELF = Catalog(user=False)
LEAVES: dict[str, Any] = {
    "on": "leaf-spine", "chips": 8, "radix": 4, "bandwidth": "50 GB/s", "routing": "spray",
}  # fmt: skip
EVERYBODY = [{"collective": "all-to-all", "size": "1 GB"}]


def simulated(**said: Any) -> Answer:
    return answer_of(ask("simulate fabric", LEAVES | {"job": EVERYBODY} | said, catalog=SHELF))


def makespan_s(answer: Answer) -> float:
    found = answer.results["makespan_s"]
    assert isinstance(found, float)
    return found


@pytest.mark.parametrize("out", [{"links": 16}, {"links": 17}, {"switches": 5}])
def test_a_way_up_that_is_out_is_felt_by_sprayed_packets_and_not_called_idle(out: dict[str, int]) -> None:
    whole, broken = simulated(), simulated(failure=[out])
    assert makespan_s(broken) > 1.5 * makespan_s(whole)
    assert not any("failure does nothing" in note for note in broken.notes)


def test_packets_that_went_up_one_way_come_down_there() -> None:
    """Leaf 0 keeps the one spine, leaf 1 the other, and the others none: there is no way between the two."""
    job = [{"collective": "send-recv", "size": "1 GB", "ranks": [0, 2]}]
    with pytest.raises(InfeasibleError, match="have no way through"):
        simulated(job=job, failure=[{"links": [16, 19, 20, 21, 22, 23]}])


@pytest.mark.parametrize("ranks", ["0-7", "0-2,4-7", "1,3,5,7"])
def test_chips_that_are_out_are_left_out_by_the_ranks_that_the_error_says(ranks: str) -> None:
    """Each pair is named once, though many flows join it; the place is that of the failure."""
    out = int(ranks[-1]) - 2
    ring = {"collective": "all-reduce", "size": "1 MB"}
    with pytest.raises(CutOffError) as caught:
        simulated(job=[ring | {"ranks": ranks}], failure=[{"chips": out}])
    error = caught.value
    named = re.findall(r"\d+→\d+", error.message)
    assert len(named) == len(set(named)) == min(5, error.source.size)
    assert error.message.startswith(f"{error.source.size} of the pairs")
    assert error.field == "failure"
    (left,) = re.findall(r"ranks=(\S+)", error.hint)
    whole = simulated(job=[ring | {"ranks": left}], failure=[{"chips": out}])
    assert whole.verdict == "yes"


@pytest.mark.parametrize("more", [{}, {"start": "1 ms"}, {"left": "50 %"}])
def test_the_same_failure_twice_is_refused(more: dict[str, str]) -> None:
    out = {"switches": 4} | more
    with pytest.raises(ScenarioError, match="said twice") as caught:
        simulated(failure=[out, out])
    assert caught.value.field == "failure"
    assert simulated(failure=[out, out | {"switches": 5, "left": "50 %"}]).verdict == "yes"


def test_the_same_failure_twice_is_refused_of_a_collective() -> None:
    said = {"collective": "all-reduce", "on": "fat-tree", "chips": 64, "size": "1 GB"}
    with pytest.raises(ScenarioError, match="said twice"):
        ask("show collective", said | {"failure": [{"nics": 3}, {"nics": 3}]}, catalog=SHELF)


def test_no_ranks_are_offered_where_parts_of_the_fabric_are_apart() -> None:
    """The chips work; the leaves have no way up."""
    with pytest.raises(CutOffError) as caught:
        simulated(failure=[{"switches": [4, 5]}])
    assert caught.value.field == "failure"
    assert "ranks=" not in caught.value.hint


def test_links_of_a_pool_carry_and_peak_alike() -> None:
    found = simulated(chips=24, radix=12, oversubscription="2:1")
    (table,) = (table for table in found.tables if table.title.startswith("the fullest"))
    rows = [row for row in table.rows if "tier 1 switch 0 → tier 2" in str(row[0])]
    assert len(rows) == 4
    assert len({row[1:] for row in rows}) == 1
    assert rows[0][3] == pytest.approx(1.0)


@pytest.mark.parametrize("routing", ["deterministic", "ecmp", "spray"])
@pytest.mark.parametrize("topology", ["fat-tree", "leaf-spine", "rail-optimised", "hyperx"])
def test_a_dead_port_leaves_the_closed_form_below_the_run(topology: str, routing: str) -> None:
    asked = {
        "on": topology, "chips": 64, "routing": routing, "check_with": "closed-form", "failure": [{"nics": 0}],
        "job": [{"collective": "all-reduce", "size": "1 GB"}],
    }  # fmt: skip
    found = answer_of(ask("simulate fabric", asked, catalog=SHELF))
    (table,) = (table for table in found.tables if table.title.startswith("cross-check"))
    _, closed, run, _ = table.rows[0]
    assert isinstance(closed, float)
    assert isinstance(run, float)
    assert 0 < closed <= 1.02 * run  # the longest way and the busiest place need not be of one flow


def test_the_closed_form_is_of_flows_however_many_queue_pairs_they_have() -> None:
    asked = {"on": "fat-tree", "chips": 64, "job": EVERYBODY, "check_with": "closed-form"}
    one, four = (
        answer_of(ask("simulate fabric", asked | {"paths": paths}, catalog=SHELF)) for paths in (1, 4)
    )
    closed = [
        next(table for table in each.tables if table.title.startswith("cross-check")).rows[0][1]
        for each in (one, four)
    ]
    assert closed[0] == closed[1]


def test_what_failed_stays_so_when_a_pause_ends() -> None:
    """Link 0 fails for good at 1, link 1 is halved at 4; both are paused from 2 to 3, link 1 again from 3.5 to 5."""
    failures = Changes(np.array([1.0, 4.0]), np.array([0, 1], np.int32), np.array([0.0, 5.0]))
    storms = [
        Changes(
            np.array([2.0, 2.0, 3.0, 3.0]), np.array([0, 1, 0, 1], np.int32), np.array([0, 0, 10.0, 10.0])
        ),
        Changes(np.array([3.5, 5.0]), np.array([1, 1], np.int32), np.array([0.0, 10.0])),
    ]
    found = paused(failures, storms, np.array([10.0, 10.0]))
    told = list(zip(found.at_s.tolist(), found.link.tolist(), found.bytes_per_s.tolist(), strict=True))
    assert told == [
        (1.0, 0, 0.0), (2.0, 0, 0.0), (2.0, 1, 0.0), (3.0, 0, 0.0), (3.0, 1, 10.0), (3.5, 1, 0.0), (4.0, 1, 0.0),
        (5.0, 1, 5.0),
    ]  # fmt: skip
    assert paused(NO_CHANGES, (), np.array([1.0])).at_s.size == 0


@pytest.mark.parametrize(
    ("domains", "channels"), [((8,) * 7 + (7,), 7), ((4, 8, 4), 4), ((8, 1), 1), ((8, 8, 8), 8)]
)
def test_ranks_that_do_not_fill_their_domains_use_every_port_that_they_can(
    domains: tuple[int, ...], channels: int
) -> None:
    """As many channels as the smallest domain has ranks; no port has two, in or out."""
    num_ranks = sum(domains)
    (step,) = phases("all-gather", "ring", num_ranks, 1.0, domains)
    domain = np.repeat(np.arange(len(domains)), domains)
    far = domain[step.source] != domain[step.target]
    assert step.source.size == channels * num_ranks
    assert far.sum() == channels * len(domains)
    for ends in (step.source[far], step.target[far]):
        assert np.bincount(ends).max() == 1


def test_trees_stay_on_their_rails() -> None:
    for step in phases("all-reduce", "tree", 64, 1.0, 8):
        far = step.source // 8 != step.target // 8
        assert (step.source[far] % 8 == step.target[far] % 8).all()


@pytest.mark.parametrize(
    ("more", "pooled"),
    [
        ({}, True),
        ({"failure": [{"links": 16}]}, False),
        ({"failure": [{"links": 16, "start": "1 ms"}]}, False),
        ({"stall": [{"chip": 0, "start": "1 ms", "duration": "1 ms"}]}, False),
        ({"routing": "ecmp"}, False),
    ],
)
def test_links_are_pooled_while_nothing_happens_to_them(more: dict[str, Any], pooled: bool) -> None:
    said = LEAVES | {"job": EVERYBODY} | more
    scenario = flow_scenario(read_names(form_of("simulate fabric"), said, SHELF))
    assert (scenario.net.pool is not None) is pooled

"""Collectives and fabrics: no time below the bytes over the narrowest cut, and two ways of asking agree."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.first_look.conftest import Run
from tests.first_look.figures import table, words_of
from tests.results import number

import datahall as dh
from datahall.answer import Answer
from datahall.catalog import Catalog
from datahall.fabric.flows import crosscheck
from datahall.fabric.flows.closed_form import closed_form_s
from datahall.fabric.flows.jobs import Job, Net

NIC = 50e9  # bytes/s of a 400 Gb/s port, one way
GB = 1e9
LEAF = 64  # ports of a leaf: no more chips stand under one
DOMAIN = 8  # chips of a server


def collective(kind: str, shelf: Catalog, **asked: object) -> Answer:
    found = dh.show_collective(kind, **asked, catalog=shelf)
    assert isinstance(found, Answer)
    return found


def time_s(kind: str, shelf: Catalog, **asked: object) -> float:
    return number(collective(kind, shelf, **asked), "time_s")


def simulated(shelf: Catalog, *, job: dict[str, str], **asked: object) -> Answer:
    found = dh.simulate_fabric(job=job, **asked, catalog=shelf)
    assert isinstance(found, Answer)
    return found


def bytes_out_of_a_leaf(kind: str, chips: int, size: float) -> float:
    """The fewest bytes that leave a leaf of at most 64 chips, one way, as nccl-tests counts a size."""
    outside = (chips - LEAF) / chips
    return {
        "all-reduce": size,  # the leaf's sum leaves it
        "all-gather": size / chips,  # at least what one of its chips has
        "reduce-scatter": size * outside,  # sums for all chips elsewhere
        "broadcast": 0.0,  # it may have nothing to say
        "all-to-all": size * outside,  # of one chip alone
    }[kind]


@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "reduce-scatter", "broadcast", "all-to-all"])
def test_every_collective_crosses_the_one_cable_of_a_leaf(kind: str, shelf: Catalog) -> None:
    """1 GB on a tree of 1,024 chips: 20 ms is the floor of an all-reduce."""
    least = bytes_out_of_a_leaf(kind, 1024, GB) / NIC
    tree = time_s(kind, shelf, on="tree", chips=1024, size="1GB")
    assert tree >= least
    assert tree >= time_s(kind, shelf, on="fat-tree", chips=1024, size="1GB")


@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "reduce-scatter", "all-to-all"])
def test_a_tree_takes_in_what_others_have(kind: str, shelf: Catalog) -> None:
    """Into each leaf comes all that its chips end up with and that did not begin there."""
    held = GB if kind == "all-reduce" else GB * (1024 - LEAF) / 1024
    assert time_s(kind, shelf, on="tree", chips=1024, size="1GB") >= held / NIC


@pytest.mark.parametrize("chips", [512, 1024])
@pytest.mark.parametrize("taper", [2, 4])
def test_a_taper_at_the_leaves_slows_an_all_to_all_by_it(taper: int, chips: int, shelf: Catalog) -> None:
    """Of what a chip sends, all but its leaf's share leaves the leaf, over a port shared by so many."""
    up = -(-LEAF // (taper + 1))  # whole ports, at most
    down = LEAF - up
    floor = down / up * GB * (chips - down) / chips / NIC
    asked = {"on": "fat-tree", "chips": chips, "size": "1GB"}
    assert time_s("all-to-all", shelf, **asked, oversubscription=f"{taper}:1") >= floor
    assert time_s("all-to-all", shelf, **asked, oversubscription="1:1") < floor


@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast"])
@pytest.mark.parametrize("on", ["fat-tree", "rail-optimised"])
def test_more_taper_is_never_faster(kind: str, on: str, shelf: Catalog) -> None:
    times = [
        time_s(kind, shelf, on=on, chips=512, size="1GB", oversubscription=f"{taper}:1")
        for taper in (1, 2, 4, 8)
    ]
    assert times == sorted(times)


@pytest.mark.parametrize("taper", [1, 2, 4])
def test_simulated_and_closed_form_see_the_same_cut(taper: int, shelf: Catalog) -> None:
    """An all-to-all over three leaves; spraying, so that no two flows meet by chance."""
    asked = {"on": "fat-tree", "chips": 128, "oversubscription": f"{taper}:1"}
    run = simulated(
        shelf, job={"collective": "all-to-all", "ranks": "128", "size": "64MB"}, **asked, routing="spray"
    )
    closed = time_s("all-to-all", shelf, **asked, size="64MB")
    assert number(run, "makespan_s") == pytest.approx(closed, rel=0.15)


def test_a_tapered_tier_is_not_full_bisection(shelf: Catalog) -> None:
    full, tapered = (
        dh.show_fabric("fat-tree", chips=4096, oversubscription=said, catalog=shelf)
        for said in ("1:1,1:1", "1:1,2:1")
    )
    assert "full bisection" not in (tapered.headline + tapered.binding).lower()
    assert number(tapered, "bisection_bytes_per_s") == pytest.approx(
        number(full, "bisection_bytes_per_s") / 2
    )


def test_a_ratio_for_a_tier_that_is_not_there_is_refused(datahall: Run) -> None:
    done = datahall("show", "fabric", "fat-tree", "--chips", "512", "--oversubscription", "1:1,2:1")
    assert done.code == 2
    assert "tiers" in done.err


@pytest.mark.parametrize(("on", "chip"), [("nvl72", "gb200"), ("nvl72", "gb300"), ("fat-tree", "h100-sxm")])
def test_what_runs_at_the_rate_of_a_nic_is_bound_by_it(on: str, chip: str, shelf: Catalog) -> None:
    """An exchange between racks; what is said to bind carries no more than what it is said to."""
    found = collective("all-to-all", shelf, on=on, chip=chip, chips=1152, size="1GB")
    assert number(found, "busbw_bytes_per_s") <= NIC * (2 if chip == "gb300" else 1)
    assert "NIC" in found.binding
    assert "scale-up" not in found.binding


@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "reduce-scatter"])
def test_a_simulated_collective_uses_every_nic(kind: str, shelf: Catalog) -> None:
    """128 H100: one port of eight would carry 50 GB/s of bus bandwidth, whatever the algorithm."""
    run = simulated(
        shelf,
        on="fat-tree",
        chips=128,
        chip="h100-sxm",
        job={"collective": kind, "ranks": "128", "size": "1GB"},
    )
    (job,) = table(run, "jobs and background").records()
    busbw = job["bus_bandwidth_bytes_per_s"]
    assert isinstance(busbw, float)
    assert busbw > 3 * NIC  # hashed flows may meet, three to a cable


@pytest.mark.parametrize("on", ["fat-tree", "rail-optimised"])
def test_the_ring_that_is_simulated_is_the_ring_of_the_closed_form(on: str, shelf: Catalog) -> None:
    """Sprayed, so that no flows meet: not below the bytes over the ports of a server, nor above what was measured."""
    run = simulated(
        shelf,
        on=on,
        chips=128,
        routing="spray",
        job={"collective": "all-reduce", "ranks": "128", "size": "1GB"},
    )
    floor = 2 * (1 - DOMAIN / 128) * GB / (DOMAIN * NIC)
    assert number(run, "makespan_s") >= floor
    assert number(run, "makespan_s") <= time_s(
        "all-reduce", shelf, on=on, chips=128, size="1GB", algorithm="ring"
    )


def cross_checked(shelf: Catalog, routing: str) -> tuple[Answer, float]:
    """A ring over 128 chips of a fat tree, and how far the simulation is from the closed form."""
    run = simulated(
        shelf,
        on="fat-tree",
        chips=128,
        routing=routing,
        check_with="closed-form",
        job={"collective": "all-reduce", "ranks": "128", "size": "1GB"},
    )
    (row,) = table(run, "cross-check").records()
    assert number(run, "worst_difference_fraction") == abs(row["difference_fraction"])
    return run, row["difference_fraction"]


@pytest.mark.parametrize("routing", ["ecmp", "deterministic"])
def test_a_cross_check_differs_by_what_flows_lose_where_they_meet(routing: str, shelf: Catalog) -> None:
    """A closed form that knows of no flows is passed by the bytes' time over what the slowest flow gets, no more.

    A tenth of the ring at most is latency, which nobody shares.
    """
    run, difference = cross_checked(shelf, routing)
    slowest = number(run, "slowest_fraction")
    assert slowest <= 0.5
    assert 0.9 * (1 / slowest - 1) <= difference <= 1 / slowest - 1


@pytest.mark.parametrize("factor", [1.0, 2.0, 0.98])
def test_a_cross_check_sees_a_closed_form_that_is_wrong(
    factor: float, shelf: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sprayed, no flows meet and the two agree; a closed form that is out by a factor is said to be."""

    def other(net: Net, job: Job) -> float:
        return factor * closed_form_s(net, job)

    monkeypatch.setattr(crosscheck, "closed_form_s", other)
    _, difference = cross_checked(shelf, "spray")
    assert difference == pytest.approx(1 / factor - 1, abs=1e-9)


def test_a_failure_of_a_spine_is_routed_around(shelf: Catalog) -> None:
    job = {"collective": "all-reduce", "ranks": "256", "size": "64MB"}
    asked = {"on": "fat-tree", "chips": 256}
    broken = simulated(shelf, **asked, job=job, failure={"switches": "8"})
    assert number(broken, "num_stuck") == 0
    assert number(broken, "makespan_s") >= number(simulated(shelf, **asked, job=job), "makespan_s")


def test_a_failure_in_mid_run_is_routed_around_too(shelf: Catalog) -> None:
    """`show fabric` says how long rerouting takes, and seven of eight spines are left."""
    job = {"collective": "all-reduce", "ranks": "256", "size": "64MB"}
    found = simulated(shelf, on="fat-tree", chips=256, job=job, failure={"switches": "8", "start": "100us"})
    assert number(found, "num_stuck") == 0


def test_what_never_ends_is_said_and_is_no_success(datahall: Run) -> None:
    line = "simulate fabric --on rail-optimised --chips 64 --job collective=all-reduce,ranks=64,size=64MB"
    done = datahall(*line.split(), "--failure", "nics=0,start=10us")
    assert done.code in (0, 1)
    assert ("never end" in done.out) == (done.code == 1)


def test_a_cube_of_a_torus_may_fail(shelf: Catalog) -> None:
    """The chips of the other cube still have each other, on the links that are left to them."""
    asked = {"on": "torus", "chips": 256, "chip": "tpu-v4"}
    job = {"collective": "all-to-all", "ranks": "0-15", "size": "1MB"}
    whole = number(simulated(shelf, **asked, job=job), "makespan_s")
    broken = simulated(shelf, **asked, job=job, failure={"cubes": "3"})
    assert number(broken, "makespan_s") >= whole


@pytest.mark.parametrize("detail", ["symmetric", "full"])
def test_a_slow_port_is_felt_in_every_detail(detail: str, shelf: Catalog) -> None:
    """At half its rate for 5.5 ms a port is 2.75 ms behind, and a ring waits for its slowest."""
    asked = {"on": "fat-tree", "chips": 32, "domain": 1, "detail": detail}
    job = {"collective": "all-reduce", "ranks": "32", "size": "256MB", "algorithm": "ring"}
    lame = {"nics": "5", "left": "50 %", "start": "0.5ms", "duration": "5.5ms"}
    whole = number(simulated(shelf, **asked, job=job), "makespan_s")
    broken = number(simulated(shelf, **asked, job=job, failure=lame), "makespan_s")
    assert broken - whole > 0.7 * 5.5e-3 / 2
    assert broken - whole <= 5.5e-3


def test_levels_agree_on_a_broken_ring(shelf: Catalog) -> None:
    asked = {"on": "fat-tree", "chips": 32, "domain": 1, "failure": {"nics": "5", "left": "50 %"}}
    job = {"collective": "all-reduce", "ranks": "32", "size": "64MB", "algorithm": "ring"}
    symmetric, full = (
        number(simulated(shelf, **asked, job=job, detail=detail), "makespan_s")
        for detail in ("symmetric", "full")
    )
    assert symmetric == pytest.approx(full, rel=0.1)


def test_a_full_ring_of_1024_ranks_in_servers_of_eight_is_not_refused(shelf: Catalog) -> None:
    """Eight channels of 1,024 messages in each of 2 · 1,023 rounds, and no faster than its ports."""
    asked = {"on": "fat-tree", "chips": 1024, "detail": "full"}
    found = simulated(shelf, **asked, job={"collective": "all-reduce", "algorithm": "ring", "size": "1GB"})
    assert number(found, "num_flows") == 8 * 1024 * 2 * 1023
    assert number(found, "num_stuck") == 0
    assert number(found, "makespan_s") >= 2 * (1 - DOMAIN / 1024) * GB / (DOMAIN * NIC)


@pytest.mark.parametrize(
    "verb",
    [
        *(f"show fabric {on}" for on in ("fat-tree", "rail-optimised", "tree", "torus", "dragonfly")),
        "show collective all-reduce --size 1GB --on fat-tree",
        "simulate train llama-3.1-405b --tp 8 --pp 16 --global-batch 8192 --on fat-tree",
    ],
)
def test_131072_chips_are_no_more_than_others(verb: str, datahall: Run) -> None:
    assert datahall(*verb.split(), "--chips", "131072").code == 0


@pytest.mark.parametrize("on", ["fat-tree", "torus", "rail-optimised", "dragonfly", "tree"])
def test_a_size_that_is_refused_is_refused_by_every_verb(on: str, datahall: Run) -> None:
    """One verb does not build what another says cannot be built."""
    codes = [
        datahall(*verb.split(), *asked.split(), "--chips", "131072", "--quiet").code
        for verb, asked in (
            ("show fabric", on),
            ("show collective all-gather", f"--size 1GB --on {on}"),
        )
    ]
    assert len(set(codes)) == 1


def test_a_ring_takes_no_less_time_with_more_ranks(shelf: Catalog) -> None:
    times = [
        time_s("all-gather", shelf, chips=chips, domain=1, size="2GB", level="datasheet")
        for chips in (512, 1024, 1536, 2048)
    ]
    assert all(more >= fewer for fewer, more in pairwise(times))


def test_why_an_algorithm_was_chosen_stands_beside_its_time(shelf: Catalog) -> None:
    """NCCL picks by its own estimate, which may not be the shortest time."""
    found = collective("all-gather", shelf, chips=1024, domain=1, size="2GB")
    columns = [column.name for column in table(found, "algorithms").columns]
    assert any("thinks" in name for name in columns)
    assert "estimate" in words_of(found)

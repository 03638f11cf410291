"""What textbooks add, on the machine of round numbers: 10 B/s a link, 0.5 s a hop; a network of 4 B/s, 10 s a hop."""

from __future__ import annotations

import pytest
from tests.fabric.collectives.test_by_hand import MACHINE, changed

from datahall.catalog import Catalog
from datahall.cluster.cluster import cluster_of
from datahall.fabric.collectives.algorithms.bus import Collective
from datahall.fabric.collectives.algorithms.table import num_steps
from datahall.fabric.collectives.choice import choose_collective
from datahall.fabric.collectives.system import System
from datahall.fabric.collectives.textbook import all_reduce_steps, textbook_times
from datahall.fabric.collectives.ways import ways


def times(collective: Collective, size: float, ranks: int, system: System = MACHINE) -> dict[str, float]:
    return {one.name: one.time_s for one in textbook_times(system, collective, size, ranks)}


def test_inside_a_domain_a_step_is_a_hop_of_its_links() -> None:
    """Four ranks: two steps a phase of a tree, two of halving and doubling."""
    found = times("all-reduce", 80.0, 4)
    assert found["plain tree"] == pytest.approx(4 * (0.5 + 80 / 10))
    assert found["double binary tree"] == pytest.approx(4 * 0.5 + 2 * 80 / 10)
    assert found["halving-doubling"] == pytest.approx(4 * 0.5 + 1.5 * 80 / 10)
    assert found["double binary tree"] <= found["pipelined tree"] <= found["plain tree"]
    assert set(found) == {"halving-doubling", "double binary tree", "pipelined tree", "plain tree"}


def test_across_domains_a_step_is_a_hop_of_the_network_at_the_rate_of_a_node() -> None:
    """Two domains of four: half of 4 B/s for each of four chips is 8 B/s a node, less than its links."""
    found = times("all-reduce", 80.0, 8)
    assert found["plain tree"] == pytest.approx(6 * (10 + 80 / 8))
    wide = times("all-reduce", 80.0, 8, changed(nic_bytes_per_s=400.0))
    assert wide["plain tree"] == pytest.approx(6 * (10 + 80 / 10))
    assert times("broadcast", 80.0, 8) == {"tree": pytest.approx(3 * 10 + 80 / 8)}
    assert times("reduce", 80.0, 8) == {"tree": pytest.approx(3 * 10 + 80 / 8)}


def test_two_levels_go_inside_first_and_each_chip_has_its_own_way_out() -> None:
    """Inside 6 hops and 1½ arrays at 10 B/s; across 2 hops and a quarter of the array, once, at 2 B/s."""
    found = times("all-reduce", 80.0, 8)
    assert found["two-level"] == pytest.approx(6 * 0.5 + 1.5 * 80 / 10 + 2 * 10 + 20 / 2)
    assert found["InfiniBand SHARP"] == pytest.approx(6 * 0.5 + 10 + max(1.5 * 80 / 10, 20 / 2))
    assert set(times("all-to-all", 80.0, 8)) == {"hierarchical"}


def test_levels_need_a_domain_of_several_and_several_domains() -> None:
    lone = changed(num_domain=1)
    assert "two-level" not in times("all-reduce", 80.0, 4)
    assert "two-level" not in times("all-reduce", 80.0, 4, lone)
    assert times("all-to-all", 80.0, 4) == {}
    assert times("all-to-all", 80.0, 4, lone) == {}


@pytest.mark.parametrize("ranks", [2, 4, 8, 64, 100])
def test_an_all_reduce_has_two_phases_and_moves_the_bytes_of_its_busiest_link(ranks: int) -> None:
    ring, double, plain = all_reduce_steps(ranks, 60.0)
    for one in (ring, double, plain):
        assert one.both == 2 * one.one_phase
    assert ring.one_phase == ranks - 1
    assert ring.num_bytes == pytest.approx(2 * (ranks - 1) * 60.0 / ranks)
    assert 2 ** (plain.one_phase - 1) < ranks <= 2**plain.one_phase
    assert double.one_phase == plain.one_phase
    assert double.num_bytes == 120.0
    assert plain.num_bytes == plain.both * 60.0


def test_every_way_has_its_time_and_its_bandwidths() -> None:
    chosen = choose_collective(MACHINE, "all-reduce", 80.0, 8)
    found = ways(MACHINE, chosen)
    own, textbooks = found[: len(chosen.candidates)], found[len(chosen.candidates) :]
    assert [(one.algorithm, one.time_s, one.estimate_s) for one in own] == [
        (one.algorithm, one.time_s, one.estimate_s) for one in chosen.candidates
    ]
    assert {one.name: one.time_s for one in textbooks} == times("all-reduce", 80.0, 8)
    for one in found:
        assert one.algbw_bytes_per_s == pytest.approx(80 / one.time_s)
        assert one.busbw_bytes_per_s == pytest.approx(80 / one.time_s * 2 * 7 / 8)
    assert {one.num_steps for one in textbooks} == {one.estimate_s for one in textbooks} == {None}
    for one in own:
        assert one.num_steps == num_steps(MACHINE, "all-reduce", one.algorithm, 8)


def test_a_barrier_has_ways_and_no_bandwidth() -> None:
    found = ways(MACHINE, choose_collective(MACHINE, "barrier", 8.0, 8))
    assert found
    assert {one.algbw_bytes_per_s for one in found} == {one.busbw_bytes_per_s for one in found} == {None}


def test_what_nccl_runs_is_not_there_a_second_time() -> None:
    alone = cluster_of(Catalog(user=False).chip("h100-sxm"), 16, num_domain=1).system
    chosen = choose_collective(alone, "all-gather", 1e6, 16)
    found = [one.algorithm for one in ways(alone, chosen)]
    assert found.count("PAT") == 1
    assert "Bruck" in found

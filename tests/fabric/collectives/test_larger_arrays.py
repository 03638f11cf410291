"""A larger array takes no less time, but for a bounded step where NCCL goes over to another algorithm or protocol."""

from __future__ import annotations

import numpy as np
import pytest

from datahall.catalog import Catalog
from datahall.errors import DatahallError
from datahall.fabric.collectives.algorithms.bus import Floats
from datahall.fabric.collectives.algorithms.sent import TREES
from datahall.fabric.collectives.choice import MOST_MISJUDGED, collective_times, misjudged_ratio
from datahall.fabric.collectives.system import system_of
from datahall.scenario.words import COLLECTIVES

CATALOG = Catalog(user=False)
SIZES = np.geomspace(1e3, 4e9, 160)
NETWORKS = ("infiniband", "roce", "efa", "generic")
RANKS = (2, 8, 12, 16, 64, 512, 4096)


def fall(times: Floats) -> float:
    """The greatest share by which the time of an array is above that of a larger one."""
    return float((1.0 - np.minimum.accumulate(times[::-1])[::-1] / times).max())


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("chip", [chip.name for chip in CATALOG.chips()])
def test_time_falls_by_no_more_than_a_third_as_arrays_grow_and_not_at_all_by_datasheets(
    chip: str, network: str
) -> None:
    for num_ranks in RANKS:
        for collective in COLLECTIVES:
            try:
                system = system_of(chip, fabric=network, catalog=CATALOG).filled(num_ranks)
                times, _ = collective_times(system, collective, SIZES, num_ranks)
            except DatahallError:
                continue
            most = 0.0 if system.level(num_ranks) == "datasheet only" else 1.0 - 1.0 / MOST_MISJUDGED
            assert fall(times) <= most + 1e-9, (num_ranks, collective)


@pytest.mark.parametrize("chip", ["h100-sxm", "b200-sxm", "gh200", "v100-sxm2-32gb", "mi300x"])
@pytest.mark.parametrize("collective", ["all-reduce", "all-gather", "broadcast"])
def test_a_faster_network_slows_nothing_by_more_than_half(chip: str, collective: str) -> None:
    for num_ranks in (16, 64, 512):
        machines = [
            system_of(chip, nic_bytes_per_s=gbit * 1e9 / 8, catalog=CATALOG).filled(num_ranks)
            for gbit in (10, 25, 40, 50, 100, 200, 400, 800)
        ]
        times = np.array([collective_times(one, collective, SIZES, num_ranks)[0] for one in machines])  # type: ignore[arg-type]
        growth = times / np.minimum.accumulate(times, axis=0)
        assert growth.max() <= misjudged_ratio(machines[0], num_ranks) + 1e-9


def test_mistakes_of_nccl_are_believed_as_far_as_they_were_seen() -> None:
    """Inside the domains of the tables as they are, elsewhere up to half, and not at all where nothing was measured."""
    for chip, num_ranks, most in (
        ("b200-sxm", 8, np.inf), ("gb300", 16, MOST_MISJUDGED), ("h100-sxm", 16, MOST_MISJUDGED),
        ("v100-sxm2-32gb", 16, 1.0), ("mi300x", 8, 1.0),
    ):  # fmt: skip
        assert misjudged_ratio(system_of(chip, catalog=CATALOG), num_ranks) == most


def test_nccl_sees_the_ports_of_the_domain_that_has_the_fewest() -> None:
    whole = system_of("h100-sxm", catalog=CATALOG)
    assert whole.filled(16).setting(16).node_network_bytes_per_s == 8 * whole.nic_bytes_per_s
    assert whole.filled(12).setting(12).node_network_bytes_per_s == 4 * whole.nic_bytes_per_s


@pytest.mark.parametrize(("num_part", "crosses"), [(10, 1.0), (13, 0.0), (8, 1.0), (16, 0.0)])
def test_two_domains_of_which_one_lies_across_two_parts_send_to_each_other(
    num_part: int, crosses: float
) -> None:
    """Chips 8 to 15 are in the part where most of them are: beyond 10 chips in the second, beyond 13 in the first."""
    assert TREES.between("all-reduce", 16, 8, num_part) == crosses

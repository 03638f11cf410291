"""A faster port never makes a collective slower, and a fabric and a collective on it say the same of an all-to-all."""

from __future__ import annotations

from typing import Any

import pytest

import datahall as dh
from datahall.answer import Answer
from datahall.catalog import load
from datahall.errors import DatahallError
from datahall.fabric.design.asked import design_of
from datahall.fabric.design.design import Design
from datahall.scenario.sections.fabric import FabricDesign

# every second one needs other switches of the catalogue than the one before: 40, 64 and 144 ports, or split ones
NICS_GBPS = (100, 200, 201, 300, 400, 401, 800)
MACHINES = (("h100-sxm", 64), ("h100-sxm", 256), ("h100-sxm", 2048), ("mi300x", 256), ("gb200", 144))
SWITCHED = (
    "fat-tree", "clos", "leaf-spine", "rail-optimised", "rail-only", "dragonfly", "dragonfly-plus", "hyperx", "hgx",
    "nvl72",
)  # fmt: skip
WITHIN = 0.10


def answered(collective: str, topology: str, chip: str, chips: int, **more: Any) -> Answer | None:
    """Nothing where so many chips make no such fabric."""
    try:
        return dh.show_collective(
            collective=collective, on=topology, chip=chip, chips=chips, size="1GB", **more
        )
    except DatahallError:
        return None


def design(topology: str, chip: str, chips: int, nic_gbps: float) -> Design:
    return design_of(
        FabricDesign(topology=topology, chip=chip, chips=chips, nic_bytes_per_s=nic_gbps * 1e9 / 8), load()
    )


def seconds(answer: Answer) -> float:
    found = answer.results["time_s"]
    assert isinstance(found, float)
    return found


@pytest.mark.parametrize("topology", SWITCHED)
@pytest.mark.parametrize("collective", ["all-to-all", "all-reduce"])
def test_no_collective_takes_longer_with_a_faster_nic(topology: str, collective: str) -> None:
    """Of 256 H100 an all-to-all on a dragonfly took 22 ms at 400 Gb/s and 101 ms at 401 Gb/s."""
    compared = 0
    for chip, chips in MACHINES:
        slower = None
        for nic in NICS_GBPS:
            found = answered(collective, topology, chip, chips, nic=f"{nic}Gb/s")
            if found is not None and slower is not None:
                assert seconds(found) <= seconds(slower) * (1 + 1e-6), (chip, chips, nic)
                compared += 1
            slower = found
    assert compared


def test_a_plain_tree_does_only_where_its_switches_have_other_ports() -> None:
    for chip, chips in MACHINES:
        slower: tuple[int, float] | None = None
        for nic in NICS_GBPS:
            found = answered("all-to-all", "tree", chip, chips, nic=f"{nic}Gb/s")
            if found is None:
                continue
            made = design("tree", chip, chips, nic)
            if slower is not None and slower[0] == made.parts.radix:
                assert seconds(found) <= slower[1] * (1 + 1e-6), (chip, chips, nic)
            if made.fabric.num_tiers > 1:
                assert any("one uplink a switch" in note for note in found.notes)
            slower = made.parts.radix, seconds(found)


def test_a_dragonfly_has_as_many_switches_as_its_chips_need() -> None:
    """At 401 Gb/s 72 switches of 144 ports stood for 256 chips, of which 64 had none."""
    for nic in (200, 400, 401, 800):
        made = design("dragonfly", "h100-sxm", 256, nic)
        used = {int(made.fabric.shape.leaf(host)) for host in range(256)}  # type: ignore[union-attr]
        assert made.counts.num_switches == len(used) == 32, nic


@pytest.mark.parametrize("nic", [200, 401, 800])
@pytest.mark.parametrize("topology", [*SWITCHED, "tree"])
def test_a_fabric_and_a_collective_on_it_agree_on_an_all_to_all(topology: str, nic: int) -> None:
    """At 401 Gb/s a dragonfly of 256 chips had full bisection and 50 GB/s each, and its all-to-all 9.9 GB/s."""
    for chip, chips in MACHINES:
        found = answered("all-to-all", topology, chip, chips, nic=f"{nic}Gb/s")
        if found is None:
            continue
        made = design(topology, chip, chips, nic)
        said = made.all_to_all_bytes_per_s
        # what stays in a scale-up domain needs no port, and of a port an exchange gets a share
        through_ports = chips / (chips - made.parts.num_domain) if chips > made.parts.num_domain else None
        took = found.results["busbw_bytes_per_s"]
        assert isinstance(took, float)
        if made.narrowest is not None:
            assert abs(took / said - 1.0) <= WITHIN, (chip, chips, said, took)
        elif through_ports is not None:
            assert (1 - 2 * WITHIN) * said <= took <= through_ports * said, (chip, chips, said, took)


def test_the_one_cable_between_two_switches_binds_a_fabric_too() -> None:
    """24 chips on a switch: 24 · 24 pieces of 520 pass the cable to each other one, and 500 a chip's port."""
    laid = FabricDesign(topology="dragonfly", chip="h100-sxm", chips=520, radix=144)
    made = design_of(laid, load())
    assert made.narrowest is not None
    assert (made.narrowest.cut.name, made.narrowest.passing.between) == ("leaf", True)
    assert made.all_to_all_bytes_per_s == pytest.approx(made.injection_bytes_per_s * 520 / 576)
    shown = dh.show_fabric("dragonfly", chip="h100-sxm", chips=520, radix=144)
    assert "links from a leaf to the next bind" in shown.binding

"""Causes of one's own: each takes what the catalogue says of its component, and none is left out in silence."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fabric.designs import design

import datahall as dh
from datahall.catalog import Catalog
from datahall.errors import DatahallError
from datahall.reliability.blast.assess import Assessed, assess
from datahall.reliability.blast.part import Part
from datahall.reliability.blast.radius import OF_CIRCUITS, OF_PACKETS
from datahall.scenario.sections.operations.failures import FailureRates

SOURCE = 'source = { title = "our own log", date = "2026-11", kind = "measured" }'
COOLANT = f"""[component.coolant]
{SOURCE}
title = "coolant distribution"
survives = "peer"
per = "node"
repair_share = "100 %"
repair_mean = "6 h"
repair_median = "4 h"
"""
RISER = f"""[component.riser]
{SOURCE}
title = "riser"
survives = "peer"
part_of = "chip"
[component.busbar]
{SOURCE}
title = "busbar"
survives = "remote"
per = "node"
takes = "rack"
[component.midplane]
{SOURCE}
title = "midplane"
survives = "remote"
per = "node"
takes = "domain"
[component.transceiver]
{SOURCE}
title = "transceiver"
survives = "device"
takes = "network"
[component.scheduler]
{SOURCE}
title = "scheduler"
survives = "host"
takes = "nothing"
"""
COUNTED = {*OF_CIRCUITS, *OF_PACKETS} - {"nic"}  # by themselves, and not as causes
MACHINES = (
    ("fat-tree", 1024, "h100-sxm"), ("hgx", 8, "h100-sxm"), ("nvl72", 720, "gb200"), ("torus", 256, "tpu-v5e"),
    ("tpu-pod", 4096, "tpu-v4"), ("mesh", 256, "tpu-v5e"),
)  # fmt: skip


def own(tmp_path: Path, causes: dict[str, float], components: str = COOLANT) -> Catalog:
    rows = "\n".join(
        f'"{name} failed" = {{ component = "{name}", rate = {rate} }}' for name, rate in causes.items()
    )
    text = f'{components}[failures.mine]\n{SOURCE}\ntitle = "mine"\nchip = "h100-sxm"\nnode_chips = 8\n'
    (tmp_path / "mine.toml").write_text(f"{text}[failures.mine.causes]\n{rows}\n", encoding="utf-8")
    return Catalog(extra=[tmp_path], user=False)


def assessed(catalog: Catalog, topology: str, chips: int, chip: str) -> Assessed:
    made = design(topology, chips, catalog=catalog, chip=chip)
    return assess(made, FailureRates(like="mine"), catalog)


def per_day(made: Assessed) -> dict[str, float]:
    return {part.name: part.failures_per_day for part in made.parts}


def blames(part: Part) -> bool:
    """Whether its rate is that of causes."""
    return any(node.name == "share of its causes" for _, node in part.rate.walk())


def test_a_cause_of_ones_own_is_a_row_of_its_own(tmp_path: Path) -> None:
    made = assessed(own(tmp_path, {"coolant": 0.01, "chip": 0.004}), "fat-tree", 1024, "h100-sxm")
    (row,) = (part for part in made.parts if part.name == "coolant distribution")
    assert (row.num, row.num_lost) == (128, 8)
    assert row.lost.value == pytest.approx(0.01 * 128 * 365.25 / 12 * 8 * 6, rel=0.02)
    assert row.failures_per_day + per_day(made)["GPU"] == pytest.approx(86_400 / made.mttf_s)


def test_what_is_part_of_another_is_a_row_with_it(tmp_path: Path) -> None:
    made = assessed(own(tmp_path, {"riser": 0.01, "chip": 0.004}, RISER), "fat-tree", 1024, "h100-sxm")
    assert per_day(made)["GPU"] == pytest.approx(128 * 0.014)
    assert "riser" not in per_day(made)


def test_what_a_rack_or_a_domain_shares_takes_all_of_it_where_there_is_one(tmp_path: Path) -> None:
    catalog = own(tmp_path, {"busbar": 0.01, "midplane": 0.002, "nvlink-switch": 0.001}, RISER)
    rack, server = (assessed(catalog, *machine) for machine in (MACHINES[2], MACHINES[0]))
    lost = {part.name: (part.num, part.num_lost) for part in rack.parts}
    assert lost["busbar"] == lost["midplane"] == (10, 72)
    assert lost["NVLink switch tray"] == (90, 72)
    assert per_day(rack)["NVLink switch tray"] == pytest.approx(180 * 0.001 / 2), (
        "nodes of half as many chips"
    )
    alone = {part.name: (part.num, part.num_lost) for part in server.parts}
    assert alone["busbar"] == alone["midplane"] == (128, 8)
    assert alone["NVLink switch tray"] == (1024, 8), "as many as chips"
    assert [one.num_nodes_lost for one in rack.process.causes] == [18, 1, 1]


def test_what_needs_no_repair_is_out_for_a_reset(tmp_path: Path) -> None:
    made = assessed(own(tmp_path, {"busbar": 0.01}, RISER), "fat-tree", 1024, "h100-sxm")
    (row,) = (part for part in made.parts if part.name == "busbar")
    assert row.out.value == Catalog(user=False).reroute("node-reset").reroute_s


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine[0])
@pytest.mark.parametrize("like", ["mine", "llama-3", "ft-hsdp", "tpu-v4"])
def test_every_cause_is_in_a_row_or_is_said_to_be_in_none(
    tmp_path: Path, machine: tuple[str, int, str], like: str
) -> None:
    """Rows of causes, what takes no part, what is in no row, and cables and switches, which are counted themselves."""
    causes = dict.fromkeys(
        ("riser", "busbar", "midplane", "transceiver", "scheduler", "psu", "nic", "switch"), 1e-3
    )
    catalog = own(tmp_path, causes, RISER)
    topology, chips, chip = machine
    made = assess(design(topology, chips, catalog=catalog, chip=chip), FailureRates(like=like), catalog)
    by_cause = sum(part.failures_per_day for part in made.parts if blames(part)) / made.process.num_nodes
    outside = made.without_part_fraction + made.without_row_fraction
    by_part = sum(one.rate_per_node_day for one in made.process.causes if one.component in COUNTED)
    by_part -= sum(one.rate_per_node_day for one in made.without_row if one.component in COUNTED)
    rate = made.process.rate_per_node_day
    assert by_cause + by_part + outside * rate == pytest.approx(rate)


def test_what_is_in_no_row_is_said(tmp_path: Path) -> None:
    catalog = own(tmp_path, {"transceiver": 0.01, "scheduler": 0.02, "chip": 0.01}, RISER)
    answer = dh.show_blast_radius(
        on="fat-tree", chips=64, chip="h100-sxm", failures_like="mine", catalog=catalog
    )
    said = " ".join(answer.notes)
    assert "50 % of them, by scheduler, take no part" in said
    assert "25 % of them blame parts of a network that are not counted here" in said
    assert "transceiver failed" in said


def test_what_it_takes_is_one_of_the_words(tmp_path: Path) -> None:
    catalog = own(tmp_path, {"busbar": 0.01}, RISER.replace('takes = "rack"', 'takes = "row"'))
    with pytest.raises(DatahallError, match="takes"):
        catalog.component("busbar")


def test_what_it_is_part_of_is_a_component(tmp_path: Path) -> None:
    catalog = own(tmp_path, {"riser": 0.01}, RISER.replace('part_of = "chip"', 'part_of = "chips"'))
    with pytest.raises(DatahallError, match="chips"):
        assessed(catalog, "fat-tree", 1024, "h100-sxm")


def test_a_shock_that_somebody_counted_takes_its_node(tmp_path: Path) -> None:
    made = assessed(own(tmp_path, {"shock": 0.01, "chip": 0.004}), "fat-tree", 1024, "h100-sxm")
    (row,) = (part for part in made.parts if part.name == "what nodes share")
    assert (row.num_lost, row.failures_per_day) == (8, pytest.approx(128 * 0.01))

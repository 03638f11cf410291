"""Whose rates are taken, and what nodes a chip stands in."""

from __future__ import annotations

from pathlib import Path

import pytest

from datahall.catalog import Catalog
from datahall.errors import CatalogError
from datahall.reliability.asked import gpu_fleets, preset_of, process_asked
from datahall.reliability.blast.rates import Rates
from datahall.scenario.sections.operations.failures import FailureRates

CATALOG = Catalog(user=False)
OURS = """
[failures.ours]
source = { title = "our own count", date = "2026-11", kind = "measured" }
title = "ours"
chip = "h200-sxm"
node_chips = 8
rate = 0.01
causes_of = "llama-3"
"""


@pytest.mark.parametrize(
    ("chip", "preset"),
    [
        ("h100-sxm", "llama-3"), ("h200-sxm", "llama-3"), ("a100-sxm-80gb", "rsc-1"), ("gb200", "gb200-field"),
        ("tpu-v4", "tpu-v4"), ("tpu-v5p", "tpu-v4"), ("mi300x", "llama-3"),
    ],
)  # fmt: skip
def test_a_chip_fails_like_itself_like_its_family_or_like_the_largest_count(chip: str, preset: str) -> None:
    assert preset_of(FailureRates(), CATALOG.chip(chip), CATALOG).name == preset
    assert preset_of(FailureRates(like="rsc-2"), CATALOG.chip(chip), CATALOG).name == "rsc-2"


def test_a_count_of_the_very_chip_goes_before_that_of_its_family(tmp_path: Path) -> None:
    (tmp_path / "ours.toml").write_text(OURS, encoding="utf-8")
    catalog = Catalog(extra=[tmp_path], user=False)
    assert preset_of(FailureRates(), catalog.chip("h200-sxm"), catalog).name == "ours"
    assert preset_of(FailureRates(), catalog.chip("h100-sxm"), catalog).name == "llama-3"


@pytest.mark.parametrize(
    ("chip", "asked"), [("h200", "h200-sxm"), ("H100 SXM", "h100-sxm"), ("tpu-v4", "tpu-v5p")]
)
def test_what_one_counted_oneself_goes_first_by_any_name_of_the_chip(
    tmp_path: Path, chip: str, asked: str
) -> None:
    (tmp_path / "ours.toml").write_text(OURS.replace("h200-sxm", chip), encoding="utf-8")
    catalog = Catalog(extra=[tmp_path], user=False)
    assert preset_of(FailureRates(), catalog.chip(asked), catalog).name == "ours"
    assert preset_of(FailureRates(), catalog.chip("a100-sxm-80gb"), catalog).name == "rsc-1"


def test_an_entry_of_ones_own_in_place_of_a_shipped_one_is_ones_own(tmp_path: Path) -> None:
    (tmp_path / "ours.toml").write_text(OURS.replace("failures.ours", "failures.ft-hsdp"), encoding="utf-8")
    catalog = Catalog(extra=[tmp_path], user=False)
    assert catalog.is_own("failures", "ft-hsdp")
    assert not catalog.is_own("failures", "llama-3")
    assert not catalog.is_own("failures", "nobody")


def test_a_fleet_of_ones_own_is_one_that_others_are_held_against(tmp_path: Path) -> None:
    shipped = [one.name for one in gpu_fleets(CATALOG)]
    assert shipped == ["llama-3", "rsc-1", "rsc-2", "ft-hsdp"]
    (tmp_path / "ours.toml").write_text(
        OURS.replace("rate = 0.01", "rate = 0.02\nfleet = true"), encoding="utf-8"
    )
    catalog = Catalog(extra=[tmp_path], user=False)
    assert [one.name for one in gpu_fleets(catalog)] == [*shipped, "ours"]
    found = Rates(
        process=process_asked(FailureRates(like="llama-3"), catalog.chip("h100-sxm"), catalog, 64),
        catalog=catalog,
    ).node
    (published, _) = found.parts
    assert published.band is not None
    assert "5 fleets" in published.band.basis
    assert published.band.high == pytest.approx(0.02)


@pytest.mark.parametrize(("of", "words"), [("rsc-1", "has none of its own"), ("llama-9", "llama-9")])
def test_causes_that_nobody_counted_split_nothing(tmp_path: Path, of: str, words: str) -> None:
    (tmp_path / "ours.toml").write_text(OURS.replace("llama-3", of), encoding="utf-8")
    catalog = Catalog(extra=[tmp_path], user=False)
    with pytest.raises(CatalogError, match=words) as caught:
        process_asked(FailureRates(like="ours"), catalog.chip("h200-sxm"), catalog, 64)
    assert "llama-3" in caught.value.hint


@pytest.mark.parametrize(
    ("server", "chips"), [("dgx-h100", 8), ("gb200-nvl72", 4), ("tpu-v5p-pod", 4), ("meta-24k-roce", 8)]
)
def test_a_node_is_what_one_operating_system_drives(server: str, chips: int) -> None:
    assert CATALOG.server(server).num_host_chips == chips


def test_chips_that_do_not_fill_a_node_take_a_whole_one() -> None:
    found = process_asked(FailureRates(), CATALOG.chip("h100-sxm"), CATALOG, 20)
    assert (found.num_nodes, found.num_node_chips) == (3, 8)
    alone = process_asked(FailureRates(), CATALOG.chip("h100-sxm"), CATALOG, 1)
    assert (alone.num_nodes, alone.num_node_chips) == (1, 1)
    assert alone.rate_per_node_day < found.rate_per_node_day


def test_trays_share_a_rack_and_servers_do_not() -> None:
    racked, alone = (
        process_asked(FailureRates(), CATALOG.chip(name), CATALOG, 720) for name in ("gb200", "h100-sxm")
    )
    assert (racked.num_rack_nodes, alone.num_rack_nodes) == (18, 1)


def test_what_is_asked_for_is_in_the_process() -> None:
    said = FailureRates(
        failure_rate_per_node_day=0.01,
        job_rate_per_day=2.0,
        shock_rate_per_day=0.1,
        shock_nodes=64,
        age_s=5.0,
    )
    found = process_asked(said, CATALOG.chip("h100-sxm"), CATALOG, 256)
    assert found.age_s == 5.0
    assert found.rate_per_day == pytest.approx(32 * 0.01 + 2.0 + 0.1), "32 nodes, all of which share it"
    assert max(one.num_nodes_lost for one in found.causes) == 32

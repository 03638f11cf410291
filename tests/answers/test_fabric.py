"""`show fabric`: one fabric in full, several side by side."""

from __future__ import annotations

import pytest

import datahall as dh
from datahall.catalog import Catalog
from datahall.errors import ScenarioError

CATALOG = Catalog(user=False)


def test_one_fabric_says_what_it_takes_and_what_binds() -> None:
    answer = dh.show_fabric("fat-tree", chips=16_384, chip="h100-sxm", catalog=CATALOG)
    assert "1,280 switches of 64 ports in 3 tiers and 49,152 cables" in answer.headline
    assert answer.binding.startswith("Full bisection, 409.6 TB/s")
    assert [table.title for table in answer.tables] == [
        "made of",
        "how wide and how far",
        "what one failure takes",
    ]
    assert answer.figure.unit == "usd"
    assert any(note.startswith("estimates:") for note in answer.notes)
    assert all(len(table.columns) <= 7 for table in answer.tables)


def test_the_explorer_compares_rack_fat_tree_torus_and_tree() -> None:
    answer = dh.show_fabric(("nvl72", "fat-tree", "torus", "tree"), chips="9216", catalog=CATALOG)
    rows = {row["fabric"]: row for row in answer.tables[0].records()}
    assert list(rows) == ["nvl72", "fat-tree", "torus", "tree"]
    assert rows["nvl72"]["scale_up_one_way"] == "72 × 900 GB/s"
    assert rows["fat-tree"]["scale_up_one_way"] == "8 × 450 GB/s"
    assert rows["torus"]["diameter"] == 32
    assert (
        rows["tree"]["all_to_all_per_chip_bytes_per_s"]
        < 1e-2 * rows["torus"]["all_to_all_per_chip_bytes_per_s"]
    )
    assert "per dollar" in answer.headline
    assert answer.binding.startswith("tree is narrowest")
    assert answer.results["torus_num_switches"] == 108


def test_a_failure_of_each_kind_has_a_row() -> None:
    answer = dh.show_fabric("rail-optimised", chips=1024, catalog=CATALOG)
    rows = {row["one_fails"]: row for row in answer.tables[2].records()}
    assert rows["NIC"]["slowest_keeps_fraction"] == pytest.approx(7 / 8)
    assert rows["leaf switch"]["cut_off"] == 0
    assert rows["leaf switch"]["reroute_s"] == 15
    pod = dh.show_fabric("tpu-v4-pod", catalog=CATALOG)
    assert "35.9 %" in pod.tables[2].note
    assert "99.6 %" in pod.tables[2].note  # 99.65 to three digits


def test_a_published_fabric_brings_its_own_chips() -> None:
    answer = dh.show_fabric("meta-24k-roce", catalog=CATALOG)
    assert answer.results["num_chips"] == 24_576
    assert any("is an estimate" in note for note in answer.notes)


def test_sides_say_how_many_chips() -> None:
    assert dh.show_fabric("torus", sides="4x4x4", catalog=CATALOG).results["num_chips"] == 64


def test_no_number_of_chips_is_asked_for() -> None:
    with pytest.raises(ScenarioError, match="how many chips"):
        dh.show_fabric("fat-tree", catalog=CATALOG)
    with pytest.raises(ScenarioError, match="at most"):
        dh.show_fabric("fat-tree", chips=10**7, catalog=CATALOG)

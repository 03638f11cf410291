"""`show collective`: the sentence, the table, and what is refused."""

from __future__ import annotations

import pytest

from datahall.answers.fabric.collective import show_collective
from datahall.catalog import Catalog
from datahall.errors import DatahallError, ScenarioError


def test_a_gigabyte_on_1024_chips(shelf: Catalog) -> None:
    found = show_collective(
        "all-reduce", on="fat-tree", chips=1024, chip="h100-sxm", size="1GB", catalog=shelf
    )
    assert "1,024 × NVIDIA H100 SXM on fat-tree" in found.headline
    assert found.binding.startswith("Bandwidth")
    assert found.results["algorithm"] in {"NVLS tree", "tree", "ring"}
    busbw = found.results["busbw_bytes_per_s"]
    assert isinstance(busbw, float)
    assert 250e9 < busbw < 400e9
    algorithms = found.tables[0]
    assert algorithms.marked is not None
    assert algorithms.columns[0].name == "algorithm"
    assert found.figure is not None
    assert found.figure.band is not None
    assert any("estimate is the smallest" in note for note in found.notes)


def test_small_arrays_are_bound_by_steps(shelf: Catalog) -> None:
    found = show_collective("all-reduce", chips="1024", size="8KB", catalog=shelf)
    assert found.binding.startswith("Latency binds")


def test_every_algorithm_is_there_when_asked(shelf: Catalog) -> None:
    few = show_collective("all-reduce", chips=64, size="64MB", catalog=shelf)
    many = show_collective("all-reduce", chips=64, size="64MB", every=True, catalog=shelf)
    names = [str(row[0]) for row in many.tables[0].rows]
    assert len(many.tables[0].rows) > len(few.tables[0].rows)
    for name in ("ring LL", "tree Simple", "NVLS tree", "halving-doubling", "two-level", "InfiniBand SHARP"):
        assert any(row.startswith(name) for row in names)


def test_ten_thousand_chips_take_28_steps_or_19998(shelf: Catalog) -> None:
    found = show_collective("all-reduce", chips=10_000, size="1GB", catalog=shelf)
    steps = next(table for table in found.tables if table.title.startswith("steps"))
    by_name = {str(row[0]): row for row in steps.rows}
    assert by_name["ring"][1:3] == (9999.0, 19998.0)
    assert by_name["double binary tree"][1:3] == (14.0, 28.0)


def test_moe_dispatch_counts_bytes_then_time(shelf: Catalog) -> None:
    found = show_collective("all-to-all", experts=64, tokens="2^20", topk=2, hidden=4096, catalog=shelf)
    assert found.results["sent_bytes"] == 264_241_152
    assert "264,241,152 bytes" in found.headline
    time = found.results["time_s"]
    assert isinstance(time, float)
    assert 264_241_152 / 50e9 * 0.85 < time < 264_241_152 / 50e9 * 1.5


def test_a_plain_tree_strangles_an_all_to_all_and_not_a_ring(shelf: Catalog) -> None:
    def time(kind: str, on: str) -> float:
        found = show_collective(kind, on=on, chips=1024, size="100MB", catalog=shelf).results["time_s"]
        assert isinstance(found, float)
        return found

    assert time("all-to-all", "tree") > 20 * time("all-to-all", "fat-tree")
    assert time("all-gather", "tree") == pytest.approx(time("all-gather", "fat-tree"))


def test_a_torus_is_answered_from_its_links(shelf: Catalog) -> None:
    found = show_collective("all-gather", on="torus", chips=64, chip="tpu-v5p", size="1GB", catalog=shelf)
    assert found.results["time_s"] == pytest.approx(1e9 / (6 * 90e9), rel=0.01)


def test_one_rack_needs_no_network(shelf: Catalog) -> None:
    found = show_collective("all-reduce", on="nvl72", chips=72, size="8GiB", catalog=shelf)
    assert found.results["algorithm"] == "NVLS"
    assert found.results["busbw_bytes_per_s"] == pytest.approx(835e9, rel=0.15)


@pytest.mark.parametrize(
    "kind", ["reduce-scatter", "broadcast", "reduce", "send-recv", "barrier", "all_gather"]
)
def test_every_collective_has_an_answer(kind: str, shelf: Catalog) -> None:
    assert show_collective(kind, chips=64, size="1MB", catalog=shelf).results["time_s"]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"chips": 0, "size": "1GB"}, "at least 2"),
        ({"chips": 16, "size": "-1GB"}, "above 0"),
        ({"chips": 16, "size": "much"}, "--size"),
        ({"chips": 16}, "how large"),
        ({"size": "1GB"}, "how many chips"),
        ({"chips": 12, "size": "1GB"}, "whole number of scale-up domains"),
        ({"chips": 16, "size": "1GB", "algorithm": "magic"}, "not an algorithm"),
        ({"chips": 16, "size": "1GB", "version": "new"}, "not a version"),
        ({"chips": 16, "size": "1GB", "on": "knot"}, "not a topology"),
        ({"experts": 64, "tokens": 8, "topk": 2, "hidden": 8}, "sizes an all-to-all"),
    ],
)
def test_bad_input_names_what_is_allowed(asked: dict[str, str | int], words: str, shelf: Catalog) -> None:
    with pytest.raises(DatahallError, match=words):
        show_collective("all-reduce", **asked, catalog=shelf)  # type: ignore[arg-type]


def test_moe_needs_all_of_its_numbers(shelf: Catalog) -> None:
    with pytest.raises(ScenarioError, match="--topk, --hidden"):
        show_collective("all-to-all", experts=64, tokens=1024, catalog=shelf)
    with pytest.raises(ScenarioError, match="64 experts on 8 chips"):
        show_collective("all-to-all", experts=64, tokens=1024, topk=2, hidden=8, chips=8, catalog=shelf)

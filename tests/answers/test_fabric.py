"""`show fabric`: one fabric in full, several side by side."""

from __future__ import annotations

import pytest
from tests.answers.borders import asked_everywhere, runs

import datahall as dh
from datahall.answer import Quantity, TopologyChart
from datahall.answers.verbs import BY_NAME
from datahall.breakdown import false_nodes
from datahall.catalog import Catalog
from datahall.errors import DatahallError, ScenarioError
from datahall.fabric.design.topologies import TABLE
from datahall.scenario.words import TOPOLOGIES

CATALOG = Catalog(user=False)


def test_one_fabric_says_what_it_takes_and_what_binds() -> None:
    answer = dh.show_fabric("fat-tree", chips=16_384, chip="h100-sxm", catalog=CATALOG)
    assert "1,280 switches of 64 ports in 3 tiers and 49,152 cables" in answer.headline
    assert answer.headline.startswith("A 3-tier fat tree joins")
    assert answer.binding.startswith("Full bisection, 409.6 TB/s")
    assert [table.title for table in answer.tables] == [
        "made of",
        "how wide and how far",
        "what one failure takes",
    ]
    assert any(note.startswith("estimates:") for note in answer.notes)
    assert all(len(table.columns) <= 7 for table in answer.tables)


@pytest.mark.parametrize(
    "name",
    ["fat-tree", "rail-only", "rail-optimised", "hyperx", "full-mesh", "dragonfly", "dgx-superpod-h100"],
)
def test_a_fabric_is_drawn_with_all_its_chips_and_switches(name: str) -> None:
    answer = dh.show_fabric(
        name, chips=8 if name == "full-mesh" else 512 if name in TOPOLOGIES else None, catalog=CATALOG
    )
    (chart,) = answer.charts
    assert isinstance(chart, TopologyChart)
    drawn = {boxes.name: sum(boxes.sizes) for boxes in chart.rows}
    assert drawn.pop("chip") == answer.results["num_chips"]
    drawn.pop("scale-up domain", None)
    assert sum(drawn.values()) == answer.results["num_switches"]
    assert all(boxes.label.startswith(f"{sum(boxes.sizes):,} {boxes.name}") for boxes in chart.rows)


def test_fabrics_side_by_side_are_each_drawn() -> None:
    answer = dh.show_fabric(["fat-tree", "torus"], chips=512, catalog=CATALOG)
    assert [chart.title.partition(":")[0] for chart in answer.charts] == ["fat-tree", "torus"]


@pytest.mark.parametrize("name", ["fat-tree", "tree", "rail-only", "hyperx", "torus", "dragonfly-plus"])
def test_the_price_is_the_sum_of_its_parts(name: str) -> None:
    answer = dh.show_fabric(name, chips=512, catalog=CATALOG)
    assert answer.figure is not None
    assert answer.figure.unit == "usd"
    assert not false_nodes(answer.figure)
    price = answer.results["price_usd"]
    assert isinstance(price, Quantity)
    assert price.value == answer.figure.value
    assert answer.figure.band is not None
    assert (price.low, price.high) == (answer.figure.band.low, answer.figure.band.high)


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


def test_several_take_of_an_option_what_each_has_use_for() -> None:
    answer = dh.show_fabric(("fat-tree", "torus"), chips=4096, oversubscription="2:1", catalog=CATALOG)
    alone = dh.show_fabric("fat-tree", chips=4096, oversubscription="2:1", catalog=CATALOG)
    key = "all_to_all_bytes_per_s"
    assert answer.results[f"fat_tree_{key}"] == alone.results[key]
    for line in answer.next_commands:
        assert runs(line), line


def test_an_oversubscribed_fabric_has_no_full_bisection() -> None:
    for ratio in ("2:1", "1:1,2:1"):
        answer = dh.show_fabric("fat-tree", chips=16_384, oversubscription=ratio, catalog=CATALOG)
        assert "Full bisection" not in answer.binding
        each = answer.results["all_to_all_bytes_per_s"]
        assert isinstance(each, float)
        assert 25e9 < each < 28e9  # a chip's half of the way out, and what stays inside comes on top
    with pytest.raises(ScenarioError, match="speaks of 3 tiers"):
        dh.show_fabric("fat-tree", chips=1024, oversubscription="1:1,2:1", catalog=CATALOG)


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
    assert "pod" in answer.binding  # 7:1 above it
    assert any("is an estimate" in note for note in answer.notes)


def test_sides_say_how_many_chips() -> None:
    assert dh.show_fabric("torus", sides="4x4x4", catalog=CATALOG).results["num_chips"] == 64


@pytest.mark.parametrize(
    ("asked", "field", "words"),
    [
        ({"topologies": "fat-tree"}, "chips", "how many chips"),
        ({"topologies": "fat-tree", "chips": 10**7}, "chips", "at most"),
        ({"topologies": "fat-tre", "chips": 64}, "topologies", "not a topology"),
        (
            {"topologies": "torus", "chips": 64, "oversubscription": "2:1"},
            "oversubscription",
            "no oversubscription",
        ),
        ({"topologies": "meta-24k-roce", "chips": 64}, "chips", "has 24,576 chips"),
        ({"topologies": "meta-24k-roce", "radix": 64}, "radix", "was built"),
        ({"topologies": "clos", "chips": 64, "switch": "qm9800"}, "", "qm9800"),
    ],
)
def test_bad_input_names_the_field(asked: dict[str, object], field: str, words: str) -> None:
    with pytest.raises(DatahallError, match=words) as caught:
        dh.show_fabric(**asked, catalog=CATALOG)
    assert caught.value.field == field or not field


def test_the_help_names_every_topology_and_every_fabric_that_was_built() -> None:
    """The names are a vocabulary of the scenario, the wiring is a table of the room; neither may lack one."""
    assert tuple(row.name for row in TABLE if row.parts) == TOPOLOGIES
    said = BY_NAME["show fabric"].details.removeprefix("TOPOLOGY is ").rstrip(".")
    named, built = said.split(", or a fabric that was built: ")
    assert set(named.split(", ")) == {row.name for row in TABLE if row.parts}
    assert set(built.split(", ")) == {fabric.name for fabric in CATALOG.known_fabrics()}


CASES = (
    {"topologies": "fat-tree", "chips": "1024"},
    {"topologies": "rail-optimised", "chips": "512", "chip": "h200-sxm", "oversubscription": "2:1"},
    {"topologies": "torus", "sides": "4x4x8"},
    {"topologies": "nvl72,tree", "chips": "576"},
    {"topologies": "gb200-nvl72-superpod"},
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["topologies"])
def test_every_border_gives_the_same_answer_and_its_next_commands_run(case: dict[str, str]) -> None:
    answer = asked_everywhere("show fabric", case, CATALOG)
    assert answer.next_commands
    for line in answer.next_commands:
        assert runs(line), line


@pytest.mark.parametrize("topology", ["fat-tree", "clos", "rail-optimised", "dragonfly", "hyperx", "tree"])
@pytest.mark.parametrize("more", [{}, {"radix": 64}, {"radix": 128}])
def test_a_switch_with_slower_ports_than_the_chips_is_refused_whatever_its_radix(
    topology: str, more: dict[str, int]
) -> None:
    with pytest.raises(ScenarioError, match="has no ports of 400 Gb/s") as caught:
        dh.show_fabric(topology, chips=1024, chip="b200-sxm", switch="quantum-qm8700", **more)
    assert caught.value.field == "switch"


@pytest.mark.parametrize("topology", ["mesh", "torus", "full-mesh"])
def test_one_chip_alone_has_no_port_that_binds(topology: str) -> None:
    answer = dh.show_fabric(topology, chips=1)
    assert answer.binding == "One chip has nobody to send to."


@pytest.mark.parametrize(("topology", "chips"), [("dragonfly", 8), ("rail-only", 64), ("dragonfly", 64)])
def test_one_group_and_one_tier_are_no_groups_and_tiers(topology: str, chips: int) -> None:
    headline = dh.show_fabric(topology, chips=chips).headline
    assert "1 groups" not in headline
    assert "1 tiers" not in headline


def test_chips_of_fabrics_that_were_built_are_refused_with_a_hint_that_ends(shelf: Catalog) -> None:
    with pytest.raises(ScenarioError) as caught:
        dh.show_fabric(["meta-24k-roce", "xai-colossus"], chips=5, catalog=shelf)
    assert caught.value.hint == "leave chips out"

"""Transports side by side: the words and tables of the answer."""

import pytest
from tests.answers.borders import runs
from tests.answers.claims import unfounded

import datahall as dh
from datahall.catalog import Catalog
from datahall.errors import ScenarioError
from datahall.fabric.routing.policies import RULES

FOUR = ["infiniband", "roce", "spectrum-x", "tcp"]


def test_the_best_for_a_collective_leads_and_is_marked(shelf: Catalog) -> None:
    answer = dh.show_transport(FOUR, chips=1024, catalog=shelf)
    assert answer.headline.startswith(
        "When all 1,024 chips of a 2-tier fat tree send at once, infiniband leaves"
    )
    assert answer.tables[0].marked == 0
    assert answer.figure is not None
    assert answer.figure.value == answer.results["infiniband_slowest_bytes_per_s"]


def test_95_percent_is_headers_and_a_rate_that_is_found_without_collisions(shelf: Catalog) -> None:
    results = dh.show_transport(["spectrum-x", "roce"], chips=1024, catalog=shelf).results
    assert 0.94 < results["spectrum_x_all_send_slowest_fraction"] < 0.96
    assert results["roce_alone_fraction"] == results["spectrum_x_alone_fraction"]
    assert results["roce_all_send_mean_fraction"] < 0.6


def test_queue_pairs_help_what_is_hashed_alone(shelf: Catalog) -> None:
    one, many = (
        dh.show_transport(["roce", "infiniband"], chips=512, paths=num, catalog=shelf) for num in (1, 32)
    )
    name = "all_send_slowest_fraction"
    assert many.results[f"roce_{name}"] > 2 * one.results[f"roce_{name}"]
    assert many.results[f"infiniband_{name}"] == one.results[f"infiniband_{name}"]


def test_queue_pairs_of_packets_that_take_every_path_do_nothing(shelf: Catalog) -> None:
    for names in (["spectrum-x"], ["infiniband", "spectrum-x"]):
        with pytest.raises(
            ScenarioError, match="paths does nothing here: each packet has a path of its own"
        ) as caught:
            dh.show_transport(names, chips=64, paths=8, catalog=shelf)
        assert "add one of roce" in str(caught.value)
    assert dh.show_transport(["spectrum-x", "roce"], chips=64, paths=8, catalog=shelf).results


@pytest.mark.parametrize(
    "said",
    [
        {"transports": FOUR, "chips": 64},
        {"transports": ["roce"], "chips": 144, "on": "nvl72", "paths": 4},
        {"transports": ["tcp"], "on": "fat-tree", "chips": 64, "nic": "25GB/s", "oversubscription": "2:1"},
        {"transports": ["tcp"], "chips": 2048},
    ],
    ids=["all", "a topology and queue pairs", "another port", "more chips"],
)
def test_what_comes_next_can_be_typed(said: dict[str, object], shelf: Catalog) -> None:
    for command in dh.show_transport(**said, catalog=shelf).next_commands:
        assert runs(command), command


def test_more_chips_than_are_followed_are_refused_before_anything_is_laid(shelf: Catalog) -> None:
    with pytest.raises(
        ScenarioError, match="1,000,000 chips are more than can be followed one by one"
    ) as caught:
        dh.show_transport(["roce"], chips=1_000_000, catalog=shelf)
    assert "at most chips=524288" in str(caught.value)


def test_a_way_to_route_more_is_a_row_more(shelf: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    row = RULES["ecmp"]._replace(title="each flow as its name says")
    monkeypatch.setitem(RULES, "by-name", row)
    table = dh.show_transport(["roce"], chips=64, catalog=shelf).tables[2]
    assert [cells[0] for cells in table.rows][-1] == "each flow as its name says"


def test_too_many_senders_to_one_chip_time_out(shelf: Catalog) -> None:
    few, many = (
        dh.show_transport(["tcp"], chips=2048, senders=senders, catalog=shelf).notes for senders in (32, 2000)
    )
    assert any("time out when there are more than" in note for note in few)
    assert any("wait for a timeout of 200 ms" in note for note in many)


def test_behind_one_switch_nothing_is_hashed_onto_the_same_cable(shelf: Catalog) -> None:
    assert "hashed" not in dh.show_transport(["roce"], chips=64, catalog=shelf).binding
    assert "hashed" in dh.show_transport(["roce"], chips=1024, catalog=shelf).binding


def test_a_flow_of_tcp_has_no_more_than_the_core_that_receives_it(shelf: Catalog) -> None:
    """42 Gb/s a core are 10.5 % of a port of 400 Gb/s, alone and when all send; ten flows fill it."""
    one = dh.show_transport(["tcp", "roce"], chips=64, size="1TB", catalog=shelf)
    for name in ("alone", "all_send_mean", "all_send_slowest"):
        assert one.results[f"tcp_{name}_fraction"] == pytest.approx(42 / 400)
    assert one.results["tcp_message_s"] == pytest.approx(
        1e12 / (one.results["tcp_slowest_bytes_per_s"]), rel=1e-4
    )  # type: ignore[operator]
    assert one.headline.endswith("roce leaves the slowest 95.7 % of its port of 50 GB/s (tcp 10.5 %).")
    assert "Cores bind tcp: one flow is received by one, which takes 5.25 GB/s" in one.binding
    assert any("--paths 10" in command for command in one.next_commands)
    assert unfounded(one) == []
    alone = dh.show_transport(["tcp"], chips=64, catalog=shelf)
    assert "headers" not in alone.binding
    assert unfounded(alone) == []
    ten = dh.show_transport(["tcp"], chips=64, paths=10, catalog=shelf)
    assert ten.results["tcp_alone_fraction"] == pytest.approx(8948 / 9038)
    assert "Cores bind" not in ten.binding
    assert dh.show_transport(["tcp"], chips=64, paths=4, catalog=shelf).results[
        "tcp_alone_fraction"
    ] == pytest.approx(4 * 42 / 400)


def test_hashing_does_not_bind_what_cores_bind_more(shelf: Catalog) -> None:
    binding = dh.show_transport(["tcp", "roce"], chips=1024, catalog=shelf).binding
    assert "hashed onto the same cable bind roce:" in binding
    assert "Cores bind tcp" in binding


def test_a_fabric_that_was_built_has_the_chips_that_it_has(shelf: Catalog) -> None:
    for ask in (
        lambda chips: dh.show_transport(["roce"], on="meta-24k-roce", chips=chips, catalog=shelf),
        lambda chips: dh.show_blast_radius(on="meta-24k-roce", chips=chips, catalog=shelf),
    ):
        with pytest.raises(ScenarioError, match="meta-24k-roce has 24,576 chips, not 100") as caught:
            ask(100)
        assert "leave chips out" in str(caught.value)
    assert dh.show_blast_radius(on="meta-24k-roce", chips=24576, catalog=shelf).verdict == "yes"


def test_what_forwarding_takes_is_not_called_hashing(shelf: Catalog) -> None:
    """On rails the slowest has a fifth even where each packet takes another path: chips of a host share a port."""
    rails = dh.show_transport(["infiniband", "roce"], on="rail-optimised", chips=1024, catalog=shelf)
    sprayed = next(
        one for one in rails.tables[2].records() if one["routing"] == "another path for each packet"
    )
    assert sprayed["slowest_fraction"] == pytest.approx(1 / 4, rel=1e-6), (
        "four chips of one host over one NIC"
    )
    assert "hashed" not in rails.binding
    assert "leaves by the port of the chip on that rail" in rails.binding
    tree = dh.show_transport(["infiniband", "roce"], on="fat-tree", chips=1024, catalog=shelf).binding
    assert "hashed onto the same cable bind roce:" in tree

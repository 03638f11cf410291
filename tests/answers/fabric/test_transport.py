"""Transports side by side: the words and tables of the answer."""

import datahall as dh
from datahall.catalog import Catalog

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
    answer = dh.show_transport(["spectrum-x"], chips=64, paths=8, catalog=shelf)
    assert any("paths does nothing here" in note for note in answer.notes)


def test_too_many_senders_to_one_chip_time_out(shelf: Catalog) -> None:
    few, many = (
        dh.show_transport(["tcp"], chips=2048, senders=senders, catalog=shelf).notes for senders in (32, 2000)
    )
    assert any("time out when there are more than" in note for note in few)
    assert any("wait for a timeout of 200 ms" in note for note in many)


def test_behind_one_switch_nothing_is_hashed_onto_the_same_cable(shelf: Catalog) -> None:
    assert "hashed" not in dh.show_transport(["roce"], chips=64, catalog=shelf).binding
    assert "hashed" in dh.show_transport(["roce"], chips=1024, catalog=shelf).binding

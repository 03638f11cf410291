"""What `show blast-radius` says, and what it refuses."""

from __future__ import annotations

import pytest
from tests.answers.claims import garbled, unfounded
from tests.results import number

import datahall as dh
from datahall.answer import Answer
from datahall.errors import DatahallError, InfeasibleError


@pytest.fixture(scope="module")
def racks() -> Answer:
    return dh.show_blast_radius(on="nvl72", chips=10_000)


@pytest.mark.parametrize(
    "said",
    [
        {"on": "nvl72", "chips": 10_000},
        {"on": "rail-optimised", "chips": 16_384, "failures_like": "rsc-1"},
        {"on": "tpu-v4-pod"},
        {"on": "hgx", "chips": 8},
        {"on": "torus", "chips": 64, "failure_rate": 1e-3, "spares_enough": "99.9 %"},
        {"on": "fat-tree", "chips": 128, "chip": "trainium2"},
        {"on": "full-mesh", "chips": 8},
        {"on": "hgx", "chips": 64, "failures_like": "tpu-v4"},
        {"on": "mesh", "chips": 9216},
        {"on": "rail-only", "chips": 64, "failure_rate": 1e-6},
        {"on": "hgx", "chips": 1024, "shock_rate": 0.1, "shock_nodes": 8},
    ],
)
def test_what_it_says_follows_from_what_is_under_it(said: dict[str, object]) -> None:
    answer = dh.show_blast_radius(**said)
    assert unfounded(answer) == []
    assert not garbled(f"{answer.headline} {answer.binding} {' '.join(answer.notes)}")
    assert all(len(table.columns) <= 7 for table in answer.tables)
    assert answer.verdict == "yes"


def test_the_headline_names_the_part_that_costs_most(racks: Answer) -> None:
    table = racks.tables[0]
    assert table.marked is not None
    marked = table.rows[table.marked]
    assert f"the {marked[0]} the most of them" in racks.headline
    hours = [record["chip_hours_a_month"].value for record in table.records()]  # type: ignore[union-attr]
    assert hours[table.marked] == max(hours)
    assert racks.results["costliest"] == marked[0]
    assert "10,008 × NVIDIA GB200" in racks.headline, "whole racks of 72"


def test_at_a_hundred_thousand_it_says_minutes_and_not_hours() -> None:
    answer = dh.show_blast_radius(on="xai-colossus")
    assert number(answer, "mttf_s") < 3600
    assert "minutes between two failures, not hours" in answer.binding
    assert "30.4 min" in answer.headline
    smaller = dh.show_blast_radius(on="rail-optimised", chips=16_384)
    assert number(smaller, "mttf_s") > 3600
    assert "minutes" not in smaller.binding


def test_rates_that_are_asked_for_are_used() -> None:
    usual, other = (
        dh.show_blast_radius(on="hgx", chips=1024, failures_like=name) for name in ("llama-3", "rsc-1")
    )
    assert number(usual, "mttf_s") / number(other, "mttf_s") == pytest.approx(6.5e-3 / 3.7887e-3, rel=1e-4)
    assert usual.inputs["like"] == "llama-3"
    own = dh.show_blast_radius(on="hgx", chips=1024, failure_rate=3.7887e-3)
    assert number(own, "mttf_s") == pytest.approx(number(usual, "mttf_s"), rel=1e-4)
    stated = own.figure
    assert stated is not None
    assert any(one.origin == "input" and "failures of a node" in one.name for _, one in stated.walk())


def test_a_stated_rate_is_of_nodes_and_says_so() -> None:
    answer = dh.show_blast_radius(on="rail-only", chips=64, failure_rate=1e-6)
    assert "the cable of a NIC the most of them" in answer.headline
    assert "slows 8 chips" in answer.headline, "it takes none"
    said = "cables and switches fail as often as was counted"
    assert said in " ".join(answer.notes)
    assert said not in " ".join(dh.show_blast_radius(on="rail-only", chips=64).notes)


def test_a_mesh_that_any_failure_stops_is_answered_with_the_reason() -> None:
    answer = dh.show_blast_radius(on="mesh", chips=9216)
    assert 0.9 < number(answer, "lost_fraction") < 1.0
    assert "stops all of them until the repair" in " ".join(answer.notes)
    assert "count once" in answer.tables[0].note
    for other in ({"on": "tpu-v4-pod"}, {"on": "hgx", "chips": 1024}, {"on": "mesh", "chips": 4}):
        assert "stops all" not in " ".join(dh.show_blast_radius(**other).notes)


def test_more_of_the_time_takes_more_spares() -> None:
    few, many = (
        dh.show_blast_radius(on="hgx", chips=16_384, spares_enough=share) for share in ("90 %", "99.9 %")
    )
    assert number(few, "num_spares") < number(many, "num_spares")


def test_next_commands_run_and_agree(racks: Answer) -> None:
    explain, other, error = racks.next_commands
    assert explain == "datahall explain show blast-radius --on nvl72 --chips 10000"
    assert "--failures-like rsc-1" in other
    assert error == "datahall validate reliability"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"on": "nvl72"}, "how many chips"),
        ({"on": "nvl73", "chips": 72}, "nvl73"),
        ({"on": "nvl72", "chips": 72, "failures_like": "llama-4"}, "llama-3"),
        ({"on": "nvl72", "chips": 72, "failure_rate": -1}, "at least 0.000000001"),
        ({"on": "nvl72", "chips": 72, "failure_rate": 0}, "at least 0.000000001"),
        ({"on": "nvl72", "chips": 72, "spares_enough": 1}, "out of bounds"),
        ({"on": "tpu-v4-pod", "chips": 8192}, "4,096"),
        ({"on": "nvl72", "chips": 72, "sides": "4x4x4"}, "sides"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_a_way_out(said: dict[str, object], words: str) -> None:
    with pytest.raises(DatahallError, match=words) as caught:
        dh.show_blast_radius(**said)
    assert caught.value.hint


def test_a_cluster_that_breaks_faster_than_it_is_repaired_is_a_no() -> None:
    with pytest.raises(
        InfeasibleError, match="a node fails 10 times a day and is not repaired as fast"
    ) as caught:
        dh.show_blast_radius(on="hgx", chips=64, failure_rate=10)
    assert caught.value.exit_code == 1

"""A job goes on without a replica only where another holds a copy of what the lost one held."""

from __future__ import annotations

from typing import Any

import pytest
from tests.results import number

import datahall as dh
from datahall.answer import Answer
from datahall.reliability.elastic import num_away, num_sharing
from datahall.training.layout.layout import Layout

LLAMA: dict[str, Any] = {
    "model": "llama-3.1-70b", "chips": 4096, "tp": 8, "days": 54, "planned_every": "0 s", "runs": 60,
}  # fmt: skip


def away(answer: Answer) -> list[dict[str, Any]]:
    """The table of what a job does meanwhile; nothing where it does not go on."""
    tables = [one for one in answer.tables if one.title.endswith(" away")]
    return [dict(row) for one in tables for row in one.records()]


@pytest.mark.parametrize(
    ("layout", "sharing"),
    [
        (Layout(tp=8, dp=512, zero=0), 1),  # each has all
        (Layout(tp=8, dp=512, zero=1), 512),  # each a 512th of the optimizer, which nobody else has
        (Layout(tp=8, dp=512, zero=2), 512),
        (Layout(tp=8, dp=512, zero=3), 512),
        (Layout(tp=8, dp=512, zero=3, shard=64), 64),
        (Layout(tp=8, dp=512, zero=1, shard=8), 8),
        (Layout(tp=8, dp=512, zero=1, shard=512), 512),
        (Layout(tp=8, dp=512, zero=1, shard=1), 1),
        (Layout(tp=2, ep=16, dp=64, zero=0), 8),  # all experts lie on 16 chips: 8 replicas of 2
        (Layout(tp=2, ep=2, dp=64, zero=0), 1),
        (Layout(tp=2, cp=4, ep=16, dp=64, zero=0), 2),
        (Layout(tp=2, ep=16, dp=64, zero=3, shard=4), 8),
        (Layout(dp=1), 1),
    ],
)
def test_replicas_that_hold_one_state_among_them(layout: Layout, sharing: int) -> None:
    assert num_sharing(layout) == sharing


@pytest.mark.parametrize(
    ("layout", "node", "out"),
    [
        (Layout(tp=8, dp=512, zero=0), 8, 1),
        (Layout(tp=16, dp=512, zero=0), 8, 1),
        (Layout(tp=2, dp=512, zero=0), 8, 4),  # four replicas stand on a node
        (Layout(dp=512, zero=0), 8, 8),
        (Layout(tp=2, cp=2, dp=512, zero=0), 8, 2),
        (Layout(tp=2, dp=512, zero=3, shard=64), 8, 64),
        (
            Layout(dp=12, zero=1, shard=6),
            4,
            12,
        ),  # groups of 6 over nodes of 4: the second node has some of both
        (Layout(dp=4, zero=0), 8, 4),
    ],
)
def test_replicas_that_a_node_takes_out(layout: Layout, node: int, out: int) -> None:
    assert num_away(layout, node) == out


@pytest.mark.parametrize("zero", [1, 2, 3])
def test_without_a_copy_the_job_starts_again_from_its_checkpoint(zero: int) -> None:
    asked = dh.simulate_run(**LLAMA, zero=zero, elastic="linear")
    plain = dh.simulate_run(**LLAMA, zero=zero)
    assert number(asked, "ettr_fraction") == number(plain, "ettr_fraction")
    assert number(asked, "closed_form_fraction") == number(plain, "closed_form_fraction")
    (note,) = [one for one in asked.notes if "does nothing here" in one]
    assert "elastic" in note
    assert f"zero {zero} over all 512 replicas leaves no copy" in note
    assert away(asked) == []


@pytest.mark.parametrize(("shard", "groups"), [(64, 8), (256, 2), (8, 64)])
def test_groups_of_a_state_go_out_whole(shard: int, groups: int) -> None:
    """One of 8 groups away is an eighth of the batch, for as long as a restart takes."""
    answer = dh.simulate_run(**LLAMA, zero=3, shard=shard, elastic="linear", stall="5 s")
    (row,) = [one for one in away(answer) if one["batch"] == "linear"]
    assert row["tokens_a_second_fraction"] == pytest.approx(1 - 1 / groups)
    restart_s = number(answer, "restart_s")
    assert row["a_failure_costs_s"] == pytest.approx(10 + restart_s / groups, rel=1e-3)
    lost = 1 - number(answer, "closed_form_fraction")
    assert lost >= restart_s / number(answer, "mttf_s") / groups * 0.9
    assert number(answer, "closed_form_fraction") == pytest.approx(number(answer, "ettr_fraction"), abs=0.01)


def test_larger_groups_keep_less() -> None:
    kept = [
        number(dh.simulate_run(**LLAMA, zero=3, shard=shard, elastic="linear"), "closed_form_fraction")
        for shard in (8, 64, 256, 512)
    ]
    assert kept == sorted(kept, reverse=True)
    assert kept[0] > kept[-1] + 0.01


def test_one_node_that_has_all_replicas_leaves_none() -> None:
    answer = dh.simulate_run(
        model="llama-3.1-8b", chips=8, tp=4, zero=0, days=20, runs=5, elastic="kept", offload=["optimizer"]
    )  # fmt: skip
    assert any("all 2 replicas are on one node" in one for one in answer.notes)

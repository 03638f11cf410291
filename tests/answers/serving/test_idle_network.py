"""A network that a group of chips crosses and does not feel is said to do nothing, and one that it feels is not."""

from __future__ import annotations

from typing import Any

import pytest

import datahall as dh
from datahall.answer import Answer
from datahall.catalog import Catalog

SHELF = Catalog(user=False)
SMALL: dict[str, Any] = {"rate": 1, "requests": 30, "isl": 300, "osl": 20}
PAIR = {"model": "llama-3.1-8b", "tp": 16}  # two domains under one switch
WIDE = {"model": "deepseek-v3", "chip": "h200-sxm", "precision": "fp8", "tp": 1, "dp": 128, "ep": 128}
DEEP = {"model": "llama-3.1-405b", "chip": "h200-sxm", "tp": 8, "pp": 18}
HANDS = {"model": "llama-3.1-8b", "disaggregated": "prefill=1,decode=1"}
TREE = {"on": "fat-tree", "nic": "100 Gb/s"}


def simulated(**said: Any) -> Answer:
    return dh.simulate_serve(**SMALL | said, catalog=SHELF)


@pytest.mark.parametrize(
    ("layout", "beside", "name", "value", "felt"),
    [
        (PAIR, {}, "on", "fat-tree", False),
        (PAIR, {}, "nic", "400 Gb/s", False),
        (PAIR, {}, "nic", "100 Gb/s", True),
        (WIDE, TREE, "oversubscription", "4:1", True),
        (WIDE, TREE, "oversubscription", "1.1:1", False),
        (WIDE, {}, "on", "tree", True),
        (WIDE, {}, "on", "rail-optimised", False),
        (DEEP, TREE, "oversubscription", "4:1", False),
        (DEEP, {}, "nic", "100 Gb/s", True),
        (HANDS, {}, "nic", "100 Gb/s", True),
    ],
    ids=str,
)
def test_what_is_said_to_do_nothing_does_nothing(
    layout: dict[str, Any], beside: dict[str, Any], name: str, value: str, felt: bool
) -> None:
    usual, other = simulated(**layout, **beside), simulated(**layout, **beside | {name: value})
    assert (usual.results != other.results) is felt
    assert any(f"{name} " in note and "nothing here" in note for note in other.notes) is not felt


def test_a_fabric_that_brings_its_chip_does_something() -> None:
    run = simulated(model="llama-3.1-8b", tp=2, on="nvl72")
    assert run.inputs["chip"] != "h100-sxm"
    assert not any(note.startswith("on ") for note in run.notes)


@pytest.mark.parametrize(
    ("said", "felt"), [({"on": "fat-tree"}, False), ({"nic": "400 Gb/s"}, False), ({"nic": "10 Gb/s"}, True)]
)
def test_a_plan_whose_replicas_leave_their_domain_says_so_too(said: dict[str, Any], felt: bool) -> None:
    asked: dict[str, Any] = {"rate": 1, "isl": 500, "osl": 50, "chips": "h100-sxm", "precision": "bf16"}
    plan = dh.plan_serve("llama-3.1-405b", **asked, **said, catalog=SHELF)
    usual = dh.plan_serve("llama-3.1-405b", **asked, catalog=SHELF)
    assert plan.results["pp"] == 2
    idle = [note for note in plan.notes if "nothing here" in note]
    assert [note.split()[0] for note in idle] == ([] if felt else list(said))
    assert ([table.rows for table in plan.tables] == [table.rows for table in usual.tables]) is not felt


def test_a_network_without_which_nothing_would_join_the_chips_is_felt() -> None:
    found = dh.simulate_serve(
        "llama-3.1-70b", chip="a40", tp=16, nic="100 Gb/s", rate=0.1, requests=20, catalog=SHELF
    )
    assert not any("nic does nothing" in note for note in found.notes)


@pytest.mark.parametrize(("tp", "replicas", "told"), [(16, 4, True), (16, 1, False), (8, 4, False)])
def test_replicas_that_all_stand_at_the_failure_say_so(tp: int, replicas: int, told: bool) -> None:
    """Only those that cross the network meet the failure, and one alone stands where it stands."""
    found = dh.simulate_serve(
        "llama-3.1-405b", chip="h100-sxm", precision="fp8", tp=tp, replicas=replicas, on="fat-tree",
        failure=[{"nics": 0}], rate=0.2, requests=20, catalog=SHELF,
    )  # fmt: skip
    assert any("stand where the failure leaves least" in note for note in found.notes) is told

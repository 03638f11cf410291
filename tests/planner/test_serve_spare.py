"""Spare replicas (N+1): chips, power and failures follow, and the limits are kept with so many out."""

from __future__ import annotations

import shlex

import pytest
from tests.cli.conftest import Run, _home, datahall
from tests.results import number

import datahall as dh
from datahall.answer import Answer
from datahall.catalog import Catalog
from datahall.errors import DatahallError

__all__ = ["_home", "datahall"]

SHELF = Catalog(user=False)
SAID = {"rate": 100, "tpot": "20ms", "chips": "h100-sxm", "precision": "fp8", "catalog": SHELF}


def plan(**more: object) -> Answer:
    return dh.plan_serve("llama-3.1-8b", **{**SAID, **more})


def test_none_is_the_plan_without() -> None:
    plain, none = plan(), plan(spare=0)
    assert none.results == plain.results
    assert none.headline == plain.headline
    assert none.tables == plain.tables


@pytest.mark.parametrize("spare", [1, 2, 5])
def test_each_spare_replica_costs_the_chips_of_one(spare: int) -> None:
    plain, more = plan(tp=2), plan(tp=2, spare=spare)
    assert number(more, "num_replicas") == number(plain, "num_replicas") + spare
    assert number(more, "num_chips") == number(plain, "num_chips") + 2 * spare
    assert more.results["num_spare_replicas"] == spare
    assert "num_spare_replicas" not in plain.results
    assert number(more, "ttft_s") == number(plain, "ttft_s")  # with the spare ones out
    assert more.figure is not None
    assert more.figure.value == number(more, "num_chips")
    assert f"{spare} of them spare" in more.headline
    assert "out" in more.headline


def test_more_spare_never_gives_fewer_chips_or_less_power() -> None:
    """Also where groups of several chips are weighed against single ones: a spare one of those costs more."""
    plans = [
        plan(precision=["bf16", "fp8"], chips=["h100-sxm", "l40s"], spare=spare) for spare in (0, 1, 2, 4, 8)
    ]
    for name in ("num_chips", "provisioned_w", "site_w"):
        found = [number(one, name) for one in plans]
        assert found == sorted(found), name


def test_spare_replicas_are_not_added_twice() -> None:
    """What failures ask for beside those that are needed is what they ask for beside the spare ones, less these."""
    often = {"failure_rate": "2/node-day", "restart": "12h", "tp": 8, "rate": 1000, "spares_enough": "99.9 %"}
    plain = plan(**often)
    wanted = number(plain, "num_more_replicas")
    assert wanted >= 3
    for spare in (1, 2, int(wanted), int(wanted) + 2):
        beside = number(plan(**often, spare=spare), "num_more_replicas")
        assert beside == max(0, wanted - spare)


def test_the_follow_up_takes_the_spare_ones_out_and_the_limits_are_kept(datahall: Run) -> None:
    found = plan(spare=2)
    command = next(one for one in found.next_commands if "--failure" in one)
    words = shlex.split(command)[1:]
    assert words[words.index("--replicas") + 1] == str(found.results["num_replicas"])
    assert datahall(*words).code == 0


def test_a_node_that_takes_more_than_are_spare_is_said() -> None:
    together = [note for note in plan(spare=1).notes if "more than are spare" in note]
    assert together
    assert not [note for note in plan(spare=1, tp=8).notes if "more than are spare" in note]


@pytest.mark.parametrize("spare", [-1, 1.5, "many", 10**9])
def test_what_is_no_number_of_replicas_is_refused(spare: object) -> None:
    with pytest.raises(DatahallError, match="spare"):
        plan(spare=spare)

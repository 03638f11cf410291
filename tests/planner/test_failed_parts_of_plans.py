"""A failure names a part by its number, and machines of a plan have more or fewer: none is chosen for that."""

from __future__ import annotations

from typing import Any

import pytest

import datahall as dh
from datahall.errors import ScenarioError

SERVED = {
    "model": "llama-3.1-70b", "users": 500, "chips": "h100-sxm", "on": "fat-tree", "objective": "chips",
}  # fmt: skip
TRAINED = {"model": "llama-3.1-8b", "tokens": "1T", "chip": "h100-sxm", "on": "fat-tree"}


def slow(nic: int) -> list[dict[str, object]]:
    return [{"nics": [nic], "left": 0.1}]


@pytest.mark.parametrize("nic", [20, 500])
def test_a_service_is_not_made_larger_to_have_what_has_failed(nic: int) -> None:
    small = dh.plan_serve(**SERVED, failure=slow(3))
    assert small.results["num_chips"] == dh.plan_serve(**SERVED).results["num_chips"] == 14
    with pytest.raises(ScenarioError, match=f"there is no NIC {nic}") as caught:
        dh.plan_serve(**SERVED, failure=slow(nic))
    assert caught.value.field == "failure"


def test_a_replica_that_crosses_a_slow_link_holds_less() -> None:
    """DeepSeek-V3 stands on two servers, a stage on each: what goes between them crosses the link of the first chip."""

    def sized(left: float) -> dict[str, Any]:
        failed = [{"links": [0], "left": left}] if left < 1 else None
        plan = dh.plan_serve("deepseek-v3", chips="h100-sxm", on="fat-tree", users=2000, failure=failed)
        assert plan.results["tp"] * plan.results["pp"] > 8
        return plan.results

    whole, slow, slowest = (sized(left) for left in (1.0, 0.1, 0.01))
    held = [one["replica_requests_per_s"] for one in (whole, slow, slowest)]
    assert held[0] >= held[1] > held[2]
    assert whole["num_chips"] <= slow["num_chips"] < slowest["num_chips"]


def test_one_server_without_ports_has_none_that_fail() -> None:
    asked = {"model": "llama-3.1-405b", "rate": 2, "chips": "h100-sxm", "tp": 8, "on": "hgx"}
    with pytest.raises(ScenarioError, match="has no NICs"):
        dh.plan_serve(**asked, failure=slow(3))


def test_a_deadline_is_met_on_as_few_chips_whatever_the_number_of_the_part() -> None:
    whole = dh.plan_train(**TRAINED, deadline="30d").results["num_chips"]
    assert dh.plan_train(**TRAINED, deadline="30d", failure=slow(3)).results["num_chips"] >= whole
    with pytest.raises(ScenarioError, match=f"there is no NIC 500[\\s\\S]*0 to {whole - 1}"):
        dh.plan_train(**TRAINED, deadline="30d", failure=slow(500))


def test_what_failed_of_idle_chips_is_nobodys() -> None:
    """Of 130 chips 128 are used; the machine that has them is looked at with and without the last ports."""
    plan = dh.plan_train(**TRAINED, chips=130, failure=slow(129))
    assert plan.results["num_chips"] == 128
    assert plan.results["step_s"] == dh.plan_train(**TRAINED, chips=130).results["step_s"]
    with pytest.raises(ScenarioError, match="there is no NIC 140"):
        dh.plan_train(**TRAINED, chips=130, failure=slow(140))


def test_fewer_chips_are_looked_at_whatever_has_failed_of_the_others() -> None:
    def counts(nic: int) -> list[object]:
        plan = dh.plan_train(**TRAINED, chips=128, failure=slow(nic))
        table = next(one for one in plan.tables if "chips" in one.title and "time" in one.title)
        return [row[0] for row in table.rows]

    assert counts(100) == counts(3)

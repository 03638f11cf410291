"""A plan is the least hardware: no narrower search and no harder limit finds less, and what it claims is so."""

from __future__ import annotations

from typing import Any

import pytest

import datahall as dh
from datahall.catalog import Catalog

SHELF = Catalog(user=False)


def chips(model: str, **said: Any) -> int:
    return int(dh.plan_serve(model, **said, catalog=SHELF).results["num_chips"])


@pytest.mark.parametrize(
    ("model", "said", "tp"),
    [
        (
            "mixtral-8x7b",
            {"chips": "rtx-4090", "rate": 60, "isl": 1000, "osl": 100, "ttft": "1s", "tpot": "100ms"},
            1,
        ),
        (
            "qwen3-next-80b-a3b",
            {"chips": "rtx-4090", "rate": 60, "isl": 300, "osl": 100, "ttft": "3s", "tpot": "20ms"},
            2,
        ),
        (
            "mistral-7b",
            {"chips": "a100-sxm-80gb", "rate": 5, "isl": 1000, "osl": 800, "ttft": "500ms", "tpot": "20ms"},
            1,
        ),
        (
            "deepseek-v2-lite",
            {"chips": "rtx-4090", "rate": 5, "isl": 3000, "osl": 300, "ttft": "1s", "tpot": "20ms"},
            1,
        ),
        (
            "qwen3-next-80b-a3b",
            {"chips": "l40s", "rate": 60, "isl": 300, "osl": 100, "ttft": "3s", "tpot": "30ms"},
            2,
        ),
    ],
)
def test_a_width_that_is_given_finds_no_fewer_chips(model: str, said: dict[str, Any], tp: int) -> None:
    assert chips(model, **said) <= chips(model, **said, tp=tp)


def test_more_headroom_takes_no_fewer_chips() -> None:
    said = {"chips": "l40s", "rate": 60, "isl": 300, "osl": 100, "ttft": "3s", "tpot": "30ms"}
    found = [chips("qwen3-next-80b-a3b", **said, headroom=f"{share}%") for share in (0, 10, 20, 30, 40)]
    assert found == sorted(found)
    assert found[0] < found[1] < found[2]


@pytest.mark.parametrize(
    ("model", "said", "load"),
    [
        (
            "llama-3.1-70b",
            {"chips": "h100-sxm", "precision": "fp8", "tp": 8, "isl": 4000, "osl": 200, "ttft": "300ms"},
            30,
        ),
        ("llama-3.1-8b", {"chips": "h200", "precision": "fp8", "max_sequences": 1}, 5),
        ("llama-3.1-8b", {"chips": "a100-sxm-80gb", "precision": "bf16", "max_sequences": 2}, 8),
    ],
)
def test_the_replicas_of_a_plan_keep_the_limits_and_fewer_do_not(
    model: str, said: dict[str, Any], load: float
) -> None:
    """At the load with the headroom used up, as the plan's own follow-up simulates it; the draw is another, so one
    replica fewer may just do: three fewer do not."""
    plan = dh.plan_serve(model, **said, rate=load, catalog=SHELF)
    asked = {key: value for key, value in said.items() if key != "chips"}
    count = int(plan.results["num_replicas"])

    def kept(replicas: int) -> float:
        run = dh.simulate_serve(
            model, chip=plan.results["chip"], replicas=replicas, rate=load / 0.9, **asked, catalog=SHELF
        )
        return float(run.results["good_fraction"])

    assert kept(count) > 0.95
    assert kept(count - 3) < 0.94


def test_one_replica_is_not_said_to_be_more_than_fewer_would_be() -> None:
    plan = dh.plan_serve(
        "llama-3.1-8b", rate=60, isl=1000, osl=1, chips="h200", precision="fp8", catalog=SHELF
    )
    assert plan.results["num_replicas"] == 1
    assert "fewer" not in plan.binding
    assert "Each of 1" not in plan.binding


@pytest.mark.parametrize("rate", [5, 60])
def test_answers_of_one_token_have_no_time_per_token(rate: float) -> None:
    plan = dh.plan_serve("llama-3.1-8b", rate=rate, osl=1, chips="h200", catalog=SHELF)
    assert plan.results["binds"] != "TPOT"
    assert plan.results["tpot_s"] is None
    for table in plan.tables:
        for row in table.records():
            assert not [
                key for key, value in row.items() if "tpot" in key and value == value and value is not None
            ]
            assert "TPOT" not in " ".join(str(value) for value in row.values())

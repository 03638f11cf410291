"""The command after a plan simulates the same load on what was planned, and agrees."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from tests.results import number

import datahall as dh
from datahall.answer import Answer, LineChart
from datahall.answers.ask import form_of
from datahall.answers.verbs import BY_NAME
from datahall.catalog import Catalog
from datahall.cli.command import Question

SHELF = Catalog(user=False)
LOADS: tuple[dict[str, Any], ...] = (
    {"users": 300, "think": "10 s"},
    {"users": 1500, "traffic": "lmsys-chat"},
    {"rate": 33.333333333},
    {"rate": 12, "turns": 2, "think": "5 s", "isl": 400, "osl": 60},
)


def followed(plan: Answer, name: str = "simulate serve") -> tuple[dict[str, Any], Answer]:
    """What the command of a verb says, and what it answers."""
    verb = BY_NAME[name]
    (line,) = [command for command in plan.next_commands if command.startswith(f"datahall {name} ")]
    context = Question(verb).make_context(verb.name, shlex.split(line)[3:])
    fields = form_of(verb.name).fields
    said = {name: value for name, value in context.params.items() if name in fields and value is not None}
    return said, getattr(dh, verb.function)(**Question(verb)._given(context, said), catalog=SHELF)


@pytest.mark.parametrize("load", LOADS, ids=str)
def test_the_same_load_keeps_the_limits(load: dict[str, Any]) -> None:
    plan = dh.plan_serve("llama-3.1-8b", chips="l40s", precision="fp8", **load, catalog=SHELF)
    said, run = followed(plan)
    names = {"rate", "users", "think", "turns", "traffic", "isl", "osl"}
    assert said.keys() & names == load.keys()
    for name, value in load.items():
        assert str(said[name]).replace(" ", "") == str(value).replace(" ", "")
    assert run.results["keeps_limits"] is True
    assert run.results["num_chips"] == plan.results["num_chips"]


def test_the_techniques_of_a_plan_are_those_of_the_replica_that_it_chose() -> None:
    """Experts spread as in the plan: a replica holds in closed form what it holds there."""
    plan = dh.plan_serve(
        "qwen3-235b-a22b", rate=20, chips="h100-sxm", precision="fp8", objective="chips", catalog=SHELF
    )
    said, shown = followed(plan, "show techniques")
    degrees = {name: plan.results[name] for name in ("tp", "pp", "dp", "ep")}
    assert degrees["ep"] != 1
    assert {name: int(said.get(name, 1)) for name in degrees} == degrees
    assert plan.figure is not None
    holds = {node.name: node.value for _, node in plan.figure.walk()}["one replica holds, in closed form"]
    chips = number(plan, "num_chips") / number(plan, "num_replicas")
    assert shown.results["chip_requests_per_s"] * chips == pytest.approx(holds, rel=1e-6)


@pytest.mark.parametrize("said", [{"turns": 3, "think": "5 s"}, {"system": 2000}], ids=str)
def test_techniques_that_would_be_of_shorter_requests_are_not_offered(said: dict[str, Any]) -> None:
    plan = dh.plan_serve("llama-3.1-8b", rate=5, chips="h100-sxm", precision="fp8", **said, catalog=SHELF)
    assert not [command for command in plan.next_commands if " show techniques " in command]


def test_a_plan_to_which_simulation_added_replicas_describes_them_all() -> None:
    """The chain adds them to those of the closed form; the sentence says what a replica then kept, beside it."""
    said = {"users": 2000, "chips": "h100-sxm", "precision": "fp8", "tp": 2}
    plan = dh.plan_serve("llama-3.1-70b", **said, catalog=SHELF)
    (check,) = [table for table in plan.tables if "closed form" in table.title]
    assert check.records()[0]["num_added"] > 0
    figure, results = plan.figure, plan.results
    assert figure is not None
    assert figure.value == results["num_chips"]
    nodes = {node.name: node for _, node in figure.walk()}
    added, replicas = nodes["replicas that simulation added"], nodes["replicas"]
    assert replicas.value == results["num_replicas"]
    assert added.value == check.records()[0]["num_added"]
    closed = nodes["one replica holds, in closed form"].value
    assert results["replica_requests_per_s"] < closed
    assert f"{closed:.3g} requests/s in closed form" in plan.binding
    assert results["spare_fraction"] == pytest.approx(1 / 0.9 - 1)
    assert f"{results['replica_requests_per_s']:.3g} requests/s" in plan.binding


def test_what_replicas_got_when_simulated_is_not_said_to_be_what_one_holds() -> None:
    """Two replicas share the load: neither latency is at its limit, and one of them alone does not keep both."""
    said = {"rate": 5, "chips": "h200-sxm", "precision": "bf16", "tp": 2}
    plan = dh.plan_serve("llama-3.1-70b", **said, catalog=SHELF)
    each = 5 / 0.9 / number(plan, "num_replicas")
    assert number(plan, "replica_requests_per_s") == pytest.approx(each)
    assert f"Each of 2 replicas gets {each:.3g} requests/s" in plan.binding
    assert "binds" not in plan.binding
    assert "one replica holds" not in plan.binding
    share = number(plan, "tpot_s") / 50e-3
    assert share > number(plan, "ttft_s") / 1.0
    assert f"the time per token is nearest its limit, at {100 * share:.0f} % of it (P95)" in plan.binding
    alone = dh.simulate_serve(
        "llama-3.1-70b", chip="h200-sxm", precision="bf16", tp=2, rate=5 / 0.9, catalog=SHELF
    )
    assert alone.results["good_fraction"] < 0.95


@pytest.mark.parametrize(("said", "added"), [({"users": 2000, "tp": 4}, True), ({"rate": 1}, False)])
def test_knees_stand_where_the_closed_form_has_them(said: dict[str, Any], added: bool) -> None:
    """What simulation kept is another mark, and the note says which of the two the table has."""
    plan = dh.plan_serve(
        "llama-3.1-70b", chips="h100-sxm", precision="fp8", percentile=90, **said, catalog=SHELF
    )
    (check,) = [table for table in plan.tables if "closed form" in table.title]
    assert bool(check.records()[0]["num_added"]) is added
    (chart,) = plan.charts
    assert isinstance(chart, LineChart)
    assert chart.y.label == "TPOT P90"
    assert "at P90" in chart.title
    marks = {mark.label: mark.x for mark in chart.marks}
    assert set(marks) == {"knee, h100-sxm", *(["simulated, h100-sxm"] if added else [])}
    results = plan.results
    chips = results["num_chips"] / results["num_replicas"]  # type: ignore[operator]
    held = results["replica_requests_per_s"] / chips
    assert marks["simulated, h100-sxm" if added else "knee, h100-sxm"] == pytest.approx(held)
    curve, limit = chart.series
    above = [x for x, y in zip(curve.x, curve.y, strict=True) if y > limit.y[0]]
    assert marks["knee, h100-sxm"] <= min(above)
    (holds,) = [table for table in plan.tables if "one replica holds" in table.title]
    assert ("when simulated" in holds.note) is added
    assert ("where one of the latencies reaches its limit at P90" in holds.note) is not added


def test_alternatives_say_how_many_chips_they_are_from_the_best_of_their_kind() -> None:
    plan = dh.plan_serve(
        "llama-3.1-70b", users=2000, chips="h100-sxm,h200-sxm", objective="chips", catalog=SHELF
    )
    least = {row["chip"]: row["chips"] for row in plan.tables[0].records()}
    (lost,) = [table for table in plan.tables if table.title == "alternatives"]
    assert lost.rows
    for row in lost.records():
        more = row["chips"] - least[row["chip"]]
        words = f"{more} more chip{'s' if more > 1 else ''}" if more else "as many chips"
        assert row["why_it_lost"].startswith(words if more >= 0 else "fewer chips in closed form")

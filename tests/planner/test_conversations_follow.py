"""The command that a plan of conversations offers next simulates it whole, and finds what the plan said."""

from __future__ import annotations

import json
import random
import shlex
from typing import Any

import pytest

import datahall as dh
from datahall.answer import Answer
from datahall.cli.main import run as command
from datahall.scenario.sections.deployment import MOST_REPLICAS


def results(answer: Answer) -> dict[str, Any]:
    return dict(answer.results)


def drawn(seed: int) -> dict[str, Any]:
    """A service of conversations that somebody may ask for."""
    draw = random.Random(seed)
    asked: dict[str, Any] = {
        "model": draw.choice(("llama-3.1-8b", "qwen3-30b-a3b", "llama-3.1-70b")),
        "seed": seed,
    }
    asked["chips"] = [draw.choice(("h100-sxm", "h200-sxm", "b200-sxm"))]
    kind = draw.choice(("chat", "agent", "mooncake-conversation", "turns"))
    if kind == "turns":
        asked |= {"turns": draw.choice((2, 3, 5)), "think": draw.choice(("5s", "20s", "2min"))}
        asked |= {"system": 500} if draw.random() < 0.3 else {}
    else:
        asked["traffic"] = kind
    if draw.random() < 0.5:
        asked["rate"] = round(10 ** draw.uniform(0, 2.3), 1)
    else:
        asked["users"] = round(10 ** draw.uniform(1, 3.3))
    return asked


@pytest.mark.parametrize("seed", range(16))
def test_the_next_command_of_a_plan_of_conversations_confirms_it(
    seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = drawn(seed)
    try:
        plan = dh.plan_serve(**asked)
    except dh.InfeasibleError:
        pytest.skip(f"nothing serves {asked}")
    follow = next(line for line in plan.next_commands if " simulate serve " in line)
    code = command([*shlex.split(follow)[1:], "--json"])
    run = json.loads(capsys.readouterr().out)["results"]
    if plan.verdict == "no":
        return
    assert code == 0, follow
    assert run["keeps_limits"], follow
    if "rate" in asked:
        assert run["requests_per_s"] == pytest.approx(asked["rate"], rel=0.1), follow
    assert run["requests_per_s"] == pytest.approx(results(plan)["requests_per_s"], rel=0.15), follow
    held: Any = next(table for table in plan.tables if table.title == "what one replica holds").rows[0]
    assert held[1] <= 1.35 * held[2], follow  # in limits, and at most


def test_the_closed_form_of_conversations_holds_what_simulation_holds() -> None:
    """Chat on an H200: the cache keeps 40 s of it at 28/s, and a quarter of the turns come later than that."""
    plan = dh.plan_serve("llama-3.1-8b", rate=40, traffic="chat", chips=["h200-sxm"], precision=["fp8"], tp=1)
    assert results(plan)["num_replicas"] == 2
    most = results(plan)["replica_most_per_s"]
    broken = dh.simulate_serve("llama-3.1-8b", chip="h200-sxm", precision="fp8", rate=40, traffic="chat")
    assert results(broken)["sustained_per_s"] == pytest.approx(most, rel=0.1)


@pytest.mark.parametrize("load", [{"users": 100_000_000}, {"rate": 1e7}])
def test_a_plan_of_more_replicas_than_can_be_simulated_is_followed_by_some_of_them(
    load: dict[str, float], capsys: pytest.CaptureFixture[str]
) -> None:
    plan = dh.plan_serve("llama-3.1-8b", chips=["h100-sxm"], **load)  # type: ignore[arg-type]
    assert results(plan)["num_replicas"] > MOST_REPLICAS
    follow = next(line for line in plan.next_commands if " simulate serve " in line)
    assert "--replicas 100 " in follow
    assert command([*shlex.split(follow)[1:], "--json"]) in (0, 1)  # answered, not refused
    share = json.loads(capsys.readouterr().out)["results"]["good_fraction"]
    assert share >= 0.9
    assert any("under their share of the load" in note for note in plan.notes)

"""The command that a plan offers next simulates the plan whole, and finds what the plan said."""

from __future__ import annotations

import json
import random
import shlex
from typing import Any

import pytest

import datahall as dh
from datahall.answer import Answer
from datahall.cli.main import run as command

MODELS = ("llama-3.1-8b", "qwen3-8b", "llama-3.1-70b", "mixtral-8x7b", "gpt-oss-20b")
CHIPS = ("h100-sxm", "h200-sxm", "b200-sxm", "mi300x", "a100-sxm-80gb")


def drawn(seed: int) -> dict[str, Any]:
    """A service that somebody may ask for."""
    draw = random.Random(seed)
    asked: dict[str, Any] = {"model": draw.choice(MODELS), "chips": [draw.choice(CHIPS)]}
    if draw.random() < 0.5:
        asked["rate"] = round(10 ** draw.uniform(0, 2.5), 1)
    else:
        asked["users"] = round(10 ** draw.uniform(1, 3.5))
        if draw.random() < 0.4:
            asked["think"] = f"{draw.randint(5, 60)}s"
    if draw.random() < 0.5:
        asked |= {"isl": draw.choice((200, 1000, 4000)), "osl": draw.choice((50, 200, 600))}
    asked |= {"ttft": f"{draw.choice((500, 1000, 3000))}ms", "tpot": f"{draw.choice((30, 50, 100))}ms"}
    return asked


def planned(asked: dict[str, Any]) -> Answer:
    return dh.plan_serve(**asked)


@pytest.mark.parametrize("seed", range(30))
def test_the_next_command_of_a_plan_confirms_it(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    asked = drawn(seed)
    try:
        plan = planned(asked)
    except dh.InfeasibleError:
        pytest.skip(f"nothing serves {asked}")
    follow = next(line for line in plan.next_commands if " simulate serve " in line)
    code = command([*shlex.split(follow)[1:], "--json"])
    run = json.loads(capsys.readouterr().out)["results"]
    if plan.verdict == "no":
        return
    assert code == 0, follow
    assert run["keeps_limits"], follow
    assert run["stable"]
    if "rate" in asked:  # what comes is served
        assert run["requests_per_s"] == pytest.approx(asked["rate"], rel=0.1), follow
    else:  # users read at least as fast as the plan had them read
        assert (
            run["output_tokens_per_s"]
            >= 0.93 * plan.results["chip_output_tokens_per_s"] * plan.results["num_chips"]
        ), follow

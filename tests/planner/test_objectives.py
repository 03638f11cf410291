"""What a plan may have the least of is a row of each table: the next one needs no edit elsewhere."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import cast

import msgspec
import pytest
from tests.economics.priced import asked
from tests.house import MODULES, each, inside, parsed

from datahall.planner.plan import Objective, objective_of
from datahall.planner.serving.money import aim as serving
from datahall.planner.training.money import aim as training
from datahall.scenario import aims
from datahall.scenario.aims import AIM_ROWS, AimRow
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.wanted.goal import Goal
from datahall.scenario.words import AIMS, Aims
from datahall.units import fmt

CAPEX = cast(Aims, "capex")
ROW = AimRow("usd", "; the least hardware of {}", "the least hardware", "hardware", "least hardware first")
SAY_AIMS = (
    "scenario/words.py", "scenario/aims.py", "planner/serving/money/aim.py", "planner/training/money/aim.py",
)  # fmt: skip
FEW = 2  # of their words together are no list of them


def test_every_objective_has_its_row_and_its_values() -> None:
    assert tuple(AIM_ROWS) == AIMS
    assert tuple(serving.VALUES) == AIMS, "how much a service takes"
    assert tuple(training.VALUES) == AIMS, "how much a run takes"
    assert all(all(row) for row in AIM_ROWS.values())
    assert all(row.least_service.count("{}") == 1 for row in AIM_ROWS.values())


@pytest.mark.parametrize("name", AIMS)
def test_its_unit_is_one_that_can_be_printed(name: Aims) -> None:
    assert fmt(1.0, objective_of(name).unit)


def lists_aims(tree: ast.AST) -> list[int]:
    """Lines with a table or a list of several objectives."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict | ast.Tuple | ast.List | ast.Set):
            items = node.keys if isinstance(node, ast.Dict) else node.elts
            words = {one.value for one in items if isinstance(one, ast.Constant)}
            if len(words & set(AIMS)) > FEW:
                found.append(node.lineno)
    return found


@each([path for path in MODULES if path not in inside(*SAY_AIMS)])
def test_nobody_else_has_a_table_of_them(path: Path) -> None:
    assert lists_aims(parsed(path)) == []


def test_a_table_of_them_is_known_when_seen() -> None:
    assert lists_aims(ast.parse('{"cost": 1, "chips": 2, "energy": 3}'))
    assert not lists_aims(ast.parse('("time", "cost")'))


def having(scenario: Scenario) -> Scenario:
    return scenario.having(msgspec.structs.replace(scenario.one(Goal), objective=CAPEX))


def test_a_new_objective_is_what_a_plan_has_the_least_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(aims.AIM_ROWS, CAPEX, ROW)
    monkeypatch.setitem(serving.VALUES, CAPEX, lambda _, candidate: 30e3 * candidate.num_chips)
    monkeypatch.setitem(training.VALUES, CAPEX, training.Takes(lambda _, plan: 30e3 * plan.num_chips))
    service = serving.aim_of(having(asked("plan serve", model="llama-3.1-8b", rate=5, chips="h100-sxm")))
    run = training.aim_of(
        having(asked("plan train", model="llama-3.1-8b", tokens="1B", chips=8, chip="h100-sxm"))
    )
    assert service.objective == run.objective == Objective(CAPEX, "usd")
    assert service.objective.row.more == "hardware"
    assert run.step_value is None

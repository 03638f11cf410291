"""What has no closed form: known from the question alone, before anything that computes is loaded."""

from __future__ import annotations

from math import inf

from datahall.errors import InfeasibleError, ScenarioError, option
from datahall.inference.early import check_prompts, check_replicas
from datahall.inference.engine.engine import engine, engines
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import Deployment
from datahall.scenario.sections.views import Lighter
from datahall.units import fmt
from datahall.workload.parameters import count_parameters


class TooSlow(InfeasibleError):
    """A replica that keeps its limits under no load."""

    over_ratio: float = inf  # of what one request alone has at the percentile over the limit
    longer: str = ""  # limits that are kept


def check_closed_form(scenario: Scenario) -> None:
    """Refuse an engine that does not batch continuously, and prompts that leave no room for an answer."""
    batching = engine(scenario.one(Deployment).engine).batching
    if batching != "continuous":
        known, *others = (one for one, found in engines().items() if found.batching == "continuous")
        raise ScenarioError(
            f"{batching} batching has no closed form to plan with",
            field="engine",
            hint=f"simulate serve follows it; here {option('engine', known)}, {', '.join(others)}",
        )
    check_prompts(scenario)


def check_techniques(scenario: Scenario) -> None:
    """The same of a replica whose chip and format are said, and may not go together."""
    check_closed_form(scenario)
    check_replicas(scenario)
    check_smaller(scenario)


def check_smaller(scenario: Scenario) -> None:
    """Refuse a smaller model that is none."""
    name, model = scenario.one(Lighter).small, scenario.model()
    if not name:
        return
    size, large = (count_parameters(one).total for one in (scenario.catalog.model(name), model))
    if size >= large:
        raise ScenarioError(
            f"{name} has {fmt(size, 'parameters')} parameters, {model.name} has {fmt(large, 'parameters')}",
            field="small",
            hint=f"a smaller one, or leave {option('small')} out",
        )

"""What has no closed form: known from the question alone, before anything that computes is loaded."""

from __future__ import annotations

from math import isinf

from datahall.errors import ScenarioError, option
from datahall.inference.engine.engine import engine, engines
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import Deployment
from datahall.scenario.sections.traffic import Traffic


def check_closed_form(scenario: Scenario) -> None:
    """Refuse an engine that does not batch continuously, and requests that come all at once."""
    name, rate_per_s = scenario.one(Deployment).engine, scenario.one(Traffic).rate_per_s
    if rate_per_s is not None and isinf(rate_per_s):
        raise ScenarioError(
            "no hardware serves all requests at once", field="rate", hint=f"e.g. {option('rate', 80)}"
        )
    batching = engine(name).batching
    if batching != "continuous":
        known, *others = (one for one, found in engines().items() if found.batching == "continuous")
        raise ScenarioError(
            f"{batching} batching has no closed form to plan with",
            field="engine",
            hint=f"simulate serve follows it; here {option('engine', known)}, {', '.join(others)}",
        )

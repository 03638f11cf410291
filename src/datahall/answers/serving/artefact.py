"""The files that run a plan of a service."""

from __future__ import annotations

from functools import partial

from datahall.answers.artefact import offered, origin_of, writer
from datahall.answers.verbs.serving import OF_SERVICE
from datahall.planner.artefacts.serving.service import service_of
from datahall.planner.serving.plan import ServingPlan
from datahall.scenario.scenario import Scenario


def service_file(scenario: Scenario, plan: ServingPlan, name: str) -> str:
    """One file of a plan of a service."""
    return writer(OF_SERVICE[name])(service_of(plan, scenario.catalog, origin_of(scenario)))


def deploy_service(scenario: Scenario, plan: ServingPlan) -> tuple[str, ...]:
    """The command that writes what starts the engine of a plan."""
    engine = plan.chosen.replica.engine.name
    own = {name for name in OF_SERVICE if name.partition(".")[0] == engine}
    return offered(scenario, own, partial(service_file, scenario, plan))

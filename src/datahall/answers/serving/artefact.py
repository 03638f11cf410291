"""The files that run a plan of a service."""

from __future__ import annotations

from functools import partial

from datahall.answers.artefact import offered, origin_of
from datahall.planner.artefacts.serving.service import service_of
from datahall.planner.artefacts.table import OF_SERVICE, writer
from datahall.planner.serving.candidate import Proposal
from datahall.scenario.scenario import Scenario


def service_file(scenario: Scenario, best: Proposal, name: str) -> str:
    """One file of a plan of a service."""
    return writer(OF_SERVICE[name])(service_of(best, scenario.catalog, origin_of(scenario)))


def deploy_service(scenario: Scenario, best: Proposal) -> tuple[str, ...]:
    """The command that writes what starts the engine of a plan."""
    engine = best.replica.engine.name
    own = {name for name in OF_SERVICE if name.partition(".")[0] == engine}
    return offered(scenario, own, partial(service_file, scenario, best))

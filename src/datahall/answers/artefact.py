"""The files that run what a plan says: where they are from, and which function writes each."""

from __future__ import annotations

from datahall import __version__
from datahall.answers.follow import follow
from datahall.planner.artefacts.script import Origin
from datahall.planner.artefacts.serving.service import service_of
from datahall.planner.artefacts.table import OF_RUN, OF_SERVICE, writer
from datahall.planner.artefacts.training.run import Run
from datahall.planner.serving.plan import ServingPlan
from datahall.planner.training.plan import TrainingPlan
from datahall.scenario.scenario import Scenario
from datahall.training.layout.asked import said_precision

TAIL = "-o {}"


def service_file(scenario: Scenario, plan: ServingPlan, name: str) -> str:
    """One file of a plan of a service."""
    service = service_of(plan.chosen, scenario.catalog, origin_of(scenario))
    return writer(OF_SERVICE[name])(service)


def run_file(scenario: Scenario, plan: TrainingPlan, name: str) -> str:
    """One file of a plan of a training run."""
    return writer(OF_RUN[name])(Run(plan, said_precision(scenario), origin_of(scenario)))


def origin_of(scenario: Scenario) -> Origin:
    """The question that a file comes from."""
    return Origin(follow(scenario), __version__)


def deploy(scenario: Scenario, name: str) -> tuple[str, ...]:
    """The command that writes a file of the plan, where there is such a file."""
    return (follow(scenario, tail=TAIL.format(name)),) if name in {**OF_SERVICE, **OF_RUN} else ()

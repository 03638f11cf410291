"""The files that run what a plan says: where they are from, and which function writes each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from datahall import __version__
from datahall.answers.follow import follow
from datahall.errors import ScenarioError, UnsupportedError
from datahall.planner.artefacts.script import Origin
from datahall.planner.artefacts.serving.service import service_of
from datahall.planner.artefacts.table import OF_RUN, OF_SERVICE, writer
from datahall.planner.artefacts.training.run import Run
from datahall.planner.serving.candidate import Proposal
from datahall.planner.training.plan import TrainingPlan
from datahall.scenario.scenario import Scenario
from datahall.training.layout.asked import said_precision

TAIL = "-o {}"
RUN = "megatron.sh"  # the file of a run that says most of it


def service_file(scenario: Scenario, best: Proposal, name: str) -> str:
    """One file of a plan of a service."""
    return writer(OF_SERVICE[name])(service_of(best, scenario.catalog, origin_of(scenario)))


def run_file(scenario: Scenario, plan: TrainingPlan, name: str) -> str:
    """One file of a plan of a training run."""
    return writer(OF_RUN[name])(Run(plan, said_precision(scenario), origin_of(scenario)))


def origin_of(scenario: Scenario) -> Origin:
    """The question that a file comes from."""
    return Origin(follow(scenario), __version__)


def deploy_service(scenario: Scenario, best: Proposal) -> tuple[str, ...]:
    """The command that writes what starts the engine of a plan."""
    return _offered(
        scenario, f"{best.replica.engine.name}.sh", OF_SERVICE, partial(service_file, scenario, best)
    )


def deploy_run(scenario: Scenario, plan: TrainingPlan) -> tuple[str, ...]:
    """The command that writes what starts a run."""
    return _offered(scenario, RUN, OF_RUN, partial(run_file, scenario, plan))


def _offered(
    scenario: Scenario, name: str, table: Mapping[str, str], write: Callable[[str], str]
) -> tuple[str, ...]:
    """The command, where there is such a file and its tool can be told all that the plan chose."""
    if name not in table:
        return ()
    try:
        write(name)
    except (UnsupportedError, ScenarioError):
        return ()
    return (follow(scenario, tail=TAIL.format(name)),)

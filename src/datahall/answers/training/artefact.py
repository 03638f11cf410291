"""The files that run a plan of a training run."""

from __future__ import annotations

from functools import partial

from datahall.answers.artefact import offered, origin_of, writer
from datahall.answers.verbs.training import OF_RUN
from datahall.planner.artefacts.training.run import Run
from datahall.planner.training.plan import TrainingPlan
from datahall.scenario.scenario import Scenario
from datahall.training.layout.asked import said_precision


def run_file(scenario: Scenario, plan: TrainingPlan, name: str) -> str:
    """One file of a plan of a training run."""
    return writer(OF_RUN[name])(Run(plan, said_precision(scenario), origin_of(scenario)))


def deploy_run(scenario: Scenario, plan: TrainingPlan) -> tuple[str, ...]:
    """The command that writes what starts a run."""
    return offered(scenario, OF_RUN, partial(run_file, scenario, plan))

"""What is asked of a run over weeks, looked at before anything heavy is loaded."""

from __future__ import annotations

from datahall.errors import ScenarioError, option
from datahall.fabric.design.chips import own_chips
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign, no_chips
from datahall.scenario.sections.operations.checkpoint import Checkpointing
from datahall.scenario.sections.operations.run import RunLength
from datahall.scenario.sections.training import TrainingJob
from datahall.training.early import check_job, check_machine, says_layout
from datahall.training.early import check_run as check_laid_out_run
from datahall.units import DAY_S, fmt


def check_checkpoint(scenario: Scenario) -> None:
    """Refuse a job that cannot be, or that nobody says how many chips run."""
    design = scenario.one(FabricDesign)
    if design.chips is None and own_chips(design, scenario.catalog) is None:
        raise no_chips(16384)
    if says_layout(scenario):
        check_laid_out_run(scenario)
        return
    check_machine(scenario)
    check_job(scenario)


def check_weeks(scenario: Scenario) -> None:
    """The same of a run, whose length is said in days or in tokens."""
    days, job = scenario.one(RunLength).num_days, scenario.one(TrainingJob)
    if (days is None) == (job.num_tokens is None):
        raise ScenarioError(
            "say either how many days the run lasts or how many tokens it trains on",
            field="days",
            hint=f"{option('days', 54)}, or {option('tokens', '15T')}",
        )
    if job.deadline_s is not None and days is not None:
        raise ScenarioError(
            f"{option('deadline')} is for tokens, and the run ends after {fmt(days * DAY_S, 's')} anyway",
            field="deadline",
            hint=f"{option('tokens', '15T')} in place of {option('days')}, or leave {option('deadline')} out",
        )
    blocking_s = scenario.one(Checkpointing).blocking_s
    if days is not None and blocking_s is not None and blocking_s >= days * DAY_S:
        raise ScenarioError(
            f"a checkpoint stops the run for {fmt(blocking_s, 's')}, and it is over after {fmt(days * DAY_S, 's')}",
            field="blocking",
            hint=f"a shorter {option('blocking')}, or more {option('days')}",
        )
    check_checkpoint(scenario)

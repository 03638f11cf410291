"""Verbs that take a training layout: one that cannot run is refused before the rooms that compute are loaded."""

from __future__ import annotations

from datahall.answer import Answer
from datahall.answers.reply import Traced
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.training import TrainingLayout
from datahall.training.layout.asked import laid_out
from datahall.training.layout.file import read_layout


def show_memory(scenario: Scenario) -> Answer:
    """Peak memory of one chip of every stage of a training layout; exit code 1 where it does not fit."""
    _check(scenario)
    from datahall.answers.training import memory

    return memory.show_memory(scenario)


def simulate_train(scenario: Scenario) -> Traced:
    """One step: time, MFU, bubble, exposed and hidden exchange, memory, and the closed form beside it."""
    _check(scenario)
    from datahall.answers.training import simulation

    return simulation.simulate_train(scenario)


def _check(scenario: Scenario) -> None:
    """A layout file can be read; how it cuts the layers only the rooms say."""
    file = scenario.one(TrainingLayout).file
    if file:
        read_layout(file)
    else:
        laid_out(scenario)

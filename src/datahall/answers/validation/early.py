"""Files to score, looked at before the rooms that predict their rows are loaded."""

from __future__ import annotations

from pathlib import Path

from datahall.errors import DocumentError, Problem
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.views import Files


def check_files(scenario: Scenario) -> None:
    """Refuse files that cannot be read."""
    for name in scenario.one(Files).data:
        try:
            with Path(name).open("rb"):
                pass
        except OSError as error:
            raise DocumentError(name, [Problem(name, f"cannot be read: {error.strerror}")]) from error

"""Entries of one's own: a file is checked and copied into their catalogue."""

from __future__ import annotations

from pathlib import Path

from datahall.answer import Answer
from datahall.answers.follow import follow
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.views import Files


def catalog_add(scenario: Scenario) -> Answer:
    """Check a TOML file and copy it into your own folder, or the one that is named; problems are raised all at once."""
    asked = scenario.one(Files)
    names = scenario.catalog.add(Path(asked.file), replace=asked.replace)
    shows = [
        follow(scenario, f"show {kind}", {kind: name})
        for kind, _, name in (entry.partition(" ") for entry in names)
        if kind in {"chip", "model"}
    ]
    return Answer(
        kind="add",
        headline=f"Added {', '.join(names)} to {scenario.catalog.own_folder}.",
        results={"num_entries": len(names)},
        next_commands=tuple(shows[:3]),
    )

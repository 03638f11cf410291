"""Runs of cached blocks by when they were last used: lists inside the table of runs, whose ends stand in a record."""

from __future__ import annotations

import numpy as np

from datahall.compiled import inline
from datahall.inference.simulation.state import NONE, Records


@inline
def insert(runs: Records, ends: np.void, run: int, older: int, newer: int) -> None:
    """Put a run between two neighbours of the list whose `oldest` and `newest` are in `ends`; −1: beyond its end."""
    runs[run]["older"], runs[run]["newer"] = older, newer
    if older == NONE:
        ends["oldest"] = run
    else:
        runs[older]["newer"] = run
    if newer == NONE:
        ends["newest"] = run
    else:
        runs[newer]["older"] = run


@inline
def remove(runs: Records, ends: np.void, run: int) -> None:
    """Take a run out of its list."""
    older, newer = runs[run]["older"], runs[run]["newer"]
    if older == NONE:
        ends["oldest"] = newer
    else:
        runs[older]["newer"] = newer
    if newer == NONE:
        ends["newest"] = older
    else:
        runs[newer]["older"] = older

"""A list of cache entries by when they were last used, inside the table of entries: the ends stand in a record."""

from __future__ import annotations

import numpy as np

from datahall.compiled import inline
from datahall.inference.simulation.state import NONE, Records


@inline
def append(entries: Records, ends: np.void, entry: int) -> None:
    """Put an entry behind all others of the list whose `oldest` and `newest` are in `ends`."""
    entries[entry]["older"], entries[entry]["newer"] = ends["newest"], NONE
    if ends["newest"] == NONE:
        ends["oldest"] = entry
    else:
        entries[ends["newest"]]["newer"] = entry
    ends["newest"] = entry


@inline
def remove(entries: Records, ends: np.void, entry: int) -> None:
    """Take an entry out of its list."""
    older, newer = entries[entry]["older"], entries[entry]["newer"]
    if older == NONE:
        ends["oldest"] = newer
    else:
        entries[older]["newer"] = newer
    if newer == NONE:
        ends["newest"] = older
    else:
        entries[newer]["older"] = older

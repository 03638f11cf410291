"""What requests have in common: the prompt tokens that a cache without limits would already hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from datahall.workload.traffic.requests import Ints, Requests


def reusable_tokens(requests: Requests) -> Ints:
    """Tokens at the start of each prompt that an earlier row of these had, never the whole prompt.

    A later turn finds the whole turn before it and its answer; an opening finds the prefix of its group if the group
    was seen; a row with block keys finds its leading blocks.  An upper bound: a real cache forgets.
    """
    found = _leading_blocks(requests) if requests.block_start.size else _prefixes(requests)
    return np.minimum(found, requests.prompt - 1)


def _prefixes(requests: Requests) -> Ints:
    rows = np.arange(len(requests))
    seen = (requests.group >= 0) & ~_first_rows(requests.group, rows)
    found = np.where(seen, requests.shared, 0)
    later = np.flatnonzero(requests.after >= 0)
    before = requests.after[later]
    found[later] = requests.prompt[before] + requests.output[before]
    return found


def _leading_blocks(requests: Requests) -> Ints:
    counts = np.diff(requests.block_start)
    row = np.repeat(np.arange(counts.size), counts)
    new = _first_rows(requests.blocks, row)
    place = np.arange(requests.blocks.size) - np.repeat(requests.block_start[:-1], counts)
    leading = counts.copy()
    np.minimum.at(leading, row[new], place[new])
    return leading * requests.block_tokens


def _first_rows(keys: Ints, row: Ints) -> NDArray[np.bool_]:
    """Whether no earlier row has this key."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return np.asarray(row[first][inverse] == row)

"""How often, at what share of the bandwidth: what the times of a step and its figures both read.

A layer exchanges in forward and in backward, and in forward again where that is recomputed whole.
"""

from __future__ import annotations

from typing import NamedTuple

STREAM_SHARE = 0.8  # of the datasheet's bandwidth that element-wise work reaches
ACCUMULATION_SHARE = 0.9  # and adding weight gradients up
WAYS = 2.0  # a message between stages goes forward, another comes back


class Passes(NamedTuple):
    """How often a layer exchanges something for one micro-batch."""

    forward: float
    backward: float

    def times(self, *, full: bool) -> float:
        """Forward and backward together; `full`: forward runs again before backward.

        >>> BLOCKS.times(full=False), BLOCKS.times(full=True)
        (4.0, 6.0)
        """
        return self.forward * (2.0 if full else 1.0) + self.backward


BLOCKS = Passes(2.0, 2.0)  # all-reduces: one after each of the two blocks
EXPERT_GROUPS = Passes(1.0, 1.0)  # tokens gathered before experts that are cut, results reduced behind
RING = Passes(1.0, 2.0)  # keys and values passed round; backward passes them and their gradients
HEADS = Passes(1.0, 1.0)  # heads for tokens and back

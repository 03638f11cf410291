"""Numbers of chips near to one asked for that some layout divides."""

from __future__ import annotations

from typing import NamedTuple

from datahall.training.layout.space import Options, layout_space
from datahall.training.step.step import Job


class Nearest(NamedTuple):
    """Numbers of chips that some layout divides, next below and next above; 0 where there is none near."""

    below: int
    above: int


PLAIN = Options(zero=(1,), micro_batch=(1,), recompute=("none",))
MOST_TRIED = 512


def nearest_chips(job: Job, num_chips: int) -> Nearest:
    """Chips nearest to a number on which the job has a legal layout at all."""

    def first(counts: range) -> int:
        return next((count for count in counts if len(layout_space(job, count, PLAIN))), 0)

    below = first(range(num_chips - 1, max(0, num_chips - MOST_TRIED), -1))
    return Nearest(below, first(range(num_chips + 1, num_chips + MOST_TRIED)))

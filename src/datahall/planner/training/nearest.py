"""Numbers of chips, and global batches, near to those asked for that some layout divides."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from datahall.cluster.cluster import Cluster
from datahall.planner.training.candidate import Candidate
from datahall.planner.training.fewer import plain
from datahall.training.layout.search import Search, search
from datahall.training.layout.space import Options, divisors, layout_space
from datahall.training.step.step import Job


class Nearest(NamedTuple):
    """Numbers of chips that some layout divides, next below and next above; 0 where there is none near."""

    below: int
    above: int


PLAIN = Options(zero=(1,), micro_batch=(1,), recompute=("none",))
MOST_TRIED = 512
MOST_BATCHES = 12


def nearest_chips(job: Job, num_chips: int) -> Nearest:
    """Chips nearest to a number on which the job has a legal layout at all."""

    def first(counts: range) -> int:
        return next((count for count in counts if len(layout_space(job, count, PLAIN))), 0)

    below = first(range(num_chips - 1, max(0, num_chips - MOST_TRIED), -1))
    return Nearest(below, first(range(num_chips + 1, num_chips + MOST_TRIED)))


def nearest_batch(found: Search, chosen: Candidate, cluster: Cluster) -> int:
    """The global batch nearest to that of a search with which all chips of a cluster train faster than the chosen.

    As many sequences in less time, in closed form; 0 where none is near.
    """
    job, size = found.job, found.job.global_batch
    multiples = {
        replicas * (size // replicas + more) for replicas in divisors(cluster.num_chips) for more in (0, 1)
    }
    near = sorted(multiples - {0, size}, key=lambda batch: (abs(batch - size), batch))
    for batch in near[:MOST_BATCHES]:
        there = search(
            msgspec.structs.replace(job, global_batch=batch),
            cluster,
            found.framework,
            options=plain(found.options),
            books=found.books,
        )
        if there.num_fitting and batch / there.step_s[there.order[0]] > size / chosen.closed_step_s:
            return batch
    return 0

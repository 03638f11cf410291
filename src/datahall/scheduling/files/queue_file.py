"""What a file of jobs says: the jobs, what it is, and the rows that are no jobs of a queue."""

from __future__ import annotations

import msgspec
import numpy as np

from datahall.scheduling.files.table import LeftOut
from datahall.scheduling.jobs import Jobs


class QueueFile(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs in the order that they were submitted; times count from the first."""

    path: str
    title: str  # whose format it is
    jobs: Jobs
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def num_left_out(self) -> int:
        """Rows that are no jobs of a queue."""
        return sum(one.rows for one in self.left_out)

    @property
    def has_starts(self) -> bool:
        """Whether it says when jobs started."""
        return bool(np.isfinite(self.jobs.start_s).all())

    @property
    def peak_chips(self) -> int:
        """The most chips that its jobs held at once, by its own starts; of none, those of the largest job."""
        jobs = self.jobs
        largest = int(jobs.chips.max())
        if not self.has_starts:
            return largest
        times = np.concatenate([jobs.start_s, jobs.start_s + jobs.run_s])
        change = np.concatenate([jobs.chips, -jobs.chips])
        order = np.lexsort((change, times))  # of one moment, ends first
        return max(largest, int(np.cumsum(change[order]).max()))

"""Jobs of a queue as columns: what each needs, for how long, since when, and who it is of."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.scheduling.loop.state import Floats, Ints

Bools = NDArray[np.bool_]


class Jobs(msgspec.Struct, frozen=True, kw_only=True):
    """Columns over jobs in the order that they were submitted, each by the clock of whoever says it.

    A job without a limit has its own run time for one.  `start_s` is when a trace says it started; NaN where it says
    nothing.
    """

    names: tuple[str, ...]
    users: tuple[str, ...]  # by number
    submit_s: Floats
    run_s: Floats
    limit_s: Floats
    start_s: Floats
    chips: Ints
    nodes: Ints  # that it asks for; 0: as few as can be
    priority: Floats
    user: Ints
    serving: Bools
    preemptible: Bools
    gang: Bools
    checkpoint_s: Floats  # work between two checkpoints; inf: there are none
    network_fraction: Floats  # of its time, where it lies as close as can be

    @property
    def num(self) -> int:
        return int(self.submit_s.size)

    def taken(self, rows: NDArray[np.int64] | Bools) -> Jobs:
        """Some of them, in the order of the rows."""
        index = np.arange(self.num)[rows]
        columns = {
            name: value[index]
            for name in self.__struct_fields__
            if isinstance(value := getattr(self, name), np.ndarray)
        }
        return msgspec.structs.replace(self, names=tuple(self.names[one] for one in index), **columns)

    @property
    def in_order(self) -> Jobs:
        """In the order that they were submitted."""
        return self.taken(np.argsort(self.submit_s, kind="stable"))

    @property
    def from_the_first(self) -> Jobs:
        """In that order, with times that count from the first submission, as of a dump with dates."""
        found = self.in_order
        return msgspec.structs.replace(
            found, submit_s=found.submit_s - found.first_s, start_s=found.start_s - found.first_s
        )

    @property
    def first_s(self) -> float:
        """When the first of them is submitted, where they stand in order."""
        return float(self.submit_s[:1].sum())

    @property
    def is_cut_off(self) -> Bools:
        """Which of them take longer than they say that they do at most, and are stopped then."""
        return self.run_s > self.limit_s

    @property
    def keeps_nothing(self) -> bool:
        """Whether all of them lose all that they did when they are stopped."""
        return bool(np.isinf(self.checkpoint_s).all() and not self.serving.any())


def jobs_of(
    submit_s: Floats,
    run_s: Floats,
    chips: Ints,
    *,
    names: tuple[str, ...] = (),
    users: tuple[str, ...] = ("",),
    **columns: NDArray[Any],
) -> Jobs:
    """Jobs of columns; what is not given is as usual: gangs of training that run to their end, of one user.

    >>> two = jobs_of(np.array([5.0, 3.0]), np.array([60.0, 60.0]), np.array([8, 16]))
    >>> two.chips.tolist(), two.in_order.chips.tolist(), two.in_order.submit_s.tolist()
    ([8, 16], [16, 8], [3.0, 5.0])
    >>> two.from_the_first.submit_s.tolist()
    [0.0, 2.0]
    """
    num = submit_s.size
    run = run_s.astype(np.float64)
    usual: dict[str, NDArray[Any]] = {
        "limit_s": run,
        "start_s": np.full(num, np.nan),
        "nodes": np.zeros(num, np.int64),
        "priority": np.zeros(num),
        "user": np.zeros(num, np.int64),
        "serving": np.zeros(num, np.bool_),
        "preemptible": np.zeros(num, np.bool_),
        "gang": np.ones(num, np.bool_),
        "checkpoint_s": np.full(num, np.inf),
        "network_fraction": np.zeros(num),
    }
    return Jobs(
        names=names or tuple(f"job {one}" for one in range(num)),
        users=users,
        submit_s=submit_s.astype(np.float64),
        run_s=run,
        chips=chips.astype(np.int64),
        **{**usual, **columns},
    )

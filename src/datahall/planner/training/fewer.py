"""A run that is faster on fewer chips than there are: what divides badly costs more than what stays idle.

Degrees divide the chips and replicas divide the batch, so that 16,000 chips may be worse than 15,360 of them.  Numbers
below the one that is asked for are ranked in closed form, by plain layouts; the best is then searched like any other.
"""

from __future__ import annotations

import msgspec

from datahall.training.layout.search import search
from datahall.training.layout.space import Options, divisors
from datahall.training.memory.bookkeeping import Bookkeeping
from datahall.training.setup import Machine, built
from datahall.training.step.framework import Framework
from datahall.training.step.step import Job

LEAST_USED = 0.5  # of the chips: with fewer a run was never seen to be faster
ROUND = (1, 3, 5, 7)  # times a power of two: what models divide by


def faster_on(
    job: Job, machine: Machine, num_chips: int, framework: Framework, books: Bookkeeping, options: Options
) -> list[int]:
    """Numbers of chips below one on which a plain layout is faster than on all of them, fastest first."""
    plain = msgspec.structs.replace(
        options, zero=(1, 3), micro_batch=(1,), shard=(0,), etp=(0,), context=("ring",)
    )
    step_s: dict[int, float] = {}
    for count in (num_chips, *fewer(job, num_chips)):
        cluster = built(machine, count)
        found = search(job, cluster, framework, options=plain, books=books) if cluster is not None else None
        if found is not None and found.num_fitting:
            step_s[count] = float(found.step_s[found.order[0]])
    on_all_s = step_s.pop(num_chips, float("inf"))
    return sorted((count for count in step_s if step_s[count] < on_all_s), key=lambda count: step_s[count])


def fewer(job: Job, num_chips: int) -> list[int]:
    """Numbers of chips below one that replicas which divide the batch can be made of, most first.

    For each number of replicas the most chips that it leaves to one of them, and the roundest.
    """
    found = set()
    for replicas in divisors(job.global_batch):
        most = num_chips // replicas
        found |= {replicas * most}
        for factor in ROUND:
            if factor <= most:
                found |= {replicas * factor << (most // factor).bit_length() - 1}
    return sorted((count for count in found if LEAST_USED * num_chips < count < num_chips), reverse=True)

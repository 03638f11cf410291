"""A run that is faster on fewer chips than there are: what divides badly costs more than what stays idle.

Degrees divide the chips and replicas divide the batch, so that 16,000 chips may be worse than 15,360 of them.  Numbers
below the one that is asked for are ranked in closed form: all by plain layouts, the nearest of them by every layout.
"""

from __future__ import annotations

import msgspec

from datahall.training.layout.search import Search, search
from datahall.training.layout.space import Options, divisors
from datahall.training.memory.bookkeeping import Bookkeeping
from datahall.training.setup import Machine, built
from datahall.training.step.framework import Framework
from datahall.training.step.step import Job

LEAST_USED = 0.5  # of the chips: with fewer a run was never seen to be faster
ROUND = (1, 3, 5, 7)  # times a power of two: what models divide by
MOST_SEARCHED = 4  # numbers of chips whose layouts are searched whole
GAIN = 0.1  # of the step of a plain layout: no other was seen to save more
OFF = 0.02  # of a step: by so much closed form and simulation differ in 57 of 59 drawn plans (`tests/drawn`)


def plain(options: Options) -> Options:
    """A small part of what may be tried that holds the fastest layout, or one near to it."""
    return msgspec.structs.replace(options, zero=(1, 3), shard=(0,), etp=(0,), context_exchange=("ring",))


def faster_on(
    job: Job,
    machine: Machine,
    num_chips: int,
    framework: Framework,
    books: Bookkeeping,
    options: Options,
    *,
    than_s: float,
    above: int,
) -> list[Search]:
    """Searches on fewer chips, though more than `above`, whose step may turn out faster than one, fastest first.

    The closed form promises, the simulation decides: what is promised a little more may be the faster one.
    """
    most_s = than_s * (1.0 + OFF)
    hopeful: list[tuple[float, Search]] = []
    for count in fewer(job, num_chips):
        cluster = built(machine, count) if count > above else None
        if cluster is None:
            continue
        found = search(job, cluster, framework, options=plain(options), books=books)
        if found.num_fitting and promised_s(found) * (1.0 - GAIN) < most_s:
            hopeful.append((promised_s(found), found))
    hopeful.sort(key=lambda one: one[0])
    searched = [
        search(job, found.cluster, framework, options=options, books=books)
        for _, found in hopeful[:MOST_SEARCHED]
    ]
    return sorted((found for found in searched if promised_s(found) < most_s), key=promised_s)


def promised_s(found: Search) -> float:
    """The shortest step in closed form [s]; infinite where nothing fits."""
    return float(found.step_s[found.order[0]]) if found.num_fitting else float("inf")


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

"""What happens when a working set outgrows a level of the memory hierarchy.

A program reads its working set W over and over.  While W fits in a level of capacity C it runs at that
level's
bandwidth b.  Past it, three things can happen:

    unmanaged   least-recently-used eviction of a cyclic scan keeps nothing that is needed: W / b_next
    pinned      what fits stays, the rest comes from below:                   C / b + (W − C) / b_next
    prefetch    the rest is fetched while what fits is worked on:        max(W / b, (W − C) / b_next)

So the cliff is as steep as the ratio of two bandwidths (2–3 from cache to main memory, 60–90 from main
memory to the
host), and prefetching hides it only while (W − C)/W stays below b_next/b.

Reference: Denning (1968), The working set model; Mattson et al. (1970) for the cyclic scan under LRU.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.catalog.entries.chip import Chip, Level
from datahall.errors import ScenarioError, UnsupportedError
from datahall.workload.operator import Number

Policy = Literal["unmanaged", "pinned", "prefetch"]
POLICIES: tuple[str, ...] = get_args(Policy)
OFFLOADS = ("none", "host", "nvme")


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One usable level: how much it holds, how fast it is, how much slower the next one is."""

    name: str
    capacity_bytes: float
    bytes_per_s: float
    drop_ratio: float  # this level's bandwidth over the next one's; NaN at the bottom


class Cliff(msgspec.Struct, frozen=True, kw_only=True):
    """Time and bandwidth of scanning working sets, as columns."""

    sizes_bytes: NDArray[np.float64]
    time_s: NDArray[np.float64]
    bytes_per_s: NDArray[np.float64]
    level: tuple[str, ...]  # where each working set lies, "none" where it fits nowhere


def steps(chip: Chip, offload: str = "none") -> tuple[Step, ...]:
    """The levels a working set can lie in, fastest first.

    On-chip levels whose bandwidth nobody published are left out.  `offload` adds the host's memory over
    its link,
    and then NVMe; the host's capacity is the server's business and taken as unbounded here.
    """
    if offload not in OFFLOADS:
        raise ScenarioError(f'"{offload}" is not a place to offload to', hint=f"one of {', '.join(OFFLOADS)}")
    wanted = {"none": (), "host": ("host",), "nvme": ("host", "nvme")}[offload]
    usable = [one for one in chip.levels if _on_chip(one) or one.name in wanted]
    for name in wanted:
        if not any(one.name == name and math.isfinite(one.bytes_per_s) for one in usable):
            raise UnsupportedError(f"the bandwidth of {chip.title} to its {name} is not known")
    known = [one for one in usable if math.isfinite(one.bytes_per_s)]
    if not known:
        raise UnsupportedError(f"no memory level of {chip.title} has a published bandwidth")
    return tuple(_step(chip, known, index, offload) for index in range(len(known)))


def _on_chip(level: Level) -> bool:
    return level.name not in {"host", "nvme", "registers"}  # a scan cannot live in registers


def _step(chip: Chip, levels: list[Level], index: int, offload: str) -> Step:
    level = levels[index]
    rate = _rate(chip, level)
    below = _rate(chip, levels[index + 1]) if index + 1 < len(levels) else math.nan
    capacity = level.capacity_bytes
    if level.name == "memory" and math.isfinite(chip.visible_memory_bytes):
        capacity = chip.visible_memory_bytes
    if level.name == "host":
        capacity = math.inf if offload == "host" else 2e12
    return Step(name=level.name, capacity_bytes=capacity, bytes_per_s=rate, drop_ratio=rate / below)


def _rate(chip: Chip, level: Level) -> float:
    if level.name == "host" and math.isfinite(chip.measured_host_bytes_per_s):
        return chip.measured_host_bytes_per_s
    return level.bytes_per_s


def cliff(chip: Chip, sizes_bytes: Number, *, policy: str = "unmanaged", offload: str = "none") -> Cliff:
    """Time of one scan over working sets of the given sizes.

    >>> from datahall.catalog import load
    >>> h100 = load().chip("h100-sxm")
    >>> fits, spills = cliff(h100, np.array([40e6, 60e6])).bytes_per_s
    >>> bool(fits > 1.5 * spills)
    True
    """
    if policy not in POLICIES:
        raise ScenarioError(f'"{policy}" is not a policy', hint=f"one of {', '.join(POLICIES)}")
    sizes = np.atleast_1d(np.asarray(sizes_bytes, dtype=np.float64))
    if not np.all((sizes > 0) & np.isfinite(sizes)):
        raise ScenarioError("a working set must be finite and larger than zero bytes", hint='e.g. "2 GB"')
    ladder = steps(chip, offload)
    time_s = np.full(sizes.shape, np.nan)
    home = np.full(sizes.shape, -1)
    for index, step in enumerate(ladder):
        here = np.isnan(time_s) & (sizes <= step.capacity_bytes)
        time_s[here] = _scan_s(sizes[here], ladder, index, policy)
        home[here] = index
    names = tuple(ladder[place].name if place >= 0 else "none" for place in home)
    return Cliff(sizes_bytes=sizes, time_s=time_s, bytes_per_s=sizes / time_s, level=names)


def _scan_s(
    sizes: NDArray[np.float64], ladder: tuple[Step, ...], index: int, policy: str
) -> NDArray[np.float64]:
    """Scan of sets that lie in level `index`: what the level above can keep is served from there."""
    slow = ladder[index]
    if index == 0 or policy == "unmanaged":
        return sizes / slow.bytes_per_s
    fast = ladder[index - 1]
    spilled = sizes - fast.capacity_bytes
    if policy == "pinned":
        return fast.capacity_bytes / fast.bytes_per_s + spilled / slow.bytes_per_s
    return np.maximum(sizes / fast.bytes_per_s, spilled / slow.bytes_per_s)

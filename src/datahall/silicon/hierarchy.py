"""What happens when a working set outgrows a level of the memory hierarchy.

A program reads its working set W over and over.  While W fits in a level of capacity C it runs at that
level's bandwidth b.  Past it, three things can happen:

    unmanaged   least-recently-used eviction of a cyclic scan keeps nothing that is needed: W / b_next
    pinned      what fits stays, the rest comes from below:                   C / b + (W − C) / b_next
    prefetch    the rest is fetched while what fits is worked on:        max(W / b, (W − C) / b_next)

So the cliff is as steep as the ratio of two bandwidths (2–3 from cache to main memory, 60–90 from main
memory to the host), and prefetching hides it only while (W − C)/W stays below b_next/b.

Reference: Denning (1968), The working set model; Mattson et al. (1970) for the cyclic scan under LRU.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.breakdown import Breakdown, assumed, difference, fact, given, maximum, quotient, total
from datahall.catalog.entries.chip import Chip, Level
from datahall.catalog.fact import Fact
from datahall.errors import ScenarioError, UnsupportedError
from datahall.scenario.words import TIERS
from datahall.workload.operator import Number

Policy = Literal["unmanaged", "pinned", "prefetch"]
CLIFF_POLICIES: tuple[str, ...] = get_args(Policy)
OFFLOADED_TO = ("none", *TIERS)
HOST_BYTES = 2e12  # what a server's memory is taken to hold
SMALLEST_BYTES = 1e6  # where curves begin, unless a level is smaller
POINTS_PER_DECADE = 40


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One usable level: how much it holds, how fast it is, how much slower the next one is."""

    name: str
    capacity_bytes: float
    bytes_per_s: float
    drop_ratio: float  # this level's bandwidth over the next one's; NaN at the bottom

    def fill_ratio(self, size_bytes: float) -> float:
        """How many times its capacity a working set is."""
        return size_bytes / self.capacity_bytes

    def chips_to_hold(self, size_bytes: float) -> int:
        """Chips over which a working set must be spread to fit in this level of each."""
        return math.ceil(self.fill_ratio(size_bytes))

    def filled_bytes(self, ratio: float) -> float:
        """A working set of so many times its capacity [B]."""
        return ratio * self.capacity_bytes


class Cliff(msgspec.Struct, frozen=True, kw_only=True):
    """Time and bandwidth of scanning working sets, as columns."""

    sizes_bytes: NDArray[np.float64]
    time_s: NDArray[np.float64]
    bytes_per_s: NDArray[np.float64]
    level: tuple[str, ...]  # where each working set lies, "none" where it fits nowhere


def steps(chip: Chip, offload: str = "none") -> tuple[Step, ...]:
    """The levels a working set can lie in, fastest first.

    On-chip levels whose bandwidth or size nobody published are left out.  `offload` adds where what does not fit is
    kept: the host's memory over its link, or NVMe.
    """
    if offload not in OFFLOADED_TO:
        raise ScenarioError(
            f'"{offload}" is not a place to offload to', hint=f"one of {', '.join(OFFLOADED_TO)}"
        )
    usable = [one for one in chip.levels if _on_chip(one) or one.name == offload]
    if offload != "none":
        _check_known(chip, offload)
    known = [one for one in usable if math.isfinite(one.bytes_per_s) and math.isfinite(_capacity(chip, one))]
    if not known:
        raise UnsupportedError(f"no memory level of {chip.title} has a published bandwidth")
    return tuple(_step(chip, known, index) for index in range(len(known)))


def _check_known(chip: Chip, place: str) -> None:
    """Refuse a place off the chip that nobody published the speed or the size of."""
    found = next((one for one in chip.levels if one.name == place), None)
    if found is None or not math.isfinite(found.bytes_per_s):
        raise UnsupportedError(f"the bandwidth of {chip.title} to its {place} is not known")
    if math.isnan(_capacity(chip, found)):
        raise UnsupportedError(f"the capacity of the {place} of {chip.title} is not known")


def holding_places(chip: Chip, size_bytes: float) -> tuple[str, ...]:
    """Where off the chip a working set would fit, nearest first."""
    known = [one for one in chip.levels if one.name in TIERS and math.isfinite(one.bytes_per_s)]
    return tuple(
        place for place in TIERS for one in known if one.name == place and size_bytes <= _capacity(chip, one)
    )


def _on_chip(level: Level) -> bool:
    return level.name not in {"host", "nvme", "registers"}  # a scan cannot live in registers


def _step(chip: Chip, levels: list[Level], index: int) -> Step:
    level = levels[index]
    rate = _rate(chip, level)
    below = _rate(chip, levels[index + 1]) if index + 1 < len(levels) else math.nan
    capacity = _capacity(chip, level)
    return Step(name=level.name, capacity_bytes=capacity, bytes_per_s=rate, drop_ratio=rate / below)


def _capacity(chip: Chip, level: Level) -> float:
    if level.name == "memory" and math.isfinite(chip.visible_memory_bytes):
        return chip.visible_memory_bytes
    return HOST_BYTES if level.name == "host" else level.capacity_bytes


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
    if policy not in CLIFF_POLICIES:
        raise ScenarioError(f'"{policy}" is not a policy', hint=f"one of {', '.join(CLIFF_POLICIES)}")
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


class Curves(msgspec.Struct, frozen=True, kw_only=True):
    """Bandwidth over the size of a working set, for each policy [B/s]."""

    sizes_bytes: tuple[float, ...]
    rates_bytes_per_s: dict[Policy, tuple[float, ...]]

    def holds(self, size_bytes: float) -> bool:
        """Whether a size lies on the curves."""
        return self.sizes_bytes[0] <= size_bytes <= self.sizes_bytes[-1] * (1 + 1e-6)


def curves(chip: Chip, offload: str = "none") -> Curves:
    """The cliffs of a chip, from well inside its first level to the end of its last."""
    held = [step.capacity_bytes for step in steps(chip, offload)]
    smallest, largest = min(SMALLEST_BYTES, min(held) / 4), max(held)
    decades = math.log10(largest / smallest)
    sizes = np.geomspace(smallest, largest * (1 - 1e-9), int(decades * POINTS_PER_DECADE))
    return Curves(
        sizes_bytes=tuple(sizes.tolist()),
        rates_bytes_per_s={
            policy: tuple(cliff(chip, sizes, policy=policy, offload=offload).bytes_per_s.tolist())
            for policy in get_args(Policy)
        },
    )


class Scan(msgspec.Struct, frozen=True, kw_only=True):
    """One working set: where it lies, how fast it is read, and the time of one scan as a figure."""

    size_bytes: float
    level: str
    bytes_per_s: float
    slowdown_ratio: float  # the bandwidth of the fastest level over this
    figure: Breakdown


def scan(chip: Chip, size_bytes: float, *, policy: str = "unmanaged", offload: str = "none") -> Scan | None:
    """One scan of a working set; None where it fits nowhere."""
    found = cliff(chip, size_bytes, policy=policy, offload=offload)
    if found.level[0] == "none":
        return None
    ladder, rate = steps(chip, offload), float(found.bytes_per_s[0])
    return Scan(
        size_bytes=size_bytes,
        level=found.level[0],
        bytes_per_s=rate,
        slowdown_ratio=ladder[0].bytes_per_s / rate,
        figure=_scan_figure(chip, ladder, found.level[0], size_bytes, policy),
    )


def _scan_figure(
    chip: Chip, ladder: tuple[Step, ...], level: str, size_bytes: float, policy: str
) -> Breakdown:
    place = next(index for index, step in enumerate(ladder) if step.name == level)
    whole, name = given("working set", size_bytes, "bytes", field="working_set"), "one scan"
    here = _rate_figure(chip, ladder[place])
    if place == 0 or policy == "unmanaged":
        return quotient(name, whole, here, "s").with_note(basis="datasheet only")
    above = ladder[place - 1]
    rest = difference(f"what does not fit in {level_words(above.name)}", whole, _capacity_figure(chip, above))
    if policy == "pinned":
        kept = quotient("reading what is kept", _capacity_figure(chip, above), _rate_figure(chip, above), "s")
        return total(name, (kept, quotient("reading the rest", rest, here, "s"))).with_note(
            basis="datasheet only"
        )
    worked = quotient("working on it", whole, _rate_figure(chip, above), "s")
    fetched = quotient("fetching what does not fit", rest, here, "s")
    return maximum(name, (worked, fetched)).with_note(basis="datasheet only")


def _rate_figure(chip: Chip, step: Step) -> Breakdown:
    name = f"bandwidth of {level_words(step.name)}"
    known = chip.level(step.name).facts.get("bytes_per_s")
    own = {"host": "measured_host_bytes_per_s", "memory": "memory_bytes_per_s"}.get(step.name, "")
    for stated in (chip.facts.get(own), known, chip.facts.get(f"{step.name}_bytes_per_s")):
        if stated is not None and stated.value == step.bytes_per_s:
            return _stated(name, stated)
    return assumed(name, step.bytes_per_s, "bytes_per_s", f"{chip.title} was made by hand, without a source")


def _capacity_figure(chip: Chip, step: Step) -> Breakdown:
    name = f"capacity of {level_words(step.name)}"
    known = chip.level(step.name).facts.get("capacity_bytes")
    for stated in (chip.facts.get("visible_memory_bytes"), chip.facts.get("memory_bytes"), known):
        if stated is not None and stated.value == step.capacity_bytes:
            return _stated(name, stated)
    return assumed(name, step.capacity_bytes, "bytes", "what a server's memory is taken to hold")


def _stated(name: str, stated: Fact) -> Breakdown:
    return fact(name, stated.value, stated.unit, stated.source, note=stated.note)


LEVEL_WORDS = {
    "shared": "shared memory",
    "l1": "L1",
    "l2": "L2",
    "l3": "L3",
    "llc": "LLC",
    "sram": "SRAM",
    "nvme": "NVMe",
    "host": "host memory",
    "memory": "main memory",
}


def level_words(name: str) -> str:
    """What a level of the hierarchy is called."""
    return LEVEL_WORDS.get(name, name)

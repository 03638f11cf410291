"""What keeps chips at work that storage starves: each change computed by the model that found the stall.

Changes come in the order of what they cost: settings, then how data lies, then memory that hosts have, then hardware.
Of each the least that is enough is taken, or the most that helps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil

import msgspec

from datahall.counted import counted
from datahall.datapath.pipeline import Pipeline, Store
from datahall.datapath.scaling import largest
from datahall.datapath.supply import supply
from datahall.units import fmt

MOST_PREFETCH, MOST_READERS, MOST_CORES, MOST_GBIT = 64, 256, 4096, 8000
MOST_INTERVAL_S = 2**17  # a day and a half
MOST_UNITS, MOST_DRIVES = 4096, 32  # that hosts share, and in a host
GAIN = 1e-3  # of utilisation: a change that brings less is none
WORTH = 0.05  # of what it is now: one that brings less is one of several only where the others are not enough


SETTING, REWRITE, MEMORY, HARDWARE = "a setting", "data written anew", "memory of the hosts", "hardware"
COSTS = (SETTING, REWRITE, MEMORY, HARDWARE)  # the cheapest first


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """A change, the inputs that make it, and the utilisation that it leads to."""

    what: str
    changes: dict[str, str | int]  # inputs, as they are said
    costs: str  # what kind of change it is
    value: int = 0  # how much of it
    utilisation_fraction: float
    gain_fraction: float  # of utilisation

    @property
    def rank(self) -> int:
        """Its place among changes by what they cost."""
        return COSTS.index(self.costs)


class _Change(msgspec.Struct, frozen=True):
    """One way to change a job and its store, more or less of it."""

    costs: str
    name: str
    values: tuple[int, ...]  # how much, from little to much
    make: Callable[[Pipeline, Store, int], tuple[Pipeline, Store]]
    say: Callable[[int], tuple[str, dict[str, str | int]]]


def remedies(job: Pipeline, store: Store, promised: float, host_memory_bytes: float) -> tuple[Remedy, ...]:
    """Changes that help, cheapest first; none where chips work as much as promised."""
    now = supply(job, store).utilisation_fraction
    if now >= promised:
        return ()
    changes = list(_changes(job, store, host_memory_bytes))
    alone = [_least(job, store, change, promised) for change in changes]
    helpful = [one for one in alone if one.utilisation_fraction > now + GAIN]
    if not enough(helpful, promised):
        helpful += _together(job, store, changes, promised)
    return tuple(sorted(helpful, key=lambda one: one.rank))


def enough(found: Sequence[Remedy], promised: float) -> Remedy | None:
    """The cheapest change that alone is enough."""
    return next((one for one in found if one.utilisation_fraction >= promised), None)


def _together(job: Pipeline, store: Store, changes: list[_Change], promised: float) -> Iterator[Remedy]:
    """One change on top of the other until they are enough or there are no more; of each no more than is needed."""
    taken: list[tuple[_Change, int]] = []
    now = supply(job, store).utilisation_fraction
    # what helps little alone may help after the others; what helps little even then comes last
    passes = [(change, WORTH) for change in (*changes, *changes, *changes)]
    passes += [(change, 0.0) for change in (*changes, *changes)]
    for change, worth in passes:
        if now >= promised:
            break
        if any(change is other for other, _ in taken):
            continue
        one = _least(*_made(job, store, taken), change, promised)
        if one.utilisation_fraction > max(now + GAIN, now * (1.0 + worth)):
            taken.append((change, one.value))
            now = one.utilisation_fraction
    if len(taken) > 1:
        yield _said(job, store, _trimmed(job, store, taken, min(now, promised)))


def _trimmed(
    job: Pipeline, store: Store, taken: list[tuple[_Change, int]], reached: float
) -> list[tuple[_Change, int]]:
    """The same changes, each as small as the others let it be."""
    for change, value in list(taken):
        others = [one for one in taken if one[0] is not change]
        made = _made(job, store, others)
        if supply(*made).utilisation_fraction >= reached:
            taken = others
        else:
            taken[taken.index((change, value))] = (change, _least(*made, change, reached).value)
    return taken


def _made(job: Pipeline, store: Store, taken: list[tuple[_Change, int]]) -> tuple[Pipeline, Store]:
    for change, value in taken:
        job, store = change.make(job, store, value)
    return job, store


def _said(job: Pipeline, store: Store, taken: list[tuple[_Change, int]]) -> Remedy:
    words = [change.say(value) for change, value in taken]
    found, now = (supply(*made).utilisation_fraction for made in (_made(job, store, taken), (job, store)))
    return Remedy(
        what=" and ".join(what for what, _ in words),
        changes={name: value for _, changes in words for name, value in changes.items()},
        costs=max((change.costs for change, _ in taken), key=COSTS.index),
        utilisation_fraction=found,
        gain_fraction=found - now,
    )


def _least(job: Pipeline, store: Store, change: _Change, promised: float) -> Remedy:
    """The smallest value that is enough, else the largest."""

    def reached(value: int) -> float:
        return supply(*change.make(job, store, value)).utilisation_fraction

    short = largest(lambda place: reached(change.values[place - 1]) < promised, len(change.values))
    value = change.values[min(short, len(change.values) - 1)]
    what, changes = change.say(value)
    found, now = reached(value), supply(job, store).utilisation_fraction
    return Remedy(
        what=what, changes=changes, costs=change.costs, value=value, utilisation_fraction=found,
        gain_fraction=found - now,
    )  # fmt: skip


def _changes(job: Pipeline, store: Store, host_memory_bytes: float) -> Iterator[_Change]:
    yield _Change(
        SETTING, "prefetch", _doubled(job.num_prefetch, MOST_PREFETCH), _prefetch,
        lambda value: (f"{counted(value, 'batch')} ready ahead", {"prefetch_depth": value}),
    )  # fmt: skip
    yield _Change(
        SETTING, "readers", _doubled(job.num_readers, MOST_READERS), _readers,
        lambda value: (f"{value:,} readers for each chip", {"readers": value}),
    )  # fmt: skip
    if job.format == "files":
        yield _Change(
            REWRITE, "shards", (1,), _shards,
            lambda _: ("shards instead of files", {"stored_as": "shards"}),
        )  # fmt: skip
    elif job.shuffle == "random":
        yield _Change(
            SETTING, "buffer", (1,), _shards,
            lambda _: ("shards read through, shuffled in a buffer", {"shuffle": "buffer"}),
        )  # fmt: skip
    if store.checkpoint_bytes:
        yield _Change(
            SETTING, "interval", _doubled(ceil(store.interval_s), MOST_INTERVAL_S), _interval,
            lambda value: (f"a checkpoint every {fmt(value, 's')}", {"checkpoint_every": f"{value} s"}),
        )  # fmt: skip
    yield from _caches(job, host_memory_bytes)
    if not store.storage.is_memory:
        most = MOST_UNITS if store.storage.is_shared else MOST_DRIVES
        yield _Change(
            HARDWARE, "units", _doubled(store.num_units, most), _units,
            lambda value: (
                counted(value, store.storage.unit)
                + ("" if store.storage.is_shared else " in each host"),
                {"units": value},
            ),
        )  # fmt: skip
    if job.prepare_s:
        yield _Change(
            HARDWARE, "cores", _doubled(job.num_cores, MOST_CORES), _cores,
            lambda value: (f"{value:,} cores in each host", {"cores": value}),
        )  # fmt: skip
    if store.storage.is_shared:
        yield _Change(
            HARDWARE, "network", _doubled(round(job.nic_bytes_per_s * 8e-9), MOST_GBIT), _network,
            lambda value: (f"{value:,} Gb/s for each host", {"host_nic": f"{value} Gb/s"}),
        )  # fmt: skip


def _caches(job: Pipeline, host_memory_bytes: float) -> Iterator[_Change]:
    if job.cache_bytes and job.keeping == "lru":
        yield _Change(
            SETTING, "keeping", (1,), _pinned,
            lambda _: ("a part of the data kept in the cache for good", {"keeping": "pinned"}),
        )  # fmt: skip
    room = int(min(host_memory_bytes, job.dataset_bytes) * 1e-9)
    if room * 1e9 > job.cache_bytes:
        yield _Change(
            MEMORY, "cache", tuple(max(1, room * part // 16) for part in range(1, 17)), _cache,
            lambda value: (
                f"{value:,} GB of each host's memory keep a part of the data for good",
                {"cache": f"{value} GB", "keeping": "pinned"},
            ),
        )  # fmt: skip


def _doubled(now: int, most: int) -> tuple[int, ...]:
    """What is more than now, by powers of two."""
    return tuple(2**power for power in range(most.bit_length()) if now < 2**power <= most) or (now,)


def _prefetch(job: Pipeline, store: Store, value: int) -> tuple[Pipeline, Store]:
    return msgspec.structs.replace(job, num_prefetch=value), store


def _readers(job: Pipeline, store: Store, value: int) -> tuple[Pipeline, Store]:
    return msgspec.structs.replace(job, num_readers=value), store


def _shards(job: Pipeline, store: Store, _: int) -> tuple[Pipeline, Store]:
    return msgspec.structs.replace(job, format="shards", shuffle="buffer"), store


def _pinned(job: Pipeline, store: Store, _: int) -> tuple[Pipeline, Store]:
    return msgspec.structs.replace(job, keeping="pinned"), store


def _cache(job: Pipeline, store: Store, value: int) -> tuple[Pipeline, Store]:
    return msgspec.structs.replace(job, cache_bytes=value * 1e9, keeping="pinned"), store


def _interval(job: Pipeline, store: Store, value: int) -> tuple[Pipeline, Store]:
    return job, msgspec.structs.replace(store, interval_s=float(value))


def _units(job: Pipeline, store: Store, value: int) -> tuple[Pipeline, Store]:
    return job, msgspec.structs.replace(store, num_units=value)


def _cores(job: Pipeline, store: Store, value: int) -> tuple[Pipeline, Store]:
    return msgspec.structs.replace(job, num_cores=value), store


def _network(job: Pipeline, store: Store, value: int) -> tuple[Pipeline, Store]:
    return msgspec.structs.replace(job, nic_bytes_per_s=value * 1e9 / 8), store

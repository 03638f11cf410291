"""Collectives as what they send: phases of flows between ranks, repeated in rounds.

`size_bytes` is the whole array, as in nccl-tests.  A phase is one pattern of sends; its rounds follow one
another, each when the one before has arrived.  What a phase costs is for the fabric to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import numpy as np

from datahall.errors import ScenarioError, nearest
from datahall.fabric.topology.graph import Ints


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """In each of `num_rounds` rounds, rank source[i] sends num_bytes to rank target[i], all i at once."""

    name: str
    source: Ints
    target: Ints
    num_bytes: float
    num_rounds: int = 1

    @property
    def sent_bytes(self) -> float:
        """Bytes that all ranks send together."""
        return self.num_bytes * self.num_rounds * self.source.size


Domains = tuple[int, ...]  # ranks of each scale-up domain, in the order of the ranks
Decomposition = Callable[[int, float, Domains], Iterator[Phase]]


def phases(
    collective: str, algorithm: str, num_ranks: int, size_bytes: float, in_domains: int | Domains = 1
) -> tuple[Phase, ...]:
    """What a collective sends; `in_domains` is how many of the ranks each scale-up domain has, one after the other.

    >>> for phase in phases("all-reduce", "two-level", 16, 1e6, 8):
    ...     print(phase.name, phase.num_rounds, phase.num_bytes)
    reduce-scatter in the domain 7 125000.0
    all-reduce across domains 2 62500.0
    all-gather in the domain 7 125000.0
    """
    decompose = DECOMPOSITIONS[checked(collective, algorithm)]
    if num_ranks < 1:
        raise ScenarioError(f"a collective of {num_ranks} ranks", hint="1 or more")
    if not size_bytes >= 0:
        raise ScenarioError(f"a collective of {size_bytes:g} bytes", hint="0 or more")
    if num_ranks == 1:
        return ()
    domains = in_domains if isinstance(in_domains, tuple) else filled(num_ranks, in_domains)
    return tuple(phase for phase in decompose(num_ranks, size_bytes, domains) if phase.num_rounds > 0)


def filled(num_ranks: int, num_in_domain: int) -> Domains:
    """Domains of so many ranks, and one of the rest.

    >>> filled(20, 8)
    (8, 8, 4)
    """
    whole, rest = divmod(num_ranks, max(1, num_in_domain))
    return (max(1, num_in_domain),) * whole + ((rest,) if rest else ())


def checked(collective: str, algorithm: str) -> tuple[str, str]:
    """The pair, if its steps are known; else a `ScenarioError` that names the nearest."""
    known = algorithms(collective)
    if not known:
        names = sorted({name for name, _ in DECOMPOSITIONS})
        close = nearest(collective, names, 1)
        raise ScenarioError(
            f'the steps of collective "{collective}" are not known',
            hint=f"one of {', '.join(names)}" + (f"; did you mean {close[0]}?" if close else ""),
        )
    if algorithm not in known:
        close = nearest(algorithm, known, 1)
        raise ScenarioError(
            f'{collective} has no algorithm "{algorithm}"',
            hint=f"one of {', '.join(known)}" + (f"; did you mean {close[0]}?" if close else ""),
        )
    return collective, algorithm


def algorithms(collective: str) -> tuple[str, ...]:
    """The algorithms whose steps are known, the usual one first."""
    return tuple(algorithm for name, algorithm in DECOMPOSITIONS if name == collective)


def _ranks(num_ranks: int) -> Ints:
    return np.arange(num_ranks, dtype=np.int32)


def _on_all_rails(decompose: Decomposition, *, turning: bool = False) -> Decomposition:
    """The same in as many channels as the smallest domain has ranks, each with its share and its own way in and out.

    Channel c begins a domain at place c, so that each port carries one channel.  A ring leaves a domain at c − 1; it is
    `turning`: it enters the next one there and passes it backwards, and so stays on its rail where all domains have
    as many ranks and their number is even.
    """

    def spread(num_ranks: int, size: float, domains: Domains) -> Iterator[Phase]:
        channels = min(domains)
        if channels < 2 or len(domains) < 2:
            yield from decompose(num_ranks, size, domains)
            return
        members = np.repeat(domains, domains)
        number = np.repeat(np.arange(len(domains)), domains)
        first = np.repeat(np.cumsum(domains) - domains, domains)
        place, channel = _ranks(num_ranks) - first, _ranks(channels)[:, None]
        back = (number % 2 == 1) & turning
        chip = (first + np.where(back, channel - 1 - place, channel + place) % members).astype(np.int32)
        for phase in decompose(num_ranks, size / channels, domains):
            yield msgspec.structs.replace(
                phase, source=chip[:, phase.source].ravel(), target=chip[:, phase.target].ravel()
            )

    return spread


def _ring(name: str, num_rounds_over: int) -> Decomposition:
    def decompose(num_ranks: int, size: float, _: Domains) -> Iterator[Phase]:
        rank = _ranks(num_ranks)
        yield Phase(
            name=name, source=rank, target=(rank + 1) % num_ranks, num_bytes=size / num_ranks,
            num_rounds=num_rounds_over * (num_ranks - 1),
        )  # fmt: skip

    return decompose


def _tree_up(num_ranks: int, size: float, _: Domains) -> Iterator[Phase]:
    """Binomial tree towards rank 0: at step j the odd multiples of 2^j send the whole array down by 2^j."""
    distance = 1
    while distance < num_ranks:
        sender = np.arange(distance, num_ranks, 2 * distance, dtype=np.int32)
        yield Phase(name=f"up {distance}", source=sender, target=sender - distance, num_bytes=size)
        distance *= 2


def _tree_down(num_ranks: int, size: float, _: Domains) -> Iterator[Phase]:
    for phase in reversed(list(_tree_up(num_ranks, size, ()))):
        yield _turned(phase)


def _turned(phase: Phase) -> Phase:
    name = phase.name.replace("up", "down")
    return msgspec.structs.replace(phase, name=name, source=phase.target, target=phase.source)


def _tree(num_ranks: int, size: float, _: Domains) -> Iterator[Phase]:
    yield from _tree_up(num_ranks, size, ())
    yield from _tree_down(num_ranks, size, ())


def _exchange(name: str, num_ranks: int, distance: int, num_bytes: float) -> Phase:
    rank = _ranks(num_ranks)
    return Phase(name=name, source=rank, target=rank ^ distance, num_bytes=num_bytes)


def _halving_doubling(num_ranks: int, size: float, _: Domains) -> Iterator[Phase]:
    """Halve the data and double the distance from the far end, then back (Thakur, Rabenseifner, Gropp 2005).

    Ranks past the last power of two hand their array to a neighbour first and get the result from it in the
    end.
    """
    power = 1 << (num_ranks.bit_length() - 1)
    extra = _ranks(num_ranks - power)
    fold = Phase(name="fold", source=2 * extra + 1, target=2 * extra, num_bytes=size)
    # the ranks that go on: the even ones of the folded pairs, then those without a pair
    going = np.concatenate([2 * extra, np.arange(2 * extra.size, num_ranks, dtype=np.int32)])
    if extra.size:
        yield fold
    distances = [1 << bit for bit in reversed(range(power.bit_length() - 1))]
    steps = [_exchange(f"halve {far}", power, far, size * far / power) for far in distances]
    steps += [_exchange(f"double {near}", power, near, size * near / power) for near in reversed(distances)]
    for step in steps:
        yield msgspec.structs.replace(step, source=going[step.source], target=going[step.target])
    if extra.size:
        yield msgspec.structs.replace(fold, name="unfold", source=fold.target, target=fold.source)


def _doubling(num_ranks: int, size: float, _: Domains) -> Iterator[Phase]:
    if num_ranks & (num_ranks - 1):
        low, high = 1 << (num_ranks.bit_length() - 1), 1 << num_ranks.bit_length()
        raise ScenarioError(
            f"doubling needs a power of two of ranks, not {num_ranks:,}",
            hint=f"nearest: {low:,} or {high:,}; ring takes any number",
        )
    distance = 1
    while distance < num_ranks:
        yield _exchange(f"double {distance}", num_ranks, distance, size * distance / num_ranks)
        distance *= 2


def _halving(num_ranks: int, size: float, _: Domains) -> Iterator[Phase]:
    for phase in reversed(list(_doubling(num_ranks, size, ()))):
        yield msgspec.structs.replace(phase, name=phase.name.replace("double", "halve"))


def _direct(num_ranks: int, size: float, _: Domains) -> Iterator[Phase]:
    """Everyone sends its piece to everyone else at once."""
    source, shift = np.divmod(np.arange(num_ranks * (num_ranks - 1)), num_ranks - 1)
    target = (source + shift + 1) % num_ranks
    yield Phase(
        name="direct",
        source=source.astype(np.int32),
        target=target.astype(np.int32),
        num_bytes=size / num_ranks,
    )


def _pairwise(num_ranks: int, size: float, _: Domains) -> Iterator[Phase]:
    """n − 1 steps, in step r everyone sends to the rank r further."""
    rank = _ranks(num_ranks)
    for shift in range(1, num_ranks):
        yield Phase(
            name=f"shift {shift}", source=rank, target=(rank + shift) % num_ranks, num_bytes=size / num_ranks
        )


def _two_level(num_ranks: int, size: float, in_domains: Domains) -> Iterator[Phase]:
    """Reduce-scatter in each domain, all-reduce across with a ring per place in the domain, all-gather."""
    group = max(in_domains)
    if min(in_domains) < group:
        raise ScenarioError(f"{num_ranks:,} ranks do not fill domains of {group}", hint="use ring instead")
    rank, domains = _ranks(num_ranks), len(in_domains)
    beside = rank // group * group + (rank + 1) % group
    inside = Phase(
        name="reduce-scatter in the domain", source=rank, target=beside, num_bytes=size / group,
        num_rounds=group - 1,
    )  # fmt: skip
    yield inside
    yield Phase(
        name="all-reduce across domains", source=rank, target=(rank + group) % num_ranks,
        num_bytes=size / group / domains, num_rounds=2 * (domains - 1),
    )  # fmt: skip
    yield msgspec.structs.replace(inside, name="all-gather in the domain")


def _neighbours(num_ranks: int, size: float, _: Domains) -> Iterator[Phase]:
    rank = _ranks(num_ranks)
    yield Phase(name="send", source=rank, target=(rank + 1) % num_ranks, num_bytes=size)


DECOMPOSITIONS: dict[tuple[str, str], Decomposition] = {
    ("all-reduce", "ring"): _on_all_rails(_ring("reduce-scatter and all-gather", 2), turning=True),
    ("all-reduce", "tree"): _on_all_rails(_tree),
    ("all-reduce", "halving-doubling"): _halving_doubling,
    ("all-reduce", "two-level"): _two_level,
    ("all-gather", "ring"): _on_all_rails(_ring("all-gather", 1), turning=True),
    ("all-gather", "doubling"): _doubling,
    ("reduce-scatter", "ring"): _on_all_rails(_ring("reduce-scatter", 1), turning=True),
    ("reduce-scatter", "halving"): _halving,
    ("all-to-all", "direct"): _direct,
    ("all-to-all", "pairwise"): _pairwise,
    ("broadcast", "tree"): _tree_down,
    ("reduce", "tree"): _tree_up,
    ("send-recv", "direct"): _neighbours,
}

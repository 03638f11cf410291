"""Which of a model's targets takes a request: one function a policy, all over targets that are ready and have room."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TypeAlias

import msgspec

from datahall.serve.upstreams.upstream import Upstream

UNEVEN_RATIO = 1.25  # of the mean load, that affinity may cost
UNEVEN = 2  # requests, that it may cost besides


class Target:
    """An upstream, and what a model is called there."""

    __slots__ = ("cost", "model", "name", "upstream")

    def __init__(self, upstream: Upstream, model: str, cost: int = 0) -> None:
        self.upstream = upstream
        self.model = model
        self.cost = cost  # nano-dollars of a million tokens, in and out alike
        self.name = f"{upstream.name}/{model}".encode()

    @property
    def load(self) -> float:
        """Requests that are there, ours and those that wait in its queue."""
        return self.upstream.num_open + self.upstream.num_waiting


class Hint(msgspec.Struct, frozen=True, gc=False):
    """What of a request may say where it goes; whose it is stands in both, so that no prefix is shared unasked."""

    prefix: bytes = b""
    session: bytes = b""


Policy: TypeAlias = Callable[[Sequence[Target], Hint], Target]


def least_outstanding(targets: Sequence[Target], hint: Hint) -> Target:  # noqa: ARG001
    """The one with the fewest requests."""
    best, least = targets[0], targets[0].load
    for target in targets:
        load = target.load
        if load < least:
            best, least = target, load
    return best


def fastest(targets: Sequence[Target], hint: Hint) -> Target:  # noqa: ARG001
    """The one that answers soonest, as it has done, for the requests that are there; one never tried comes first."""
    return min(targets, key=lambda target: target.upstream.expected_s * (1 + target.load))


def cheapest(targets: Sequence[Target], hint: Hint) -> Target:  # noqa: ARG001
    """The one that costs least; of several the one with the fewest requests."""
    return min(targets, key=lambda target: (target.cost, target.load))


def by_prefix(targets: Sequence[Target], hint: Hint) -> Target:
    """The one that has seen the beginning of the prompt, as long as it is not much busier than the others."""
    return _affine(targets, hint, hint.prefix)


def by_session(targets: Sequence[Target], hint: Hint) -> Target:
    """The one that has had the session, as long as it is not much busier than the others."""
    return _affine(targets, hint, hint.session)


def _affine(targets: Sequence[Target], hint: Hint, key: bytes) -> Target:
    """Rendezvous hashing with bounded load: one target more or less moves only its own share."""
    if not key:
        return least_outstanding(targets, hint)
    most = UNEVEN_RATIO * sum(target.load for target in targets) / len(targets) + UNEVEN
    free = [target for target in targets if target.load <= most]
    return max(free, key=lambda target: _weight(target.name, key))


def _weight(name: bytes, key: bytes) -> bytes:
    """Independent for every pair; a checksum is not, being linear: whose names are alike would share unevenly."""
    return blake2b(name, digest_size=8, key=blake2b(key, digest_size=16).digest()).digest()


RULES: dict[str, Policy] = {
    "least-outstanding": least_outstanding,
    "latency": fastest,
    "cost": cheapest,
    "prefix": by_prefix,
    "session": by_session,
}

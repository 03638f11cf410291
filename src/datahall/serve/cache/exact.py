"""The cache: the least recently used go first, within so many bytes in all and of each tenant, for so long."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from datahall.serve.cache.asked import Asked
from datahall.serve.cache.kept import ODD, Kept
from datahall.serve.ledger.period import SECOND_NS


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much is kept, and for how long."""

    most_bytes: int = 256 * 10**6
    tenant_bytes: int = 0  # of one tenant; 0: all of it
    answer_bytes: int = 4 * 10**6  # of one answer
    ttl_s: float = 3600.0


class Counts(msgspec.Struct, kw_only=True):
    """What became of what was asked for."""

    hits: int = 0
    misses: int = 0
    stored: int = 0
    evicted: int = 0
    expired: int = 0


class ExactCache:
    """Answers by the key of what was asked."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.counts = Counts()
        self.size_bytes = 0
        self._kept: OrderedDict[bytes, Kept] = OrderedDict()
        self._of: dict[str, OrderedDict[bytes, None]] = {}  # by tenant
        self._bytes: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, asked: Asked, now_ns: int) -> Kept | None:
        """What was answered to the same before, if it is fresh."""
        kept = self._kept.get(asked.key)
        if kept is None:
            self.counts.misses += 1
            return None
        if now_ns >= kept.expires_ns:
            self.counts.expired += 1
            self.counts.misses += 1
            self._drop(asked.key)
            return None
        self._kept.move_to_end(asked.key)
        self._of[kept.tenant].move_to_end(asked.key)
        self.counts.hits += 1
        return kept

    def can_answer(self, asked: Asked, kept: Kept) -> bool:
        """Whether what is kept can be given in the manner that is asked for."""
        try:
            self.answer(asked, kept)
        except ODD:
            return False
        return True

    def answer(self, asked: Asked, kept: Kept) -> bytes:
        """What is kept, in the manner that was asked for; a form that is made for it counts among the bytes."""
        found = kept.stream(asked.with_usage) if asked.streams else kept.whole()
        if kept.size_bytes != kept.counted_bytes and self._kept.get(asked.key) is kept:
            self._count(kept)
            self._fit(kept.tenant)
        return found

    def put(self, asked: Asked, kept: Kept, now_ns: int) -> bool:
        """Keep an answer; whether it is small enough."""
        if kept.size_bytes > min(self.bounds.answer_bytes, self._share):
            return False
        if asked.key in self._kept:
            self._drop(asked.key)
        kept.stored_ns = now_ns
        kept.expires_ns = now_ns + int(self.bounds.ttl_s * SECOND_NS)
        self._kept[asked.key] = kept
        self._of.setdefault(kept.tenant, OrderedDict())[asked.key] = None
        kept.counted_bytes = 0
        self._count(kept)
        self.counts.stored += 1
        self._fit(kept.tenant)
        return True

    def clear(self) -> None:
        """Drop all that anybody has."""
        for key in [*self._kept]:
            self._drop(key)

    def forget(self, tenant: str) -> int:
        """Drop all that a tenant has; how many answers that were."""
        keys = list(self._of.get(tenant, ()))
        for key in keys:
            self._drop(key)
        return len(keys)

    @property
    def _share(self) -> int:
        return self.bounds.tenant_bytes or self.bounds.most_bytes

    def _fit(self, tenant: str) -> None:
        """Let the oldest go: the tenant's own where it has more than its share, then anybody's."""
        while self._bytes.get(tenant, 0) > self._share:
            self._evict(next(iter(self._of[tenant])))
        while self.size_bytes > self.bounds.most_bytes:
            self._evict(next(iter(self._kept)))

    def _evict(self, key: bytes) -> None:
        self.counts.evicted += 1
        self._drop(key)

    def _drop(self, key: bytes) -> None:
        kept = self._kept.pop(key)
        mine = self._of[kept.tenant]
        del mine[key]
        self._add_bytes(kept.tenant, -kept.counted_bytes)
        if not mine:
            del self._of[kept.tenant], self._bytes[kept.tenant]

    def _count(self, kept: Kept) -> None:
        """Count all that an answer takes now."""
        self._add_bytes(kept.tenant, kept.size_bytes - kept.counted_bytes)
        kept.counted_bytes = kept.size_bytes

    def _add_bytes(self, tenant: str, size_bytes: int) -> None:
        self.size_bytes += size_bytes
        self._bytes[tenant] = self._bytes.get(tenant, 0) + size_bytes

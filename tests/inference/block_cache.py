"""A slow, plain prefix cache, block by block: what the compiled one, which knows runs of blocks, must agree with."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

Key = tuple[Any, ...]  # stands for all that a prompt has up to the end of a block


def block_keys(
    num: int,
    size: int,
    *,
    session: int,
    group: int = -1,
    shared: int = 0,
    given: Sequence[int] = (),
    each: int = 0,
) -> list[Key]:
    """The keys of the first blocks of a request: as its trace gives them, then its group's, then its session's.

    A block is another one where anything before it is, so a key of a session has in it what stands before the session.
    """
    keys: list[Key] = []
    below: Key = ()
    last: Key = ()
    for block in range(num):
        at = block * size // each if each else 0
        if at < len(given):
            owner: Key = ("given", given[at])
        elif group >= 0 and (block + 1) * size <= shared:
            owner = ("group", group)
        else:
            owner = ("session", session)
        if owner != last:
            below, last = (() if owner[0] == "given" else (*below, *last, block)), owner
        keys.append((*below, *owner, block))
    return keys


class BlockCache:
    """One replica: users of each block on the chip, and what nobody uses, oldest first, by tier: chip, host, drives."""

    def __init__(self, blocks: int, host: int = 0, drives: int = 0) -> None:
        self.free, self.sizes = blocks, (0, host, drives)
        self.users: dict[Key, int] = {}
        self.unused: tuple[OrderedDict[Key, None], ...] = (OrderedDict(), OrderedDict(), OrderedDict())
        self.lifted = [0, 0, 0]

    def tier_of(self, key: Key) -> int | None:
        """Where a block is that nobody uses."""
        return next((tier for tier, held in enumerate(self.unused) if key in held), None)

    def hits(self, keys: list[Key]) -> tuple[int, int]:
        """Leading blocks that are known, and how many of these nobody uses."""
        num = 0
        while num < len(keys) and (keys[num] in self.users or self.tier_of(keys[num]) is not None):
            num += 1
        return num, sum(key not in self.users for key in keys[:num])

    def take(self, key: Key) -> int | None:
        """Take a block that nobody uses out of its tier."""
        tier = self.tier_of(key)
        if tier is not None:
            del self.unused[tier][key]
        return tier

    def share(self, keys: list[Key], computed: bool) -> None:
        """One more uses blocks: it has found them, or computed them, and gives copies of known ones back."""
        for key in keys:
            if key in self.users:
                self.free += computed
            else:
                tier = self.take(key)
                if not computed:
                    assert tier is not None, "hit a block that is not known"
                    self.free -= 1
                    self.lifted[tier] += 1
            self.users[key] = self.users.get(key, 0) + 1

    def release(self, keys: list[Key], keyed: int, held: int) -> None:
        """One leaves, last block first: it shared the first `keyed` of its full blocks, and had `held` in all."""
        self.free += held - keyed
        for place, key in reversed(list(enumerate(keys))):
            if place < keyed:
                self.users[key] -= 1
                if self.users[key]:
                    continue
                del self.users[key]
                self.free += 1
            elif key in self.users:
                continue
            self.take(key)
            self.unused[0][key] = None

    def settle(self) -> None:
        """Blocks that were taken are not known any more on the chip; one after the other goes down."""
        while len(self.unused[0]) > self.free:
            key, _ = self.unused[0].popitem(last=False)
            for tier in (1, 2):
                if self.sizes[tier]:
                    self.unused[tier][key] = None
                    if len(self.unused[tier]) <= self.sizes[tier]:
                        break
                    key, _ = self.unused[tier].popitem(last=False)

    def clear(self) -> None:
        """The replica is lost."""
        for held in self.unused:
            held.clear()

"""What requests have in common: the prompt tokens that a cache would already hold, one without limits or one with."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.workload.traffic.requests import Floats, Ints, Requests

HALVINGS, LONGEST_S = 50, 1e9  # of the search for the time that a cache keeps what nobody uses


def reusable_tokens(requests: Requests) -> Ints:
    """Tokens at the start of each prompt that an earlier row of these had, never the whole prompt.

    A later turn finds the whole turn before it and its answer; an opening finds the prefix of its group if the group
    was seen; a row with block keys finds its leading blocks.  An upper bound: a real cache forgets.
    """
    found = _leading_blocks(requests) if requests.block_start.size else _prefixes(requests)
    return np.minimum(found, requests.prompt - 1)


def _prefixes(requests: Requests) -> Ints:
    rows = np.arange(len(requests))
    seen = (requests.group >= 0) & ~_first_rows(requests.group, rows)
    found = np.where(seen, requests.shared, 0)
    later = np.flatnonzero(requests.after >= 0)
    before = requests.after[later]
    found[later] = requests.prompt[before] + requests.output[before]
    return found


def _leading_blocks(requests: Requests) -> Ints:
    counts = np.diff(requests.block_start)
    row = np.repeat(np.arange(counts.size), counts)
    new = _first_rows(requests.blocks, row)
    place = np.arange(requests.blocks.size) - np.repeat(requests.block_start[:-1], counts)
    leading = counts.copy()
    np.minimum.at(leading, row[new], place[new])
    return leading * requests.block_tokens


def _first_rows(keys: Ints, row: Ints) -> NDArray[np.bool_]:
    """Whether no earlier row has this key."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return np.asarray(row[first][inverse] == row)


class Remembered(NamedTuple):
    """What a cache has of prompts at some load."""

    time_s: float  # for which it keeps what nobody uses
    cached: float  # tokens of a prompt that it has, on average
    computed: float  # and has not
    spread: float  # coefficient of variation of these


class Reuse(msgspec.Struct, frozen=True, kw_only=True):
    """How turns of conversations use what earlier ones left, as columns over requests that stand for all.

    A cache that drops the least recently used first keeps everything for one time T, in which as much comes as it has
    room for (Che, Tung & Wang, 2002):  rate · E[tokens left · min(T, time until they are used again)] = room.
    """

    prompt: Floats
    shared: Floats  # tokens at its start that its group has in common
    group_fraction: Floats  # of requests that are of the same group
    known: Floats  # tokens of the prompt that the last turn on the same replica left there; 0: there was none
    pause_s: Floats  # since then, all pauses together
    num_stays: Floats  # and the answers in that time
    left: Floats  # tokens beyond what is shared that a request leaves
    next_pause_s: Floats  # until they are used again; never: infinite
    next_stays: Floats

    def at(self, rate_per_s: float, room_tokens: float, stay_s: float) -> Remembered:
        """What a cache with so much room has of requests that come at a rate and stay so long."""
        time_s = self._time_s(rate_per_s, room_tokens, self.next_pause_s + self.next_stays * stay_s)
        seen = -np.expm1(-rate_per_s * self.group_fraction * time_s) * self.shared if room_tokens else 0.0
        there = (self.known > 0) & (self.pause_s + self.num_stays * stay_s <= time_s)
        cached = np.where(there, self.known, np.minimum(seen, self.prompt - 1.0))
        computed = self.prompt - cached
        return Remembered(
            time_s, float(cached.mean()), float(computed.mean()), float(computed.std() / computed.mean())
        )

    def _time_s(self, rate_per_s: float, room_tokens: float, unused_s: Floats) -> float:
        """T of the definition [s]."""
        if room_tokens <= 0:
            return 0.0
        groups, first = np.unique(self.group_fraction, return_index=True)
        sizes, num = self.shared[first], np.maximum(1.0, _occurrences(self.group_fraction, groups) / groups)
        low_s, high_s = 0.0, LONGEST_S
        for _ in range(HALVINGS):
            time_s = (low_s + high_s) / 2.0 if low_s else high_s * 1e-3
            own = rate_per_s * float(np.mean(self.left * np.minimum(unused_s, time_s)))
            common = float(np.sum(num * sizes * -np.expm1(-rate_per_s * groups * time_s)))
            low_s, high_s = (time_s, high_s) if own + common <= room_tokens else (low_s, time_s)
            if high_s - low_s < 1e-3 * high_s:
                break
        return high_s


def _occurrences(values: Floats, kinds: Floats) -> Floats:
    """The share of the values that are each of the kinds."""
    return np.asarray(np.bincount(np.searchsorted(kinds, values), minlength=kinds.size) / values.size)


def reuse_of(requests: Requests, random: np.random.Generator, num_replicas: int) -> Reuse:
    """How conversations use again what they left, where each turn goes to one of so many replicas."""
    num = len(requests)
    replica = random.integers(0, num_replicas, num) if num_replicas > 1 else np.zeros(num, np.int64)
    order = np.lexsort((np.arange(num), replica, requests.session))
    same = (np.diff(requests.session[order]) == 0) & (np.diff(replica[order]) == 0)
    before, then = order[:-1][same], order[1:][same]
    waited_s = np.cumsum(np.where(requests.after >= 0, requests.arrival_s, 0.0))
    left = requests.prompt + requests.output
    known, pause_s, next_pause_s = np.zeros(num), np.zeros(num), np.full(num, inf)
    num_stays, next_stays = np.zeros(num), np.zeros(num)
    known[then] = np.minimum(left[before], requests.prompt[then] - 1)
    pause_s[then] = next_pause_s[before] = waited_s[then] - waited_s[before]
    num_stays[then] = next_stays[before] = then - before
    _, which, counts = np.unique(requests.group, return_inverse=True, return_counts=True)
    return Reuse(
        prompt=requests.prompt.astype(np.float64),
        shared=requests.shared.astype(np.float64),
        group_fraction=counts[which] / num,
        known=known,
        pause_s=pause_s,
        num_stays=num_stays,
        left=(left - requests.shared).astype(np.float64),
        next_pause_s=next_pause_s,
        next_stays=next_stays,
    )

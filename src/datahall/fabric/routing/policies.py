"""The ways to route: how each spreads a flow over equal-cost paths, one or many, and what collisions cost.

Topology promises full bandwidth; hashing does not deliver it.  On a full-bisection fat tree a random
permutation gets about 41 % of line rate with one path per flow, and the slowest flow, which a collective
waits for, a seventh.  Both are always given: the mean, and the slowest.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import NamedTuple

import msgspec
import numpy as np

from datahall.errors import ScenarioError, nearest
from datahall.fabric.flows.rates import max_min_rates
from datahall.fabric.routing.paths import num_paths, route
from datahall.fabric.topology.graph import Fabric, Floats, Ints, Longs, Paths, select
from datahall.scenario.words import Policy

GOLDEN_SECTION = 0.618033988749895
SPRAY_EFFICIENCY = 0.95  # reordering and protocol: what vendors of per-packet spraying report of line rate
MOST_CHOSEN, MOST_STEPS = 64, 4_000_000  # paths that an adaptive flow looks at, and all of them together
MOST_SPRAYED, MOST_SPREAD = (
    256,
    8_000_000,
)  # paths that packets of a flow are spread over, and those of all flows


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """The routes of some flows: part p of flow f is row f · num_parts + p of `paths`.

    A sprayed flow is one row: over the links that stand for pools (`pooling`), or with all its paths in it,
    `share_fraction` of its bytes on each entry.
    """

    paths: Paths
    num_parts: int = 1
    share_fraction: Floats | None = None
    efficiency: float = 1.0
    ways: Paths | None = (
        None  # from which row r takes one of ways_offsets[r] to ways_offsets[r + 1] when it starts
    )
    ways_offsets: Longs | None = None


class Sharing(msgspec.Struct, frozen=True, kw_only=True):
    """What flows get, as fractions of line rate.

    `striped` is when each flow cuts its data into equal parts and waits for the last of them.
    """

    mean_fraction: float
    slowest_fraction: float
    striped_mean_fraction: float
    striped_slowest_fraction: float


class Asked(NamedTuple):
    """Flows that need paths; with `partial` those of pairs that are cut off are empty."""

    fabric: Fabric
    source: Ints
    target: Ints
    rng: np.random.Generator
    num_parts: int
    pool: Ints | None = None
    partial: bool = False


class Rule(NamedTuple):
    """One way to route: how it chooses the path or paths of each flow, and what the rest has to know of it."""

    choose: Callable[[Asked], Spread]
    title: str
    draws: bool = False  # at random
    chooses_late: bool = False  # a flow takes one of its ways when it starts
    sprays: bool = False  # packets over all ways alike, fewer where a link is slow


def spread(
    fabric: Fabric,
    source: Ints,
    target: Ints,
    policy: Policy,
    rng: np.random.Generator,
    num_parts: int = 1,
    *,
    pool: Ints | None = None,
    partial: bool = False,
) -> Spread:
    """Choose the path or paths of each flow; with `partial` those of pairs that are cut off are empty."""
    rule = rule_of(policy)
    if num_parts < 1:
        raise ScenarioError(f"{num_parts} paths per flow", hint="1 or more")
    return rule.choose(Asked(fabric, source, target, rng, num_parts, pool, partial))


def rule_of(policy: Policy) -> Rule:
    """What a policy is; of one that is none, a `ScenarioError` that names the nearest."""
    if policy not in RULES:
        close = nearest(policy, RULES, 1)
        raise ScenarioError(
            f'"{policy}" is not a way to route',
            hint=f"one of {', '.join(RULES)}" + (f"; did you mean {close[0]}?" if close else ""),
        )
    return RULES[policy]


def _by_destination(asked: Asked) -> Spread:
    """D-mod-k: flows to one endpoint share one tree."""
    pick = np.asarray(asked.target, np.int64)
    return Spread(paths=route(asked.fabric, asked.source, asked.target, pick, partial=asked.partial))


def _hashed(asked: Asked) -> Spread:
    """Each queue pair onto a path of its own."""
    parts = asked.num_parts
    pick = asked.rng.integers(0, 2**62, asked.source.size * parts)
    both = np.repeat(asked.source, parts), np.repeat(asked.target, parts)
    return Spread(paths=route(asked.fabric, *both, pick, partial=asked.partial), num_parts=parts)


def _left_open(asked: Asked) -> Spread:
    """Each flow keeps its equal-cost paths to choose from when it starts."""
    most = max(2, min(MOST_CHOSEN, MOST_STEPS // max(1, asked.source.size)))
    paths, offsets = _several(asked.fabric, asked.source, asked.target, most, asked.partial)
    return Spread(paths=select(paths, offsets[:-1]), ways=paths, ways_offsets=offsets)


def _several(fabric: Fabric, source: Ints, target: Ints, most: int, partial: bool) -> tuple[Paths, Longs]:
    """Up to so many equal-cost paths of each pair, and where those of each begin and end."""
    count = num_paths(fabric, source, target)
    taken = np.clip(count, 1, most)
    offsets = np.concatenate([[0], np.cumsum(taken)])
    flow = np.repeat(np.arange(source.size), taken)
    turn = np.arange(flow.size) - np.repeat(offsets[:-1], taken)
    # where not all are taken, each source begins elsewhere, so that all sources together meet every way
    begin = np.where(count > most, source.astype(np.int64) * most, 0)
    pick = (begin[flow] + turn) * _stride(count, most)[flow]
    paths = route(fabric, source[flow], target[flow], pick, partial=partial, among_left=True)
    return paths, offsets


def _sprayed(asked: Asked) -> Spread:
    """Packets over the links that stand for a pool, or over each path by the bandwidth of its narrowest link."""
    fabric, source, target, _, _, pool, partial = asked
    if pool is not None:
        return Spread(paths=route(fabric, source, target), efficiency=SPRAY_EFFICIENCY)
    most = max(
        2, min(MOST_SPRAYED, MOST_SPREAD // max(1, source.size))
    )  # more of many flows are met by them together
    paths, ways = _several(fabric, source, target, most, partial)
    flow = np.repeat(np.arange(source.size), np.diff(ways))
    width = np.full(flow.size, np.inf)  # of the narrowest link of each path, as a share of the widest path's
    np.minimum.at(width, paths.owners(), fabric.link_bytes_per_s[paths.links])
    width[np.isinf(width)] = 1.0  # a path to oneself
    beside = fabric.traits.bundles(fabric.num_links)
    if beside is not None:
        width /= np.exp(np.bincount(paths.owners(), np.log(beside[paths.links]), width.size))
    widest = np.zeros(source.size)
    np.maximum.at(widest, flow, width)
    width /= widest[flow]
    owner = np.repeat(flow, np.diff(paths.offsets)) * np.int64(fabric.num_links)
    entry, which = np.unique(owner + paths.links, return_inverse=True)
    flow_of, link = np.divmod(entry, fabric.num_links)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(flow_of, minlength=source.size))])
    sent = np.bincount(which, width[paths.owners()], entry.size)
    return Spread(
        paths=Paths(link.astype(np.int32), offsets),
        share_fraction=sent / np.bincount(flow, width, source.size)[flow_of],
        efficiency=SPRAY_EFFICIENCY,
    )


RULES: dict[Policy, Rule] = {
    "deterministic": Rule(_by_destination, "one path for each destination"),
    "ecmp": Rule(_hashed, "flows hashed onto paths", draws=True),
    "adaptive": Rule(_left_open, "the path that is least loaded when a flow starts", chooses_late=True),
    "spray": Rule(_sprayed, "another path for each packet", sprays=True),
}


def _stride(count: Longs, most: int) -> Longs:
    """From one path to the next of those taken: all, or every one near the golden section, which meets all switches.

    It shares no divisor with the number of paths: else whole groups of them would never be met.
    """
    known, index = np.unique(count, return_inverse=True)
    steps = [1 if one <= most else _coprime(int(one * GOLDEN_SECTION), one) for one in known.tolist()]
    return np.array(steps, np.int64)[index]


def _coprime(least: int, number: int) -> int:
    return next(step for step in range(least, 2 * number) if gcd(step, number) == 1)


def sharing(routes: Spread, link_bytes_per_s: Floats, line_bytes_per_s: float) -> Sharing:
    """Solve the rates of flows that all run at once and say what they get of line rate."""
    rates = max_min_rates(routes.paths, link_bytes_per_s, share_fraction=routes.share_fraction)
    parts = rates.reshape(-1, routes.num_parts) * (routes.efficiency / line_bytes_per_s)
    together, striped = parts.sum(axis=1), parts.min(axis=1) * routes.num_parts
    return Sharing(
        mean_fraction=float(together.mean()),
        slowest_fraction=float(together.min()),
        striped_mean_fraction=float(striped.mean()),
        striped_slowest_fraction=float(striped.min()),
    )


def permutation(num_hosts: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Everyone sends to one other, everyone receives from one; whoever draws itself stays silent."""
    target = rng.permutation(num_hosts).astype(np.int32)
    source = np.arange(num_hosts, dtype=np.int32)
    return source[source != target], target[source != target]

"""Failures that routing learns of while flows are under way: when it does, and which flows have other ways then.

Until then a flow whose path is out waits.  A part that is only slow is routed around by nobody; who sprays packets
sends fewer of them that way.  With the repair every flow has its first path again, at once.  Where no way is left a
flow keeps its own, and waits for the repair.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.catalog import Catalog
from datahall.catalog.entries.network.reroute import Reroute
from datahall.catalog.entries.network.transport import Transport
from datahall.fabric.flows.failures import Bools
from datahall.fabric.flows.simulate import Detours, Ways
from datahall.fabric.routing.policies import Spread, rule_of
from datahall.fabric.topology.graph import Fabric, Floats, Ints, Longs, Paths, select
from datahall.scenario.sections.failure import FABRIC_PARTS, Failure
from datahall.scenario.words import Policy


class LearnedFabric(msgspec.Struct, frozen=True):
    """From at_s on, routing knows the fabric as this."""

    at_s: float
    fabric: Fabric


class FlowRoutes(msgspec.Struct, frozen=True):
    """Routes, and which of them each of some flows takes: `row`, past the last where it takes none."""

    routes: Spread
    row: Longs
    first_flow: int


def reroute_s(failure: Failure, transport: Transport, catalog: Catalog) -> float:
    """How long routing takes to learn of a failure: as it was said, or as the catalogue knows it."""
    if failure.reroute_s is not None:
        return failure.reroute_s
    return usual_reroute(failure, transport, catalog).reroute_s


def usual_reroute(failure: Failure, transport: Transport, catalog: Catalog) -> Reroute:
    """Who routes around a failure where nobody says how long that takes."""
    if all(name == "nics" or not getattr(failure, name) for name in FABRIC_PARTS):
        return catalog.reroute("nic-failover")
    return catalog.reroute(
        "infiniband-subnet-manager" if transport.flow_control == "credits" else "ethernet-link-down"
    )


def fabrics_known(
    failures: Sequence[tuple[Failure, Bools, float]], fabric: Fabric, policy: Policy
) -> tuple[LearnedFabric, ...]:
    """The fabric as routing knows it, from each moment on at which it learns of a failure or a repair."""
    known = []
    for failure, hit, after_s in failures:
        start_s, end_s = failure.start_s + after_s, failure.start_s + (failure.duration_s or np.inf)
        if start_s < end_s and (failure.left_fraction == 0.0 or rule_of(policy).sprays):
            known.append((start_s, end_s, hit, failure.left_fraction))
    found = []
    for at_s in sorted({time for start_s, end_s, *_ in known for time in (start_s, end_s) if time < np.inf}):
        left = np.ones(fabric.num_links)
        for start_s, end_s, hit, share in known:
            if start_s <= at_s < end_s:
                left[hit] *= share
        after = msgspec.structs.replace(fabric, link_bytes_per_s=fabric.link_bytes_per_s * left)
        found.append(LearnedFabric(at_s, after))
    return tuple(found)


def ways_of(routes: Sequence[FlowRoutes]) -> Ways | None:
    """What every flow may choose from when it starts; None where nobody chooses."""
    if not any(one.routes.ways is not None for one in routes):
        return None
    return _joined([_ways(one.routes, one.row) for one in routes])


def detours_of(moments: Sequence[float], routes: Sequence[Sequence[FlowRoutes]]) -> Detours | None:
    """Who has other ways from when on: `routes[0]` are the routes at first, the next ones those from each moment on."""
    found, at_s, flows = [], [], []
    for moment, before, now in zip(moments, routes[:-1], routes[1:], strict=True):
        for one, other in zip(before, now, strict=True):
            some = np.append(_changed(one.routes, other.routes), False)[other.row]
            at_s.append(np.full(int(some.sum()), moment))
            flows.append(other.first_flow + np.flatnonzero(some).astype(np.int32))
            found.append(_ways(other.routes, other.row[some]))
    if not sum(flow.size for flow in flows):
        return None
    return Detours(
        at_s=np.concatenate(at_s), flow=np.concatenate(flows).astype(np.int32), ways=_joined(found)
    )


def kept(before: Spread, now: Spread) -> Spread:
    """Routes of which those that are cut off stay as they were, for want of a better."""
    lost = np.diff(now.paths.offsets) == 0
    if not lost.any():
        return now
    both = Paths(
        np.concatenate([before.paths.links, now.paths.links]),
        np.concatenate([before.paths.offsets[:-1], before.paths.links.size + now.paths.offsets]),
    )
    row = np.where(lost, np.arange(lost.size), lost.size + np.arange(lost.size))
    shares = None
    if before.share_fraction is not None and now.share_fraction is not None:
        every = np.concatenate([before.share_fraction, now.share_fraction])
        shares = every[select(_places(both), row).links]
    ways, offsets = now.ways, now.ways_offsets
    if before.ways is not None and now.ways is not None:
        assert before.ways_offsets is not None
        assert now.ways_offsets is not None
        chosen = Ways(
            paths=Paths(
                np.concatenate([before.ways.links, now.ways.links]),
                np.concatenate([before.ways.offsets[:-1], before.ways.links.size + now.ways.offsets]),
            ),
            offsets=np.concatenate([before.ways_offsets[:-1], before.ways.num_flows + now.ways_offsets]),
        )
        chosen = _some(chosen, row)
        ways, offsets = chosen.paths, chosen.offsets
    return Spread(
        paths=select(both, row), num_parts=now.num_parts, share_fraction=shares, efficiency=now.efficiency,
        ways=ways, ways_offsets=offsets,
    )  # fmt: skip


def _changed(one: Spread, other: Spread) -> Bools:
    """Which routes are not what they were."""
    if one.ways is not None and other.ways is not None:
        assert one.ways_offsets is not None
        assert other.ways_offsets is not None
        changed: Bools = np.diff(one.ways_offsets) != np.diff(other.ways_offsets)
        same = np.flatnonzero(~changed)
        ways = [
            _some(Ways(paths=paths, offsets=offsets), same)
            for paths, offsets in ((one.ways, one.ways_offsets), (other.ways, other.ways_offsets))
        ]
        differ = _unlike(ways[0].paths, ways[1].paths)
        changed[np.repeat(same, np.diff(ways[0].offsets))[differ]] = True
        return changed
    unlike = _unlike(one.paths, other.paths)
    if one.share_fraction is not None and other.share_fraction is not None:
        alike = np.flatnonzero(~unlike)
        shares = [
            share[select(_places(paths), alike).links]
            for paths, share in ((one.paths, one.share_fraction), (other.paths, other.share_fraction))
        ]
        unlike[np.repeat(alike, np.diff(one.paths.offsets)[alike])[shares[0] != shares[1]]] = True
    return unlike


def _unlike(one: Paths, other: Paths) -> Bools:
    unlike: Bools = np.diff(one.offsets) != np.diff(other.offsets)
    alike = np.flatnonzero(~unlike)
    differ = select(one, alike).links != select(other, alike).links
    unlike[np.repeat(alike, np.diff(one.offsets)[alike])[differ]] = True
    return unlike


def _ways(routes: Spread, row: Longs) -> Ways:
    """What flows of these rows may choose from: all ways of an adaptive one, else its path; a join has none."""
    if routes.ways is not None:
        assert routes.ways_offsets is not None
        whole = Ways(paths=routes.ways, offsets=np.append(routes.ways_offsets, routes.ways_offsets[-1]))
    else:
        whole = Ways(
            paths=routes.paths, offsets=np.append(np.arange(routes.paths.num_flows + 1), routes.paths.num_flows),
            share_fraction=routes.share_fraction,
        )  # fmt: skip
    return _some(whole, row)


def _some(ways: Ways, row: Longs) -> Ways:
    """The ways of some rows, in the order given."""
    numbers = select(Paths(np.arange(ways.paths.num_flows, dtype=np.int32), ways.offsets), row)
    which = numbers.links.astype(np.int64)
    share = ways.share_fraction
    return Ways(
        paths=select(ways.paths, which), offsets=numbers.offsets,
        share_fraction=None if share is None else share[select(_places(ways.paths), which).links],
    )  # fmt: skip


def _joined(parts: list[Ways]) -> Ways:
    def ends(offsets: list[Longs]) -> Longs:
        lengths = np.concatenate([np.empty(0, np.int64), *map(np.diff, offsets)])
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])

    def column(columns: Sequence[Ints | Floats]) -> NDArray[np.generic]:
        return np.concatenate(columns) if columns else np.empty(0, np.int32)

    shares = [one.share_fraction for one in parts if one.share_fraction is not None]
    return Ways(
        paths=Paths(
            column([one.paths.links for one in parts]).astype(np.int32),
            ends([one.paths.offsets for one in parts]),
        ),
        offsets=ends([one.offsets for one in parts]),
        share_fraction=np.concatenate(shares) if shares else None,
    )


def _places(paths: Paths) -> Paths:
    """The numbers of the steps of each path in place of its links."""
    return Paths(np.arange(paths.links.size, dtype=np.int32), paths.offsets)

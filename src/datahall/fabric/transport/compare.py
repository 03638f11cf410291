"""Transports on one network: what each makes of a message, of load, of a loss, of an incast and of a stuck receiver."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf

import msgspec
import numpy as np

from datahall.breakdown import Breakdown, simulated
from datahall.catalog import Catalog
from datahall.catalog.entries.network.transport import Transport
from datahall.counted import counted
from datahall.fabric.design.design import Design
from datahall.fabric.routing.policies import RULES, rule_of
from datahall.fabric.transport.draws import Draws
from datahall.fabric.transport.early import check_joined
from datahall.fabric.transport.host import cores, memory_bytes_per_s
from datahall.fabric.transport.incast import Incast, most_senders
from datahall.fabric.transport.load import MOST_PARTS, PATHS, Kept
from datahall.fabric.transport.loss import kept_at_loss, one_loss_s
from datahall.fabric.transport.message import kept, kept_fraction, one_way, payload_rate, port
from datahall.fabric.transport.path import Path, usual_path
from datahall.fabric.transport.storm import Storm
from datahall.scenario.sections.transports import Transports
from datahall.scenario.words import SPLITTING, Policy

SMALL_BYTES = 8.0
OF_BUFFER = 0.5  # that a port alone may take: dynamic threshold with α = 1 (Choudhury and Hahne 1998)


class Behaviour(msgspec.Struct, frozen=True, kw_only=True):
    """One transport on a network."""

    transport: Transport
    path: Path
    small: Breakdown  # a message of a few bytes
    message: Breakdown
    num_flows: int  # that a chip sends to one other, each on a path and a core of its own
    kept_alone_fraction: float  # of a port, when nobody else sends
    kept: Kept  # of a port, when all send
    at_loss_fraction: float  # of that, with the loss that was asked about
    slowest: Breakdown  # payload of the slowest of all chips, for which a collective waits [B/s]
    one_loss_s: float
    incast: Incast
    storm: Storm
    num_cores: float
    memory_bytes_per_s: float

    @property
    def is_hashed(self) -> bool:
        """Whether flows keep to one path, so that some of them collide."""
        return self.transport.routing in SPLITTING

    @property
    def cores_bytes_per_s(self) -> float:
        """What the cores that receive its flows take, one each [B/s]."""
        return self.num_flows * self.transport.core_bytes_per_s

    @property
    def is_core_bound(self) -> bool:
        """Whether the cores that receive its flows take less than comes through the port."""
        return self.num_cores > self.num_flows

    @property
    def times_out(self) -> bool:
        """Whether so many senders to one chip lose packets that only a timeout tells of."""
        return self.incast.num_senders > self.incast.most_senders


class Ladder(msgspec.Struct, frozen=True):
    """What routing alone leaves of a port when all send, without headers."""

    routing: Policy
    num_paths: int
    kept: Kept

    @property
    def title(self) -> str:
        """The way to route, in a few words."""
        return rule_of(self.routing).title

    @property
    def is_hashed(self) -> bool:
        """Whether queue pairs keep to a path each."""
        return self.routing in SPLITTING

    @property
    def is_sprayed(self) -> bool:
        """Whether each packet takes another path."""
        return rule_of(self.routing).sprays


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Transports side by side, and what routing alone leaves of the same network."""

    behaviours: tuple[Behaviour, ...]
    rungs: tuple[Ladder, ...]
    num_rails: int  # between which chips of a host forward for each other; 1: nobody does

    @property
    def best(self) -> int:
        """The transport that leaves the slowest chip most, for which a collective waits; the first of those alike."""
        return max(range(len(self.behaviours)), key=lambda index: self.behaviours[index].slowest.value)

    @property
    def ranked(self) -> tuple[Behaviour, ...]:
        """From the one that leaves the slowest chip most to the one that leaves it least."""
        return tuple(sorted(self.behaviours, key=lambda one: -one.slowest.value))

    @property
    def collided(self) -> tuple[Behaviour, ...]:
        """Those whose flows are hashed onto the same cable, and have less for it."""
        return tuple(
            one
            for one in self.behaviours
            if one.is_hashed and one.kept.slowest_fraction < one.kept_alone_fraction
        )

    @property
    def hashing_binds(self) -> bool:
        """Whether collisions bind: the slowest has less than where each packet takes another path."""
        alone, hashed = self.sprayed.kept.slowest_fraction, self.one_path.kept.slowest_fraction
        return bool(self.collided) and hashed < alone and not self.forwarding_binds

    @property
    def forwarding_binds(self) -> bool:
        """Whether ports that forward to another rail take a larger share of the slowest's than collisions then do."""
        alone, hashed = self.sprayed.kept.slowest_fraction, self.one_path.kept.slowest_fraction
        return self.num_rails > 1 and alone < 1.0 and hashed >= alone * alone

    @property
    def one_path(self) -> Ladder:
        """What is left where a message has one queue pair."""
        return min(self._hashed, key=lambda rung: rung.num_paths)

    @property
    def most_paths(self) -> Ladder:
        """What is left where it has as many as were tried."""
        return max(self._hashed, key=lambda rung: rung.num_paths)

    @property
    def sprayed(self) -> Ladder:
        """What is left where each packet takes another path."""
        return next(rung for rung in self.rungs if rung.is_sprayed)

    @property
    def num_paths_to_fill(self) -> int | None:
        """Queue pairs with which no core holds a hashed transport back; None where none is."""
        bound = [one.num_cores for one in self.behaviours if one.is_hashed and one.is_core_bound]
        return ceil(max(bound)) if bound else None

    @property
    def _hashed(self) -> list[Ladder]:
        return [rung for rung in self.rungs if rung.is_hashed]


def compare(
    made: Design, transports: Sequence[Transport], asked: Transports, catalog: Catalog, seed: int
) -> Comparison:
    """Each transport, and each way to route, on the same network with the same draws."""
    check_joined(made)
    draws = Draws(made.fabric, usual_path(made, np.random.default_rng(seed)), seed)
    found = behaviours(made, transports, asked, catalog, draws)
    return Comparison(
        behaviours=found,
        rungs=ladder(made, draws),
        num_rails=made.fabric.traits.num_rails,
    )


def behaviours(
    made: Design, transports: Sequence[Transport], asked: Transports, catalog: Catalog, draws: Draws
) -> tuple[Behaviour, ...]:
    """Each transport on the same ports and cables, with the same draws."""
    buffer_bytes = OF_BUFFER * _buffer_bytes(made, catalog)
    return tuple(_behaviour(one, asked, buffer_bytes, draws) for one in transports)


def _behaviour(one: Transport, asked: Transports, buffer_bytes: float, draws: Draws) -> Behaviour:
    path, num_paths = draws.path, asked.paths if one.routing in SPLITTING else 1
    routed = draws.kept(one.routing, num_paths)
    at_most = payload_rate(one, [port(path), kept(one)], num_paths).value / path.port_bytes_per_s
    through = kept_fraction(one)
    rate = payload_rate(
        one,
        [
            port(path),
            kept(one),
            simulated("left by routing", routed.slowest_fraction, "fraction", _how(one, num_paths)),
        ],
        num_paths,
    )
    return Behaviour(
        transport=one,
        path=path,
        small=one_way(one, path, SMALL_BYTES),
        message=one_way(one, path, asked.size_bytes, num_paths),
        num_flows=num_paths,
        kept_alone_fraction=at_most,
        kept=Kept(
            min(at_most, through * routed.mean_fraction), min(at_most, through * routed.slowest_fraction)
        ),
        at_loss_fraction=kept_at_loss(one, path, asked.loss_fraction),
        slowest=rate.named(f"{one.title}: the slowest chip when all send"),
        one_loss_s=one_loss_s(one, path),
        incast=Incast(
            asked.senders,
            draws.bystander_fraction(one, asked.senders),
            inf if one.holds_back else most_senders(one, path, buffer_bytes),
        ),
        storm=Storm(draws.held_fraction(one), one.stuck_s if one.holds_back else 0.0),
        num_cores=cores(one, path),
        memory_bytes_per_s=memory_bytes_per_s(one, path),
    )


def _how(one: Transport, num_paths: int) -> str:
    way = (
        "another path for each packet"
        if rule_of(one.routing).sprays
        else f"{counted(num_paths, 'queue pair')}, each hashed onto a path"
    )
    return f"a random permutation of all chips at once, {way}: max-min fair rates"


def ladder(made: Design, draws: Draws) -> tuple[Ladder, ...]:
    """What each way to route leaves of a port, whatever transport is used."""
    few = [num for num in PATHS if num == 1 or num * made.counts.num_hosts <= MOST_PARTS]
    rungs = [
        (name, num)
        for name, rule in RULES.items()
        if not rule.chooses_late  # what a flow finds when it starts depends on who came before
        for num in (few if name in SPLITTING else (1,))
    ]
    return tuple(Ladder(name, num, draws.kept(name, num)) for name, num in rungs)


def _buffer_bytes(made: Design, catalog: Catalog) -> float:
    """The smallest packet buffer of an Ethernet switch that has ports as fast as these."""
    speed = made.parts.port_bytes_per_s
    known = [one.buffer_bytes for one in catalog.switches() if one.buffer_bytes > 0 and one.radix(speed)]
    return min(known, default=0.0)


def time_curves(found: Sequence[Behaviour]) -> tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]:
    """Sizes of a message [B], and for each transport how long such a message takes on an idle network [s]."""
    sizes = tuple(float(size) for size in np.geomspace(8.0, 1e9, 49))
    return sizes, tuple(
        tuple(one_way(one.transport, one.path, size, one.num_flows).value for size in sizes) for one in found
    )


def loss_curves(found: Sequence[Behaviour]) -> tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]:
    """Shares of packets that are lost, and for each transport what that leaves of its payload rate."""
    losses = tuple(float(loss) for loss in np.geomspace(1e-7, 1e-2, 41))
    return losses, tuple(
        tuple(kept_at_loss(one.transport, one.path, loss) for loss in losses) for one in found
    )

"""One network with the same draws for every transport: what is alike of several of them is found once."""

from __future__ import annotations

from functools import cache

import numpy as np

from datahall.catalog.entries.network.transport import Transport
from datahall.fabric.topology.graph import Fabric
from datahall.fabric.transport.incast import bystander_fraction
from datahall.fabric.transport.load import Kept, under_load
from datahall.fabric.transport.path import Path
from datahall.fabric.transport.storm import held_fraction
from datahall.scenario.words import Policy


class Draws:
    """What all chips at once, an incast and a stuck receiver make of a network, kept as it was found."""

    def __init__(self, fabric: Fabric, path: Path, seed: int) -> None:
        self.fabric, self.path, self.seed = fabric, path, seed
        self.kept = cache(self._kept)
        self._bystanders = cache(self._found_bystanders)
        self._held = cache(self._found_held)

    def bystander_fraction(self, transport: Transport, num_senders: int) -> float:
        """What flows between other chips keep beside an incast."""
        return self._bystanders(num_senders, transport.holds_back)

    def held_fraction(self, transport: Transport) -> float:
        """Share of flows that stand still behind a chip that stopped."""
        return self._held(transport.routing if transport.holds_back else None)

    def _kept(self, routing: Policy, num_paths: int) -> Kept:
        return under_load(self.fabric, routing, self.path.port_bytes_per_s, self._rng(), num_paths)

    def _found_bystanders(self, num_senders: int, holds_back: bool) -> float:
        return bystander_fraction(self.fabric, num_senders, self._rng(), holds_back=holds_back)

    def _found_held(self, routing: Policy | None) -> float:
        return held_fraction(self.fabric, routing, self._rng())

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

"""Many senders and one receiver: what each gets, what bystanders keep, and when senders time out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from datahall.catalog.entries.network.transport import Transport
from datahall.errors import ScenarioError
from datahall.fabric.flows.rates import max_min_rates
from datahall.fabric.routing.paths import route
from datahall.fabric.topology.graph import Fabric
from datahall.fabric.transport.loss import round_trip_s
from datahall.fabric.transport.path import Path

LEAST_WINDOW = 4.0  # packets: with fewer under way a loss is told by a timeout alone (Morris, ICNP 1997)


class Incast(NamedTuple):
    """So many senders to one chip."""

    num_senders: int
    bystander_fraction: (
        float  # what flows between other chips keep of what they had, while senders are held back
    )
    most_senders: float  # before senders time out; nobody does where senders are held back


def bystander_fraction(
    fabric: Fabric, num_senders: int, rng: np.random.Generator, *, holds_back: bool
) -> float:
    """What flows keep beside an incast: `num_senders` chips of other domains send to one, the rest to each other."""
    others = rng.permutation(np.flatnonzero(fabric.domain != fabric.domain[0])).astype(np.int32)
    if num_senders >= others.size:
        raise ScenarioError(
            f"{num_senders:,} senders", field="senders",
            hint=f"{others.size - 1:,} chips of other scale-up domains can send to one and leave a bystander",
        )  # fmt: skip
    if not holds_back:
        return 1.0
    senders, rest = others[:num_senders], others[num_senders:]
    source = np.concatenate([senders, rest])
    target = np.concatenate([np.zeros(num_senders, np.int32), np.roll(rest, 1)])
    paths = route(fabric, source, target, rng.integers(0, 2**62, source.size))
    alone = max_min_rates(paths, fabric.link_bytes_per_s)
    beside = max_min_rates(paths, fabric.link_bytes_per_s, head_of_line=True)
    return float(beside[num_senders:].mean() / alone[num_senders:].mean())


def most_senders(transport: Transport, path: Path, buffer_bytes: float) -> float:
    """Senders that fit with four packets each into a port's buffer and what is under way: (Q + B · RTT) / (4 · MTU).

    With more, losses are told by timeouts alone, and the port stands idle for the longest of them.
    """
    under_way = path.port_bytes_per_s * round_trip_s(transport, path)
    return (buffer_bytes + under_way) / (LEAST_WINDOW * transport.mtu_bytes)

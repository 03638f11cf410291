"""Scale-up domains: chips that reach each other over NVLink, UALink or the like without the network.

The switches of a domain (4 in an HGX server, 18 in an NVL72 rack) share every chip's traffic evenly, so one
crossbar stands for them.  A domain is alone, or laid under any scale-out network.
"""

from __future__ import annotations

import msgspec
import numpy as np

from datahall.counted import counted
from datahall.errors import ScenarioError
from datahall.fabric.topology.folded_clos import FoldedClos, folded_clos
from datahall.fabric.topology.graph import SCALE_UP, SCALE_UP_TIER, Fabric, Wire


def check_whole_domains(num_chips: int, size: int) -> None:
    """Chips come in whole servers or racks."""
    if size < 1:
        raise ScenarioError(f"a scale-up domain of {size} chips", field="domain", hint="e.g. 8 or 72")
    if num_chips < 1 or num_chips % size:
        lower, upper = num_chips // size * size, (num_chips // size + 1) * size
        near = " or ".join(f"{n:,}" for n in (lower, upper) if n > 0)
        raise ScenarioError(
            f"{counted(num_chips, 'chip')} {'is' if num_chips == 1 else 'are'} no whole number of scale-up domains "
            f"of {size}",
            field="chips",
            hint=f"nearest: {near}",
        )


def scale_up_domain(num_chips: int, wire: Wire) -> Fabric:
    """One domain and nothing else: every chip on one crossbar."""
    if num_chips < 1:
        raise ScenarioError(
            f"a scale-up domain of {num_chips} chips", field="chips", hint="1 chip or more, e.g. 8 or 72"
        )
    shape = FoldedClos(num_hosts=num_chips, children=(num_chips,), parents=(1,), uplinks=(1,))
    flat = folded_clos(f"scale-up domain of {num_chips}", "scale-up", shape, wire)
    return msgspec.structs.replace(
        flat,
        node_tier=np.concatenate((np.zeros(num_chips, np.uint8), np.array([SCALE_UP_TIER], np.uint8))),
        link_kind=np.full(flat.num_links, SCALE_UP, np.uint8),
        domain=np.zeros(num_chips, np.int32),
    )


def with_scale_up(fabric: Fabric, size: int, wire: Wire) -> Fabric:
    """The same network with every `size` neighbouring chips joined by a crossbar too."""
    check_whole_domains(fabric.num_hosts, size)
    if fabric.scale_up_start >= 0:
        raise ScenarioError(f"{fabric.name} has scale-up domains already", hint="lay them once")
    chips = np.arange(fabric.num_hosts, dtype=np.int32)
    domain = chips // np.int32(size)
    crossbar = fabric.num_nodes + domain
    num_domains = fabric.num_hosts // size
    new = 2 * fabric.num_hosts
    return msgspec.structs.replace(
        fabric,
        num_nodes=fabric.num_nodes + num_domains,
        node_tier=np.concatenate((fabric.node_tier, np.full(num_domains, SCALE_UP_TIER, np.uint8))),
        link_source=np.concatenate((fabric.link_source, chips, crossbar)),
        link_target=np.concatenate((fabric.link_target, crossbar, chips)),
        link_bytes_per_s=np.concatenate((fabric.link_bytes_per_s, np.full(new, wire.bytes_per_s))),
        link_latency_s=np.concatenate((fabric.link_latency_s, np.full(new, wire.latency_s))),
        link_kind=np.concatenate((fabric.link_kind, np.full(new, SCALE_UP, np.uint8))),
        domain=domain,
        scale_up_start=fabric.num_links,
    )

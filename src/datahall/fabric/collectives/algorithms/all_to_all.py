"""All-to-all in two hops through a rank that shares the target's rail; and what MoE layers send."""

from __future__ import annotations

from datahall.fabric.collectives.algorithms.bus import Number


def hierarchical_all_to_all_time(
    size_bytes: Number, num_ranks: Number, *, hop_s: Number, bytes_per_s: Number, num_domain: Number,
    across_hop_s: Number, across_bytes_per_s: Number,
) -> Number:  # fmt: skip
    """Return the time [s] of exchanging inside domains of g first, then along rails across k = n/g domains.

    T = (g−1) αᵢ + (g−1)/g · S/Bᵢ + (k−1) αₓ + (k−1)/k · S/Bₓ: n−g messages over the network become k−1.

    Reference: NCCL PXN, 2022; DeepEP, 2025.

    >>> inside = dict(hop_s=1e-6, bytes_per_s=350e9)
    >>> across = dict(num_domain=8.0, across_hop_s=10e-6, across_bytes_per_s=50e9)
    >>> round(hierarchical_all_to_all_time(64e6, 64.0, **inside, **across), 6)
    0.001357
    """
    domains = num_ranks / num_domain
    inside = (num_domain - 1.0) * hop_s + (num_domain - 1.0) / num_domain * size_bytes / bytes_per_s
    across = (domains - 1.0) * across_hop_s + (domains - 1.0) / domains * size_bytes / across_bytes_per_s
    return inside + across


def dispatch_bytes(
    num_tokens: Number, top_k: Number, hidden: Number, num_devices: Number, bytes_per_value: Number
) -> Number:
    """Return the bytes [B] that one device sends in a MoE dispatch with experts spread evenly over the devices.

    V = T · k · h · b / E · (E−1)/E: copies of a device's tokens that do not stay at home.

    >>> dispatch_bytes(2**20, 2.0, 4096.0, 64.0, bytes_per_value=2.0)
    264241152.0
    """
    return num_tokens * top_k * hidden * bytes_per_value / num_devices * (num_devices - 1.0) / num_devices


def places_hit(num_places: Number, top_k: Number) -> Number:
    """Return how many of the places (nodes, ranks) one token goes to, experts drawn evenly.

    E = p (1 − (1 − 1/p)^k)

    >>> round(places_hit(4.0, 8.0), 3), round(places_hit(8.0, 8.0), 3)
    (3.6, 5.251)
    """
    return num_places * (1.0 - (1.0 - 1.0 / num_places) ** top_k)

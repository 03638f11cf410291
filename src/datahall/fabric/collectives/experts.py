"""MoE dispatch and combine: a hierarchical all-to-all of whole tokens.

A token goes once to every node that holds one of its experts (normal kernels), or once to every expert
(low-latency kernels); what stays on the node travels over the scale-up links.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from datahall.fabric.collectives.algorithms.all_to_all import places_hit
from datahall.fabric.collectives.constants import Experts

Phase = Literal["dispatch", "combine"]
SCALE_BYTES = 4.0  # of each group of 128 values in FP8
SCALE_GROUP = 128.0


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """What one rank sends: tokens of a hidden size, each to top_k experts."""

    num_tokens: float
    hidden: float
    top_k: float
    bytes_per_value: float

    @property
    def token_bytes(self) -> float:
        """Bytes of one copy of a token; FP8 brings its scales.

        >>> Tokens(num_tokens=128, hidden=7168, top_k=8, bytes_per_value=1).token_bytes
        7392.0
        """
        scales = self.hidden / SCALE_GROUP * SCALE_BYTES if self.bytes_per_value == 1 else 0.0
        return self.hidden * self.bytes_per_value + scales


class ExpertTime(msgspec.Struct, frozen=True):
    """Time of a phase, and the payload that libraries divide by it for their bandwidth: local copies included."""

    time_s: float
    payload_bytes: float


def low_latency_time(
    kernel: Experts, tokens: Tokens, *, num_ranks: int, num_inside: int, scale_up_bytes_per_s: float,
    nic_bytes_per_s: float,
) -> ExpertTime:  # fmt: skip
    """Return the time [s] of kernels that send each token straight to each of its experts.

    T = base + max(V·(n−g)/n / (η NIC) + messages · m, V·g/n / (η' scale-up)), V = T · k · token

    Reference: DeepSeek, DeepEP, 2025.
    """
    payload = tokens.num_tokens * tokens.top_k * tokens.token_bytes
    away = 1.0 - num_inside / num_ranks
    inside = payload * (1.0 - away) / (kernel.inside_share * scale_up_bytes_per_s)
    across = 0.0
    if away > 0:
        messages = tokens.num_tokens * tokens.top_k * away
        across = payload * away / (kernel.nic_share * nic_bytes_per_s) + messages * kernel.message_s
    return ExpertTime(kernel.base_s + max(inside, across), payload)


def normal_time(
    kernel: Experts, tokens: Tokens, *, num_ranks: int, num_inside: int, scale_up_bytes_per_s: float,
    nic_bytes_per_s: float,
) -> ExpertTime:  # fmt: skip
    """Return the time [s] of kernels that send a token once to each node and fan it out there.

    Across nodes: V = T · token · E[nodes], of which (k−1)/k leave; the copies that fan out inside the nodes,
    W = T · token · E[ranks], take the scale-up links: T = max(V (k−1)/k / (η NIC), W / (η' scale-up), V / L).
    """
    domains = num_ranks / num_inside
    sent = tokens.num_tokens * tokens.token_bytes
    fanned = sent * float(places_hit(float(num_ranks), tokens.top_k))
    inside = fanned / (kernel.inside_share * scale_up_bytes_per_s)
    if domains <= 1:
        return ExpertTime(kernel.base_s + inside, fanned)
    payload = sent * float(places_hit(domains, tokens.top_k))
    wire = payload * (domains - 1.0) / domains / (kernel.nic_share * nic_bytes_per_s)
    taken_in = payload / kernel.logical_bytes_per_s if kernel.logical_bytes_per_s else 0.0
    return ExpertTime(kernel.base_s + max(wire, inside, taken_in), payload)

"""What a machine does beyond its datasheet: a few constants per scale-up domain, network and library.

`data/constants.json` holds them with the rows they were fitted on and the band that eight of ten other rows fell in.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Literal

import msgspec

from datahall.basis import Basis
from datahall.breakdown import Source

RAMP_FROM_BYTES = 8192.0
RAMP_DOUBLINGS = 2.0


class Protocol(msgspec.Struct, frozen=True, kw_only=True):
    """One way of moving bytes along a ring inside a scale-up domain.

    T = base ⊕ steps · hop ⊕ (steps + own) · S/n / rate, see `pipeline.overlapped`.
    """

    base_s: float
    hop_s: float
    bytes_per_s: float  # bus bandwidth a ring reaches
    own_steps: float = 0.0  # copying a rank's own share, in steps
    ramp: float = 0.0  # share by which a hop grows from 8 KB to 32 KB, as more threads take part
    overlap: float = 1.0


class Inside(msgspec.Struct, frozen=True, kw_only=True):
    """A scale-up domain under NCCL."""

    chip: str
    family: str
    source: Source
    fitted_on: str
    ll: Protocol
    simple: Protocol
    ll128: Protocol | None = None
    nvls_latency_s: float = 0.0
    nvls_bytes_per_s: float = 0.0  # 0: no NVLink SHARP
    nvls_large_gain: float = (
        1.0  # above 4 GiB multicast runs faster by this factor; seen on every machine, cause unknown
    )
    exchange: Protocol | None = None  # all-to-all and send/recv
    num_mesh_links: int = 0  # where links go from each chip to each other, so few chips use few of them

    def protocol(self, name: str) -> Protocol | None:
        return {"LL": self.ll, "LL128": self.ll128, "Simple": self.simple}[name]


class Across(msgspec.Struct, frozen=True, kw_only=True):
    """A scale-out network under NCCL; times by protocol: LL, LL128, Simple."""

    level: Basis  # measured on one system, on several of its kind, or NCCL's own constants
    source: Source
    fitted_on: str
    base_s: tuple[float, float, float]  # start of a collective that spans nodes
    hop_s: tuple[float, float, float]  # a step of a ring over the network
    tree_hop_s: tuple[float, float, float]  # a step of a tree over the network
    step_s: tuple[float, float, float]  # least time of a step inside a node while a proxy drives the ring
    share: tuple[float, float, float]  # of the NICs' rate that a ring reaches
    tree_share: tuple[float, float, float]  # of the NICs' rate that a tree reaches
    # most that LL gets through the NIC of a chip with a ring, and with a tree: its messages are small, half of them are
    # flags, and their number is limited, not their bytes; none: nobody saw it
    ll_bytes_per_s: tuple[float, float] | None = None
    taper: float = 0.0  # growth of a ring's time per byte with each doubling of nodes past four
    ramp: float = 0.0  # share by which an LL hop grows from 8 KB to 32 KB, as more channels post messages
    tree_overlap: float = 1.0  # of latency and transfer in a tree, Simple
    ll128: bool = True
    plugin_latency_s: float = 0.0  # what the network plug-in tells NCCL's tuner
    exchange_base_s: float = 20e-6  # all-to-all over the network
    cross_rail_share: float = 1.0  # rate that is left when peers sit on other rails
    message_s: float = 4e-7  # to post one message of an all-to-all

    def nic_share(
        self, protocol: int, nic_bytes_per_s: float, left_fraction: float, *, tree: bool = False
    ) -> float:
        """Share of a NIC's rate that a ring or a tree reaches with a protocol, by its place.

        Where a failure left a part of the NICs, and of the rate, messages go by that part.
        """
        share = (self.tree_share if tree else self.share)[protocol]
        most = self.most_bytes_per_s(protocol, tree=tree)
        return share if most is None else min(share, most * left_fraction / nic_bytes_per_s)

    def most_bytes_per_s(self, protocol: int, *, tree: bool = False) -> float | None:
        """Most that a protocol gets through a NIC, however fast that is."""
        return self.ll_bytes_per_s[tree] if self.ll_bytes_per_s is not None and protocol == 0 else None


class Ctran(msgspec.Struct, frozen=True, kw_only=True):
    """Meta's ctran, which drives the NICs of a rank itself: steps over RDMA, no scale-up links."""

    source: Source
    fitted_on: str
    base_s: float
    doubling_base_s: float
    reduce_hop_s: float
    gather_hop_s: float
    ramp_s: float  # what a hop gains from 4 KB to 32 KB
    nic_bytes_per_s: float
    overlap: float
    reduce_overlap: float
    first_nic_bytes: float  # without interleaving the first NIC alone takes messages up to this
    reduce_first_nic_bytes: float  # the same while reducing, which cuts messages into smaller pieces


class Wire(msgspec.Struct, frozen=True, kw_only=True):
    """One message over the network: the faster of a protocol for small messages and one for large ones."""

    source: Source
    fitted_on: str
    latency_s: float
    small_latency_s: float
    small_bytes_per_s: float
    nic_share: float
    num_nics: int = 1
    overlap: float = 1.0


class Multicast(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel that reads or writes through the NVSwitch's multicast: T = base ⊕ volume · S / rate."""

    source: Source
    fitted_on: str
    base_s: float
    bytes_per_s: float
    volume: Literal["all", "once", "share"]  # S·n (a rank gets all arrays), S, or S/n (a rank owns a share)
    overlap: float = 4.0
    doubling_s: float = 0.0  # what each doubling of ranks past four adds


class Experts(msgspec.Struct, frozen=True, kw_only=True):
    """A library for MoE dispatch and combine."""

    source: Source
    fitted_on: str
    base_s: float
    nic_share: float  # of the NIC that leaving tokens reach
    inside_share: float  # of the scale-up links that tokens within a domain reach
    logical_bytes_per_s: float = 0.0  # most that it takes in, local tokens included; 0: no such limit
    message_s: float = 0.0  # to post a token that leaves the node


class Library(msgspec.Struct, frozen=True, kw_only=True):
    """All constants."""

    inside: dict[str, Inside]
    across: dict[str, Across]
    ctran: Ctran
    wire: dict[str, Wire]
    multicast: dict[str, Multicast]
    experts: dict[str, Experts]
    harness_s: dict[str, float]
    bands: dict[str, tuple[float, float]]  # "engine level" -> measured/predicted at P10 and P90


@cache
def library() -> Library:
    """The shipped constants."""
    text = resources.files("datahall.fabric.collectives").joinpath("data/constants.json").read_bytes()
    return msgspec.json.decode(text, type=Library)

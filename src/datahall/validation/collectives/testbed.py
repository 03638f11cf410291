"""From the words that published runs describe their machine with to a `System`.

"H200 (4x p5en.48xlarge)" on "NVLink4 + EFA v3 3200 Gb/s per node" with 32 ranks on 4 nodes names a chip, a domain of
eight and 50 GB/s of network per rank.  What the words leave open is taken from the server that the chip is sold in;
what they cannot express is an error with the reason.
"""

from __future__ import annotations

import re
from math import isfinite

import msgspec

from datahall.catalog import load
from datahall.catalog.entries.chip import Chip
from datahall.errors import UnsupportedError
from datahall.fabric.collectives.algorithms.table import name_of
from datahall.fabric.collectives.constants import library
from datahall.fabric.collectives.system import DEFAULT_VERSION, System, family_of, inside_of, network_of

# first match wins: words in a description -> chip of the catalogue
CHIPS = (
    (r"\bgb300\b", "gb300"), (r"\bgb200\b", "gb200"), (r"\bgh200\b", "gh200"), (r"\bb300\b", "b300-sxm"),
    (r"\bb200\b|\bsm100\b", "b200-sxm"), (r"\bh200\b", "h200-sxm"), (r"\bh800\b", "h800-sxm"), (r"\bh20\b", "h20"),
    (r"\bh100 pcie\b", "h100-pcie"), (r"\bh100\b|\bsm90\b", "h100-sxm"), (r"\ba100 40\s?gb\b", "a100-sxm-40gb"),
    (r"\ba800\b", "a800-sxm-80gb"), (r"\ba100\b", "a100-sxm-80gb"), (r"\bv100\b", "v100-sxm2-32gb"),
    (r"\bmi355x\b", "mi355x"), (r"\bmi350x\b", "mi350x"), (r"\bmi325x\b", "mi325x"), (r"\bmi300x\b", "mi300x"),
    (r"\bmi250x?\b", "mi250x"), (r"\bl40s\b", "l40s"), (r"\bl4\b", "l4"), (r"\brtx pro 6000\b", "rtx-pro-6000"),
    (r"\ba40\b", "a40"), (r"\btpu[ -]?v5p\b", "tpu-v5p"), (r"\btpu[ -]?v5e\b", "tpu-v5e"),
    (r"\btpu[ -]?v6e\b|\btrillium\b", "tpu-v6e"), (r"\btpu[ -]?v4\b", "tpu-v4"),
)  # fmt: skip
FABRICS = (
    (r"\befa\b", "efa"), (r"\broce", "roce"), (r"\bslingshot\b", "slingshot"),
    (r"\binfiniband\b|\bib\b|\bhdr\b|\bndr\b|\bcx-?[78]\b|\bconnectx", "infiniband"), (r"\bethernet\b|\btcp", "roce"),
)  # fmt: skip
NO_SCALE_UP = (
    r"nvlink disabled|mnnvl off|p2p/shm off|pure rdma|loopback|no intra-node|ib only|nvlink/shm disabled"
)
HOST_SHARE = 0.85  # of a PCIe link's rate that a NIC's traffic reaches; one chip cannot feed many NICs
NETWORK_RATES_GBIT = {  # of one node of an instance that is named instead of its NICs
    r"\bp4de?\b": 400.0, r"\bp5(?:en?)?\b": 3200.0, r"\bp6-b[23]00\b": 3200.0, r"ndm?v4": 1600.0,
    r"\bndv5|nd h100 v5|nd h200 v5": 3200.0, r"a3-ultra": 3200.0, r"a3-mega": 1600.0,
}  # fmt: skip


class Rig(msgspec.Struct, frozen=True, kw_only=True):
    """A system and what a run did with it."""

    system: System
    num_ranks: int
    only: tuple[str, ...] = ()  # algorithms that were forced
    without: tuple[str, ...] = ()  # algorithms that were switched off


def chip_named(words: str) -> Chip | None:
    """The chip that a description names, if any.

    >>> chip_named("H200 (4x p5en.48xlarge)").name
    'h200-sxm'
    """
    found = next((name for pattern, name in CHIPS if re.search(pattern, words.lower())), "")
    return load().chip(found) if found else None


def read_testbed(
    hardware: str, interconnect: str, *, num_ranks: int, num_nodes: int, algorithm: str = "", notes: str = "",
    level: str | None = None,
) -> Rig:  # fmt: skip
    """Make a system of a description; raises `UnsupportedError` where it says too little."""
    words = f"{hardware} {interconnect} {notes}".lower()
    chip = chip_named(hardware) or chip_named(interconnect)
    alone = num_ranks == num_nodes
    if chip is None:
        raise UnsupportedError("the source does not name the chip")
    apart = bool(re.search(NO_SCALE_UP, f"{hardware} {interconnect}".lower()))
    num_domain = 1 if apart or alone else _domain(chip, f"{hardware} {interconnect}", num_ranks, num_nodes)
    fabric = _fabric(words)
    per_node = max(1, -(-num_ranks // max(1, num_nodes)))
    nic = network_rate(f"{hardware} {interconnect}", per_node, chip)
    outside = num_domain < num_ranks
    if outside and nic <= 0:
        raise UnsupportedError("the source does not say what network joins the nodes")
    wire = load().scale_up_of(chip)
    inside, basis = inside_of(chip, wire, "datasheet" if level == "datasheet" else None)
    if isfinite(chip.host_bytes_per_s):
        nic = min(nic, HOST_SHARE * chip.host_bytes_per_s)
    net = network_of(fabric, level)
    system = System(
        name=f"{chip.name} {fabric}" if outside else chip.name,
        chip=chip.name,
        family=family_of(chip),
        silicon=chip.family,
        scale_up_technology=wire.technology if wire is not None else "",
        num_domain=num_domain,
        scale_up_bytes_per_s=chip.scale_up_bytes_per_s,
        nic_bytes_per_s=nic,
        inside=inside,
        across=net if nic else None,
        fabric=fabric,
        version=_version(f"{algorithm} {notes}"),
        nvls="nvls disabled" not in algorithm.lower() and "nvls_enable=0" not in notes.lower(),
        num_channels=int(found[1]) if (found := re.search(r"(\d+) channels", words)) else 0,
        inside_level=basis,
        harness_s=library().harness_s["pytorch"] if re.search(r"pytorch|torch", notes.lower()) else 0.0,
    )
    return Rig(system=system, num_ranks=num_ranks, only=_forced(algorithm))


def _domain(chip: Chip, words: str, num_ranks: int, num_nodes: int) -> int:
    """Ranks of one scale-up domain: a rack where NVLink leaves the tray, otherwise a node."""
    per_node = max(1, -(-num_ranks // max(1, num_nodes)))
    rack = chip.num_scale_up_domain > 8 and re.search(r"nvlink|nvl\d+|\brack", words.lower())
    if rack:
        racks = -(-num_ranks // chip.num_scale_up_domain)
        return max(per_node, -(-num_ranks // racks))
    return per_node


def network_rate(words: str, per_node: int, chip: Chip | None) -> float:
    """One-way network bandwidth of one rank [B/s], from words or from the server that the chip is sold in.

    >>> network_rate("NVLink4 + 8x400G NDR InfiniBand", 8, None), network_rate("EFA 400 Gb/s per node", 8, None)
    (50000000000.0, 6250000000.0)
    """
    text = words.lower()
    if found := re.search(r"(\d+)\s*nics?/rank", text):
        speed = re.search(r"(\d+)\s*g(?:b|bit)?(?:/s|\b)", text)
        return int(found[1]) * (float(speed[1]) if speed else 400.0) * 1e9 / 8
    if found := re.search(r"(\d+)\s*x\s*(\d+)\s*g(?:b/s|bit|\b)", text):
        return int(found[1]) * float(found[2]) * 1e9 / 8 / per_node
    if found := re.search(r"(\d+)\s*gb/s per node", text):
        return float(found[1]) * 1e9 / 8 / per_node
    if found := re.search(r"(\d+)\s*g\b[^,;]*\(one nic\)|one (\d+)g nic", text):
        return float(found[1] or found[2]) * 1e9 / 8 / per_node
    if found := re.search(r"\b(\d{3})\s*g\b", text):
        return float(found[1]) * 1e9 / 8
    for pattern, gbit in NETWORK_RATES_GBIT.items():
        if re.search(pattern, text):
            return gbit * 1e9 / 8 / per_node
    return _sold_with(chip)


def _sold_with(chip: Chip | None) -> float:
    if chip is None:
        return 0.0
    relative = {"h800-sxm": "h100-sxm", "h20": "h100-sxm", "a800-sxm-80gb": "a100-sxm-80gb"}.get(
        chip.name, chip.name
    )
    for server in load().servers():
        if server.chip == relative and server.form in {"server", "rack"}:
            share = server.network_bytes_per_s_per_chip
            return share if isfinite(share) else 0.0
    return 0.0


def _fabric(words: str) -> str:
    kind = next((name for pattern, name in FABRICS if re.search(pattern, words)), "infiniband")
    return "efa-1" if kind == "efa" and re.search(r"\bp4de?\b|400 gb/s per node", words) else kind


def _version(words: str) -> tuple[int, int]:
    found = re.search(r"\b(\d)\.(\d+)(?:\.\d+)?\b", words)
    return (int(found[1]), int(found[2])) if found and found[1] == "2" else DEFAULT_VERSION


def _forced(algorithm: str) -> tuple[str, ...]:
    """Algorithms that a run was limited to; a bare "NVLS" says that it was on, not that it was chosen.

    >>> _forced("NVLSTree (forced)"), _forced("Ring (NCCL 2.16.5)"), _forced("NVLS"), _forced("NCCL default")
    (('NVLS tree',), ('ring',), (), ())
    """
    text = algorithm.lower()
    if re.search(r"nvls ?tree|nvlink sharp path", text):
        return (name_of("nvls-tree"), name_of("nvls"))[: 1 if "tree" in text else 2]
    if re.match(r"ring", text):
        return (name_of("ring"),)
    return (name_of("tree"),) if re.match(r"tree", text) else ()

"""The time of one collective on a torus or mesh as a chain: hops, links of all axes, or the bisection."""

from __future__ import annotations

from collections.abc import Sequence

from datahall.breakdown import Breakdown, assumed, derived, maximum, product, quotient, total
from datahall.errors import UnsupportedError, option
from datahall.fabric.collectives.algorithms.bus import Collective
from datahall.fabric.collectives.algorithms.moves import MOVES
from datahall.fabric.collectives.algorithms.torus import TorusGroup, buckets
from datahall.fabric.collectives.figure import Told

ON_A_TORUS = tuple(name for name, row in MOVES.items() if row.on_torus)
HOP_NOTE = "of one link, as much in the kernel as on the wire; Austin et al., How to Scale Your Model, 2025"
SPAN = 8.0  # half of a ring's chips send half of their array over two links: S · X / 8


def check_on_torus(collective: Collective, topology: str) -> None:
    """Raise where no published algorithm says how a torus does it."""
    if collective not in ON_A_TORUS:
        raise UnsupportedError(
            f"{collective} on a {topology} is not modelled",
            field="collective",
            hint=f"one of {', '.join(ON_A_TORUS)}, or {option('on', 'fat-tree')}",
        )


def torus_algorithm(collective: Collective) -> str:
    """What runs there, in words; NCCL does not."""
    return "bucket" if MOVES[collective].on_torus == "buckets" else "direct"


def torus_form(
    collective: Collective,
    size: Breakdown,
    group: TorusGroup,
    *,
    link: Breakdown,
    hop_s: float,
) -> Told:
    """The chain of `torus.torus_times` inside a slice; `link` is one way of one link."""
    hop = assumed("a hop", hop_s, "s", HOP_NOTE)
    row = MOVES[collective]
    if row.on_torus == "link":
        transfer = quotient("transfer", size, link, "s")
        steps = max(group.apart, default=1)
        if steps == 1:
            return Told(total("closed form", [hop, transfer]), transfer.value)
        once = total("a link", [hop, transfer])
        links = derived("links to the next rank", steps, "count", note="which as many groups share")
        return Told(product("closed form", [links, once], "s"), steps * transfer.value)
    if row.on_torus == "bisection":
        return _bisected(size, group.spans or (1,), link, hop, wrapped=group.rings)
    gather = _bucket(size, group, link, hop)
    if row.num_rounds > 1:
        phases = derived("phases", row.num_rounds, "count", note="reduce-scatter, then all-gather")
        figure = product("closed form", [phases, gather.figure], "s")
        return Told(figure, row.num_rounds * gather.inside_s)
    return gather._replace(figure=gather.figure.named("closed form"))


def _bucket(size: Breakdown, group: TorusGroup, link: Breakdown, hop: Breakdown) -> Told:
    """Buckets pass along every axis both ways; a chip in the corner of a mesh has one link an axis only."""
    spread = buckets(group.axes, group.apart, wrapped=group.rings)
    latency = product("latency", [derived("hops", spread.num_hops, "count"), hop], "s")
    if not spread.num_links:  # one rank a slice: nothing passes inside
        return Told(latency.named("all-gather"), 0.0)
    if spread.cut > spread.share / spread.num_links:
        part = derived("over each link", spread.cut, "ratio", note="of the axis that most groups share")
        transfer = quotient("transfer", product("bytes over a link", [size, part], "bytes"), link, "s")
        return Told(maximum("all-gather", [latency, transfer]), transfer.value)
    sent = (
        size
        if spread.share == 1.0
        else product("bytes", [size, derived("share", spread.share, "ratio", note="(N − 1)/N")], "bytes")
    )
    note = (
        "of all axes" if set(group.apart) == {1} else "of all axes, less what groups between its ranks take"
    )
    busy = derived("links of a chip in use", spread.num_links, "count", note=note)
    transfer = quotient("transfer", sent, product("links of all axes", [busy, link], "bytes_per_s"), "s")
    return Told(maximum("all-gather", [latency, transfer]), transfer.value)


def _bisected(
    size: Breakdown, axes: Sequence[int], link: Breakdown, hop: Breakdown, *, wrapped: bool
) -> Told:
    """Half of everything crosses the middle of the longest axis."""
    hops = derived("hops", sum(length // 2 for length in axes), "count")
    part = max(axes) / (SPAN if wrapped else SPAN / 2.0)
    crossing = product(
        "bytes over a link of the bisection",
        [size, derived("share of the array", part, "ratio", note="longest axis / 8, on a line / 4")],
        "bytes",
    )
    transfer = quotient("over the bisection", crossing, link, "s")
    return Told(total("closed form", [product("latency", [hops, hop], "s"), transfer]), transfer.value)

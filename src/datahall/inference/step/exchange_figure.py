"""What the chips of a replica send each other in one pass, as a figure: messages, links and fitted constants."""

from __future__ import annotations

import msgspec
import numpy as np

from datahall.breakdown import (
    Breakdown,
    derived,
    fitted,
    minimum,
    modelled,
    product,
    quotient,
    total,
)
from datahall.cluster.cluster import Cluster, cluster_of
from datahall.cluster.collective import group_figure, stage_figure
from datahall.cluster.network import DOMAIN
from datahall.fabric.collectives.algorithms.bus import Collective
from datahall.fabric.collectives.constants import library
from datahall.fabric.collectives.crossing import crossed
from datahall.fabric.collectives.engine_all_reduce import CustomConstants
from datahall.fabric.collectives.figure import LEFT
from datahall.fabric.collectives.host_staged import staged_link, staged_times
from datahall.fabric.topology.cuts import Cut
from datahall.inference.engine.replica import Replica, replica_system
from datahall.inference.step.exchange import (
    by_all_to_all,
    exchange,
    own_all_reduce,
    reduced_blocks,
)
from datahall.workload.memory.figure import size_figure


def exchange_figure(replica: Replica, num_tokens: float) -> Breakdown | None:
    """What one pass of so many new tokens of a rank spends on sending; None where nothing is sent."""
    sent = exchange(replica, np.array([num_tokens]))
    parts = [_between_layers(replica, num_tokens)] if replica.tp > 1 else []
    if (expert_s := float(sent.expert_s[0])) > 0:
        parts.append(_at_experts(replica, num_tokens, expert_s))
    if replica.pp > 1:
        parts.append(_between_stages(replica, num_tokens))
    return total("exchange", parts).with_note(basis=sent.level) if parts else None


def gather_figure(replica: Replica, num_rows: float) -> Breakdown:
    """The shares of the vocabulary brought together on each of the tp chips, once in each micro-batch."""
    logits = size_figure(replica.model, "vocab", replica.model.vocab, "logits of a row")
    size = product("logits", (_tokens("rows", num_rows), logits, _value_bytes(replica)), "bytes")
    times = derived("times", replica.pp, "count", "once a micro-batch")
    return product("logits brought together", (times, _library(replica, "all-gather", size, replica.tp)), "s")


def _between_layers(replica: Replica, num_tokens: float) -> Breakdown:
    """A reduction after every block, and one of the embedding, which is cut by vocabulary."""
    size = _hidden(replica, _tokens("tokens", num_tokens))
    meets = replica.dp > 1 and replica.model.moe is not None
    blocks, _ = reduced_blocks(replica.model, at_experts=not meets)
    times = derived("reductions", blocks + 1, "count", "one a block, one of the embedding")
    own = own_all_reduce(replica)
    each = (
        _library(replica, "all-reduce", size, replica.tp) if own is None else _engine(own, replica.tp, size)
    )
    return product("between the chips that share a layer", (times, each), "s", f"tp = {replica.tp}")


def _engine(own: CustomConstants, num_ranks: int, size: Breakdown) -> Breakdown:
    """The fastest of an engine's own kernels and the library in its graph; see `engine_all_reduce`."""

    def constant(name: str, value: float, unit: str) -> Breakdown:
        return fitted(name, value, unit, own.fitted_on, own.source)

    def way(name: str, start_s: float, share: float, bytes_per_s: float) -> Breakdown:
        waits = product(
            "waiting",
            (
                derived("ranks past two", num_ranks - 2, "count"),
                constant("flag of a rank", own.hop_s, "s"),
            ),
            "s",
        )
        passes = derived("passes of it", share, "ratio", f"over {num_ranks} ranks")
        moved = quotient(
            "sending",
            product("bytes sent", (size, passes), "bytes"),
            constant("rate", bytes_per_s, "bytes_per_s"),
            "s",
        )
        return total(name, (constant("start", start_s, "s"), waits, moved))

    ring = 2.0 * (num_ranks - 1) / num_ranks
    bus = float(np.exp(np.interp(np.log2(num_ranks), [1.0, 2.0, 3.0], np.log(own.bus_bytes_per_s))))
    ways = (
        way("one shot", own.base_s, num_ranks - 1.0, own.one_shot_bytes_per_s),
        way("two shots", own.two_shot_s, ring, own.two_shot_bytes_per_s),
        way("library", own.library_s, ring, bus),
    )
    return minimum(f"all-reduce of {num_ranks} ranks", ways, f"the fastest that {own.engine} has")


def _at_experts(replica: Replica, num_tokens: float, time_s: float) -> Breakdown:
    """Tokens that meet at the experts and return."""
    name, what, ranks = (
        "between attention and experts",
        f"dp = {replica.dp}, ep = {replica.ep}",
        replica.tp * replica.dp,
    )
    if by_all_to_all(replica):
        moe, kernels = replica.model.moe, library().experts.values()
        assert moe is not None
        inputs = (
            _hidden(replica, _tokens("tokens of a rank", num_tokens)),
            size_figure(replica.model, "moe.top_k", moe.top_k, "experts of a token"),
            derived("ranks", ranks, "count"),
            *_links_crossed(replica, ranks),
        )
        sources = tuple(dict.fromkeys(one.source for one in kernels))
        return modelled(name, time_s, "s", f"{what}; kernels of DeepEP, there and back", *inputs).with_note(
            sources=sources
        )
    _, layers = reduced_blocks(replica.model, at_experts=False)
    size = _hidden(replica, _tokens("tokens of all ranks", num_tokens * replica.dp))
    both = total(
        "there and back",
        [_library(replica, kind, size, ranks) for kind in ("all-gather", "reduce-scatter")],
    )
    return product(name, (derived("layers of experts", layers, "count"), both), "s", what)


def _between_stages(replica: Replica, num_tokens: float) -> Breakdown:
    """The hidden state handed on, a share of it by each of the tp chips."""
    whole = _hidden(replica, _tokens("tokens", num_tokens))
    size = quotient("share of a chip", whole, derived("tp", replica.tp, "count"), "bytes")
    each = stage_figure(_machine(replica), size, replica.pp, replica.tp * replica.dp)
    times = derived("times", replica.pp, "count", "from each stage to the next")
    return product("between stages", (times, each), "s", f"pp = {replica.pp}")


def _library(replica: Replica, collective: Collective, size: Breakdown, num_ranks: int) -> Breakdown:
    """A collective of the library, or of cards that send through their host."""
    if replica.peer_to_peer:
        return group_figure(_machine(replica), collective, size, num_ranks)
    link = staged_link(replica_system(replica), replica.engine.stack)
    rate = derived("a card through its host, one way", link.bytes_per_s, "bytes_per_s", link.level)
    time_s = float(staged_times(collective, np.array([size.value]), num_ranks, link.bytes_per_s)[0])
    by = "a ring whose messages cross host memory"
    ranks = derived("ranks", num_ranks, "count")
    return modelled(f"{collective} of {num_ranks} ranks", time_s, "s", by, size, ranks, rate)


def _machine(replica: Replica) -> Cluster:
    """The machine of a replica with the leaves of its links."""
    sold = cluster_of(replica.chip, replica.num_chips)
    if replica.system is None:
        return sold
    wires = sold.wires._replace(nic=replica.network or sold.wires.nic)
    return msgspec.structs.replace(sold, system=replica.system, wires=wires)


def _hidden(replica: Replica, tokens: Breakdown) -> Breakdown:
    width = size_figure(replica.model, "hidden", replica.model.hidden, "width")
    return product("message", (tokens, width, _value_bytes(replica)), "bytes")


def _value_bytes(replica: Replica) -> Breakdown:
    return derived(
        "bytes of a value", replica.precision.wide_bytes_per_value, "bytes", replica.precision.wide
    )


def _tokens(name: str, value: float) -> Breakdown:
    return derived(name, value, "count", "of a pass")


def _links_crossed(replica: Replica, num_ranks: int) -> list[Breakdown]:
    """What ranks side by side send over: ports and narrow places, with what failures left of them.

    Inside its scale-up domain it is the links there.
    """
    near = replica_system(replica)
    if num_ranks <= near.num_domain:
        return [_machine(replica).wires.scale_up]
    port = replica.network or derived("network of a chip, one way", near.nic_bytes_per_s, "bytes_per_s")
    return [port, *(_way_out(cut) for cut in crossed(near, num_ranks) if cut.name != DOMAIN)]


def _way_out(cut: Cut) -> Breakdown:
    """The way out of a part of the fabric, shared by the chips below it."""
    name, left = f"way out of a {cut.name}, one way", cut.left_fraction
    if left == 1.0:
        return derived(name, cut.bytes_per_s, "bytes_per_s", f"of {cut.num_below:,} chips")
    whole = derived(f"{name}, whole", cut.bytes_per_s / left, "bytes_per_s", f"of {cut.num_below:,} chips")
    return product(
        name, [whole, derived(LEFT, left, "fraction", f"of the way out of a {cut.name}")], "bytes_per_s"
    )

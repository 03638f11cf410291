"""How flows share links: who is on a link, and new rates after an event.

Rates are solved again only where a change can be felt.  The flows that changed are solved against what all
others leave free; then every flow on the links they pass must still have its bottleneck: a full link on which
nobody has more per weight.  Those that do not join the region, and it is solved again.  An allocation in
which every flow has its bottleneck is the max-min fair one, and there is only one (Bertsekas & Gallager, Data
Networks, 1992, §6.5.2).
"""

from __future__ import annotations

import numpy as np

from datahall.compiled import inline
from datahall.events.schedule import cancel, is_pending, push, reschedule
from datahall.fabric.flows.loop.state import END, MOVES, SLACK, State, take_flow, take_link
from datahall.fabric.flows.rates import fill_rates, held_back
from datahall.fabric.topology.graph import Floats, Ints


@inline
def begin(s: State, flow: int, now: float) -> None:
    """The first byte leaves: the flow takes part in sharing its links."""
    f, c = s.flows[flow], s.counts[0]
    f["does"], f["since"], f["left"], f["place"] = MOVES, now, f["num_bytes"], c["active"]
    f["counted"] = 0.0
    s.active[c["active"]] = flow
    c["active"] += 1
    choose(s, flow)
    enter(s, flow)


@inline
def choose(s: State, flow: int) -> None:
    """Of the ways that a flow may take, that on which it would get most beside what is there; of equals the first."""
    f = s.flows[flow]
    best = -1.0
    for number in range(f["ways_first"], f["ways_last"]):
        way = s.ways[number]
        level = np.inf
        for place in range(way["first"], way["last"]):
            entry = s.entries[place]
            link = s.links[entry["link"]]
            level = min(level, link["capacity"] / (link["load"] + f["weight"] * entry["share"]))
        if level > best * (1.0 + SLACK):
            best = level
            f["first"], f["last"] = way["first"], way["last"]


@inline
def turn_off(s: State, flow: int, first: int, last: int, now: float) -> None:
    """A flow has other ways from now on; one that is under way takes one with all that it still has to move."""
    f = s.flows[flow]
    f["ways_first"], f["ways_last"] = first, last
    if f["does"] == MOVES:
        settle(s, flow, now)
        leave(s, flow, f["num_bytes"] - f["left"] - f["counted"])
        f["counted"] = f["num_bytes"] - f["left"]
        choose(s, flow)
        enter(s, flow)


@inline
def enter(s: State, flow: int) -> None:
    """Take a place on every link of the way."""
    take_flow(s, flow)
    for place in range(s.flows[flow]["first"], s.flows[flow]["last"]):
        entry = s.entries[place]
        link = s.links[entry["link"]]
        link["load"] += s.flows[flow]["weight"] * entry["share"]
        entry["owner"], entry["after"], entry["ahead"] = flow, link["head"], -1
        if link["head"] >= 0:
            s.entries[link["head"]]["ahead"] = place
        link["head"] = place


@inline
def leave(s: State, flow: int, num_bytes: float) -> None:
    """The links are free for others, and so many bytes have passed them."""
    for place in range(s.flows[flow]["first"], s.flows[flow]["last"]):
        entry = s.entries[place]
        link = s.links[entry["link"]]
        link["carried"] += num_bytes * entry["share"]
        link["load"] -= s.flows[flow]["weight"] * entry["share"]
        if entry["ahead"] >= 0:
            s.entries[entry["ahead"]]["after"] = entry["after"]
        else:
            link["head"] = entry["after"]
        if entry["after"] >= 0:
            s.entries[entry["after"]]["ahead"] = entry["ahead"]
        take_link(s, entry["link"])


@inline
def finish(s: State, flow: int) -> None:
    """The last byte has arrived."""
    f, c = s.flows[flow], s.counts[0]
    c["active"] -= 1
    last = s.active[c["active"]]
    s.active[f["place"]] = last
    s.flows[last]["place"] = f["place"]
    leave(s, flow, f["num_bytes"] - f["counted"])


@inline
def narrow(s: State, number: int, bytes_per_s: float) -> None:
    """A link carries less or more from now on, and all who are on it feel that."""
    s.links[number]["capacity"] = bytes_per_s
    place = s.links[number]["head"]
    while place >= 0:
        take_flow(s, s.entries[place]["owner"])
        place = s.entries[place]["after"]


@inline
def solve(s: State, head_of_line: bool) -> None:
    """Rates of the region from what the flows outside it leave free."""
    region = s.region[: s.counts[0]["region"]]
    for flow in region:
        for place in range(s.flows[flow]["first"], s.flows[flow]["last"]):
            take_link(s, s.entries[place]["link"])
    for number in s.seen[: s.counts[0]["seen"]]:
        link = s.links[number]
        link["free"] = link["capacity"]
        place = link["head"] if region.size < s.counts[0]["active"] else -1
        while place >= 0:
            entry = s.entries[place]
            if not s.flows[entry["owner"]]["inside"]:
                link["free"] -= s.flows[entry["owner"]]["rate"] * entry["share"]
            place = entry["after"]
    if region.size > 0:
        s.counts[0]["solves"] += 1
        s.counts[0]["solved"] += region.size
        fill(s, region, s.flows["cap"])
        if head_of_line:
            held = held_back(
                region, s.entries["link"], s.flows["first"], s.flows["last"], s.links.size, s.flows["weight"],
                s.flows["cap"], s.flows["rate"], s.flows["bottleneck"],
            )  # fmt: skip
            fill(s, region, held)


@inline
def fill(s: State, region: Ints, cap: Floats) -> None:
    """Fill links progressively, with some caps on flows."""
    fill_rates(
        region, s.entries["link"], s.flows["first"], s.flows["last"], s.entries["share"], s.links["free"],
        s.flows["weight"], cap, s.links["slot"], s.flows["rate"], s.flows["bottleneck"],
    )  # fmt: skip


@inline
def widen(s: State) -> None:
    """Widen the region by flows that lost their bottleneck, or have more than one that they hold back."""
    for number in s.seen[: s.counts[0]["seen"]]:
        link = s.links[number]
        used, highest, lowest = 0.0, 0.0, np.inf
        place = link["head"]
        while place >= 0:
            entry = s.entries[place]
            f = s.flows[entry["owner"]]
            level = f["rate"] / f["weight"]
            used += f["rate"] * entry["share"]
            highest = max(highest, level)
            if f["inside"] and f["bottleneck"] == number:
                lowest = min(lowest, level)
            place = entry["after"]
        link["peak"] = max(link["peak"], used)
        full = used >= link["capacity"] * (1.0 - SLACK)
        place = link["head"]
        while place >= 0:
            entry = s.entries[place]
            f = s.flows[entry["owner"]]
            level = f["rate"] / f["weight"]
            lost = f["bottleneck"] == number and (not full or level < highest * (1.0 - SLACK))
            if lost or level > lowest * (1.0 + SLACK):
                take_flow(s, entry["owner"])
            place = entry["after"]


@inline
def settle(s: State, flow: int, now: float) -> None:
    """Count what a flow has moved until now."""
    f = s.flows[flow]
    f["left"] = max(0.0, f["left"] - f["rate"] * (now - f["since"]))
    f["since"] = now


@inline
def share_again(s: State, now: float, head_of_line: bool, whole: bool) -> None:
    """New rates after an event, for as few flows as it can be felt by."""
    c, settled = s.counts[0], 0
    while True:
        if whole or head_of_line or 2 * c["region"] > c["active"]:
            for flow in s.active[: c["active"]]:
                take_flow(s, flow)
        for flow in s.region[settled : c["region"]]:
            settle(s, flow, now)
        settled = c["region"]
        solve(s, head_of_line)
        widen(s)
        if c["region"] == settled:
            break
    for flow in s.region[:settled]:
        f = s.flows[flow]
        f["inside"] = False
        if f["rate"] <= 0.0:
            cancel(s.queue, f["token"])
        elif is_pending(s.queue, f["token"]):
            reschedule(s.queue, f["token"], now + f["left"] / f["rate"])
        else:
            f["token"] = push(s.queue, now + f["left"] / f["rate"], END, flow)
    for number in s.seen[: c["seen"]]:
        s.links[number]["marked"] = False
    c["region"] = c["seen"] = 0

"""Which nodes a job gets: the first that fit, or as few leaves and pods as can be."""

from __future__ import annotations

from datahall.compiled import inline
from datahall.scheduling.loop.state import NEAREST, NONE, Ints, State, clear


@inline
def usable(s: State, node: int, beyond: bool) -> int:
    """Chips of a node that a job may have: what is free, and where it runs `beyond` a reservation, not kept by it."""
    free = s.nodes.free[node]
    return int(min(free, s.nodes.after[node]) if beyond else free)


@inline
def place(s: State, job: int, beyond: bool) -> bool:
    """Choose nodes for a job that fits; whether there are such."""
    one = s.jobs[job]
    chosen = False
    if s.policy[0]["placement"] == NEAREST:
        if one["nodes"] == 1:
            return tightest(s, job, beyond)
        chosen = choose_leaves(s, job, beyond)
    while not fill(s, job, beyond, chosen):
        if not chosen:
            return False
        chosen = False  # nodes with a chip more are elsewhere
    return True


@inline
def fill(s: State, job: int, beyond: bool, chosen: bool) -> bool:
    """Take nodes in order, of chosen leaves only or of all; those with a chip more than others need come first."""
    one = s.jobs[job]
    more, rest = 0, 0
    for node in range(s.nodes.free.size):
        if chosen and s.nodes.marked[s.nodes.leaf[node]] == 0:
            continue
        more, rest = take_node(s, job, node, usable(s, node, beyond), more, rest)
        if more + rest == one["nodes"]:
            return True
    return False


@inline
def take_node(s: State, job: int, node: int, chips: int, more: int, rest: int) -> tuple[int, int]:
    """Put a node with so many chips beside those that a job has: with a chip more, or without, whichever it lacks."""
    one = s.jobs[job]
    base, extra = one["base"], one["extra"]
    if chips > base and more < extra:
        s.places[one["first"] + more] = node
        more += 1
    elif chips >= base and rest < one["nodes"] - extra:
        s.places[one["first"] + extra + rest] = node
        rest += 1
    return more, rest


@inline
def tightest(s: State, job: int, beyond: bool) -> bool:
    """The node with the fewest free chips that are enough: best fit."""
    one = s.jobs[job]
    best, left = NONE, 0
    for node in range(s.nodes.free.size):
        chips = usable(s, node, beyond) - one["chips"]
        if chips >= 0 and (best == NONE or chips < left):
            best, left = node, chips
            if chips == 0:
                break
    if best == NONE:
        return False
    s.places[one["first"]] = best
    return True


@inline
def choose_leaves(s: State, job: int, beyond: bool) -> bool:
    """Mark leaves to take nodes of: the tightest that holds the job, or the fewest of the tightest pod that does."""
    one, nodes = s.jobs[job], s.nodes
    clear(nodes.in_leaf)
    clear(nodes.in_pod)
    clear(nodes.marked)
    for node in range(nodes.free.size):
        if usable(s, node, beyond) >= one["base"]:
            nodes.in_leaf[nodes.leaf[node]] += 1
            nodes.in_pod[nodes.pod[node]] += 1
    leaf = tightest_of(nodes.in_leaf, one["nodes"])
    if leaf != NONE:
        nodes.marked[leaf] = 1
        return True
    pod = tightest_of(nodes.in_pod, one["nodes"])
    if pod != NONE:
        for node in range(nodes.free.size):
            if nodes.pod[node] != pod:
                nodes.in_leaf[nodes.leaf[node]] = 0
    left = one["nodes"]
    while left > 0:
        leaf = tightest_of(nodes.in_leaf, left)
        if leaf == NONE:
            leaf = 0
            for other in range(1, nodes.in_leaf.size):
                if nodes.in_leaf[other] > nodes.in_leaf[leaf]:
                    leaf = other
        if nodes.in_leaf[leaf] == 0:
            return False
        left -= nodes.in_leaf[leaf]
        nodes.in_leaf[leaf] = 0
        nodes.marked[leaf] = 1
    return True


@inline
def tightest_of(held: Ints, wanted: int) -> int:
    """The group with the fewest nodes that are enough, or none."""
    best = NONE
    for group in range(held.size):
        if held[group] >= wanted and (best == NONE or held[group] < held[best]):
            best = group
    return best


@inline
def tier_crossed(s: State, job: int) -> int:
    """What the nodes of a job lie across: 0 one leaf, 1 leaves of a pod, 2 pods."""
    one, nodes = s.jobs[job], s.nodes
    start, far = s.places[one["first"]], 0
    for index in range(1, one["nodes"]):
        node = s.places[one["first"] + index]
        if nodes.pod[node] != nodes.pod[start]:
            return 2
        if nodes.leaf[node] != nodes.leaf[start]:
            far = 1
    return far


@inline
def slowed(s: State, job: int, far: int) -> float:
    """Times that its run takes longer for lying across more than it must: what it sends goes the narrow way.

    stretch = 1 + f (r/r₀ − 1), f: share of its time that the network takes where it lies as close as can be, r: how
    much narrower than inside a leaf what it crosses is, r₀: the same of what it crosses wherever it lies.
    """
    one = s.jobs[job]
    if far <= one["needed"]:
        return 1.0
    share, ratios = one["network_fraction"], s.nodes.ratios
    return float(1.0 + share * (ratios[far] / ratios[one["needed"]] - 1.0))

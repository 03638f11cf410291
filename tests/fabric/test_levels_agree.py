"""The closed form against flows that share links, over fabrics, tapers, collectives, sizes, chips and ranks of them.

One counts bytes over places and links, the other routes every flow and solves what it gets.
"""

from __future__ import annotations

import random
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from datahall.catalog import load
from datahall.errors import DatahallError
from datahall.fabric.collectives.crossing import Sends, crossing_s
from datahall.fabric.design.asked import fabric_of
from datahall.fabric.flows.asked import job_of
from datahall.fabric.flows.closed_form import closed_form_s
from datahall.fabric.flows.jobs import Job, Net, Routing, traffic
from datahall.fabric.flows.symmetry import simulate_folded
from datahall.fabric.routing.pooling import pooled
from datahall.fabric.topology.cuts import cuts
from datahall.fabric.topology.graph import Fabric
from datahall.scenario.sections.fabric import FabricDesign, FabricJob

LIMITS = Path(__file__).parents[2] / "docs/limits.md"
TAPERED = ("fat-tree", "clos", "leaf-spine", "rail-optimised")
FABRICS = [
    *((name, taper) for name in TAPERED for taper in (1.0, 2.0, 4.0)),
    *(
        (name, 1.0)
        for name in ("tree", "nvl72", "hgx", "dragonfly", "dragonfly-plus", "hyperx", "torus", "mesh")
    ),
]
# few ports, so that few chips make three tiers, or several groups; and chips without domains
MORE = {
    "clos": {"radix": 16},
    "dragonfly": {"radix": 12, "domain": 4},
    "dragonfly-plus": {"radix": 8},
    "mesh": {"chip": "trainium2"},
}
COLLECTIVES = [
    ("all-reduce", "ring"), ("all-reduce", "tree"), ("all-reduce", "two-level"), ("all-reduce", "halving-doubling"),
    ("all-gather", "ring"), ("reduce-scatter", "ring"), ("all-to-all", "direct"), ("all-to-all", "pairwise"),
    ("broadcast", "tree"), ("send-recv", "direct"),
]  # fmt: skip
SIZES, CHIPS = (1e6, 64e6, 1e9), (64, 72, 144)
PARTS = (1, 2, 6)  # of the chips are in the job, the first ones
WITHIN, NUM_CELLS = 0.10, 300


class Cell(NamedTuple):
    """One question that both levels answer."""

    fabric: str
    taper: float
    chips: int
    collective: str
    algorithm: str
    size_bytes: float
    part: int


@cache
def built(name: str, taper: float, chips: int) -> Fabric | None:
    tapered = {} if taper == 1 else {"oversubscription": (taper,)}
    asked = FabricDesign(topology=name, chips=chips, **tapered, **MORE.get(name, {}))
    try:
        return fabric_of(asked, load())
    except DatahallError:
        return None  # so many chips make no such fabric


@cache
def asked(cell: Cell) -> tuple[Net, Job] | None:
    fabric = built(cell.fabric, cell.taper, cell.chips)
    if fabric is None:
        return None
    job = FabricJob(
        collective=cell.collective,
        algorithm=cell.algorithm,
        size_bytes=cell.size_bytes,
        ranks=tuple(range(cell.chips // cell.part)),
    )
    try:
        return Net(fabric=fabric, routing=Routing("spray")), job_of(job, 0, fabric)[0]
    except DatahallError:
        return None  # an algorithm for powers of two


@cache
def grid() -> tuple[Cell, ...]:
    every = [
        Cell(*wired, chips, *kind, size, part)
        for wired, chips, kind, size, part in product(FABRICS, CHIPS, COLLECTIVES, SIZES, PARTS)
    ]
    random.Random(10).shuffle(every)
    found: list[Cell] = []
    for cell in every:
        if len(found) < NUM_CELLS and asked(cell) is not None:
            found.append(cell)
    return tuple(found)


@cache
def times(cell: Cell) -> tuple[float, float]:
    question = asked(cell)
    assert question is not None
    net, job = question
    flows = traffic(net, (job,)).flows
    simulated = simulate_folded(flows, pooled(net.pool, net.fabric.link_bytes_per_s))
    return closed_form_s(net, job), simulated.makespan_s


@pytest.mark.parametrize("wired", FABRICS, ids=lambda pair: f"{pair[0]} {pair[1]:g}:1")
def test_the_closed_form_and_the_flows_agree(wired: tuple[str, float]) -> None:
    mine = [cell for cell in grid() if (cell.fabric, cell.taper) == wired]
    assert mine
    for cell in mine:
        closed, simulated = times(cell)
        assert abs(simulated / closed - 1.0) <= WITHIN, (cell, closed, simulated)


@pytest.mark.parametrize("wired", FABRICS, ids=lambda pair: f"{pair[0]} {pair[1]:g}:1")
def test_no_collective_is_faster_than_the_bytes_that_must_leave_a_part(wired: tuple[str, float]) -> None:
    for cell in grid():
        if (cell.fabric, cell.taper) == wired and cell.part == 1:
            fabric = built(*cell[:3])
            assert fabric is not None
            least = [
                float(np.max(crossing_s(Sends(cell.collective), cell.size_bytes, fabric.num_hosts, cut)))
                for cut in cuts(fabric)
                if cut.num_full < fabric.num_hosts
            ]
            for took in times(cell):
                assert took >= max(least, default=0.0) * (1 - 1e-9), cell


# topology, chips, other inputs, collective, ranks: each took 17 to 578 % longer than links that were counted together
UNEVEN = [
    ("torus", 60, {"chip": "trainium2"}, "all-to-all", 6),
    ("torus", 60, {"chip": "trainium2"}, "all-to-all", 12),
    ("torus", 40, {"chip": "gb200"}, "all-to-all", 12),
    ("torus", 72, {"chip": "gb200"}, "all-gather", 36),
    ("mesh", 96, {"chip": "h100-sxm"}, "all-to-all", 96),
    ("mesh", 96, {"chip": "gaudi3"}, "all-gather", 96),
    ("mesh", 40, {"chip": "mi300x"}, "send-recv", 40),
    ("mesh", 32, {"chip": "tpu-v4"}, "all-to-all", 20),
    ("dragonfly-plus", 40, {"chip": "tpu-v4", "domain": 8, "radix": 8}, "reduce-scatter", 20),
    ("hyperx", 64, {"chip": "tpu-v4", "domain": 4}, "all-to-all", 32),
    ("rail-optimised", 72, {"oversubscription": (4.0,)}, "all-to-all", 12),
]


@pytest.mark.parametrize("size_bytes", [1e6, 1e9])
@pytest.mark.parametrize("wired", UNEVEN, ids=lambda one: f"{one[0]} {one[1]} {one[3]} {one[4]}")
def test_so_do_jobs_whose_ways_take_some_links_of_a_place_only(
    wired: tuple[str, int, dict[str, object], str, int], size_bytes: float
) -> None:
    topology, chips, more, collective, ranks = wired
    fabric = fabric_of(FabricDesign(topology=topology, chips=chips, **more), load())
    asked = FabricJob(collective=collective, size_bytes=size_bytes, ranks=tuple(range(ranks)))
    net, job = Net(fabric=fabric, routing=Routing("spray")), job_of(asked, 0, fabric)[0]
    simulated = simulate_folded(traffic(net, (job,)).flows, pooled(net.pool, fabric.link_bytes_per_s))
    assert simulated.makespan_s == pytest.approx(closed_form_s(net, job), rel=WITHIN)


def test_the_limits_say_so() -> None:
    assert len(grid()) == NUM_CELLS
    furthest = max(abs(simulated / closed - 1.0) for closed, simulated in map(times, grid()))
    assert f"{NUM_CELLS} fabrics, tapers, collectives, sizes, numbers of chips and of ranks" in limits()
    assert f"all are within {100 * furthest:.1f} %" in limits()


def limits() -> str:
    return " ".join(LIMITS.read_text("utf-8").split())

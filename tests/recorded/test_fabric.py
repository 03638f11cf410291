"""The figures of `fabric/` are what they were: see `record.py`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec
import numpy as np
from tests.fabric.topologies import WIRE, small
from tests.recorded.record import check_calls, check_questions, leaves, or_refused
from tests.recorded.sampled import sampled

from datahall.fabric.collectives.constants import library
from datahall.fabric.collectives.ctran import doubling_time, ring_time
from datahall.fabric.flows.failures import compared
from datahall.fabric.routing.paths import hops, num_paths, route
from datahall.fabric.routing.policies import sharing, spread
from datahall.fabric.topology.counts import counts
from datahall.fabric.topology.cuts import cuts
from datahall.fabric.topology.graph import Fabric
from datahall.fabric.topology.grids.sides import cubic_sides
from datahall.fabric.topology.grids.torus import torus_for
from datahall.fabric.topology.grids.tpu_pod import (
    PODS,
    check_slice,
    cube_of,
    slice_for,
    slice_shapes,
    tpu_slice,
)
from datahall.scenario.words import POLICIES


def topologies() -> Iterator[tuple[str, object]]:
    """Every small fabric as it is, and with a link in seven out: counts, cuts, and the ways between all chips."""
    for name, fabric in small().items():
        yield (
            f"{name}: links",
            [fabric.link_source, fabric.link_target, fabric.link_bytes_per_s, fabric.link_latency_s],
        )
        yield f"{name}: counts", [counts(fabric), cuts(fabric), list(fabric.traits.parts_of(fabric))]
        yield f"{name}: ways", list(ways(fabric))
        rates = np.where(np.arange(fabric.num_links) % 7 == 3, 0.0, fabric.link_bytes_per_s)
        broken = msgspec.structs.replace(fabric, link_bytes_per_s=rates)
        yield f"{name}: left", [or_refused(partial(compared, fabric, broken)), *ways(broken)]


def ways(fabric: Fabric) -> Iterator[object]:
    every = np.arange(fabric.num_hosts**2)
    source, target = every // fabric.num_hosts, every % fabric.num_hosts
    yield or_refused(partial(num_paths, fabric, source, target))
    yield or_refused(partial(hops, fabric, source, target))
    for pick in (0, 1, every * 7):
        yield or_refused(partial(route, fabric, source, target, pick, partial=True))
    for policy in POLICIES:
        some = every[:: max(1, every.size // 40)]
        here, there = source[some].astype(np.int32), target[some].astype(np.int32)

        def sent(policy: str = policy, here: np.ndarray = here, there: np.ndarray = there) -> object:
            generator = np.random.Generator(np.random.Philox(key=3))
            found = spread(fabric, here, there, policy, generator, 2, partial=True)  # type: ignore[arg-type]
            return [list(leaves(found)), sharing(found, fabric.link_bytes_per_s, WIRE.bytes_per_s)]

        yield or_refused(sent)


def pods() -> Iterator[tuple[str, object]]:
    for name, pod in PODS.items():
        shapes = slice_shapes(pod)
        sizes = [
            or_refused(partial(slice_for, num, pod)) for num in (1, 4, 64, 72, 128, 256, 1000, 4096, 6144)
        ]
        asked = [
            or_refused(partial(check_slice, sides, pod))
            for sides in ((4, 4, 8), (2, 2), (8, 4, 4), (3, 4, 4))
        ]
        cubes = cube_of((8, 8, 4), np.arange(256))
        yield name, [shapes, sizes, asked, cubes, counts(tpu_slice((4, 4, 8), WIRE, pod))]


def sides() -> Iterator[tuple[str, object]]:
    for axes in (1, 2, 3):
        yield f"sides of {axes} axes", [cubic_sides(num, axes) for num in range(1, 300)]
        yield (
            f"tori of {axes} axes",
            [
                or_refused(lambda num=num, axes=axes: torus_for(num, WIRE, axes=axes).num_links)
                for num in range(1, 130)
            ],
        )


def ctran() -> Iterator[tuple[str, object]]:
    sizes = np.array([1.0, 1e4, 3e5, 4e6, 5e7, 1e9])
    for together in (False, True):
        for kind in ("all-reduce", "all-gather", "reduce-scatter"):
            found = [
                time(library().ctran, kind, sizes, ranks, interleaved=together)
                for time in (ring_time, doubling_time)
                for ranks in (2, 3, 8)
            ]
            yield f"{kind} over rails of ctran {together}", found


def calls() -> Iterator[tuple[str, object]]:
    yield from topologies()
    yield from pods()
    yield from sides()
    yield from ctran()
    yield from sampled("fabric")


def test_figures_of_calls(update: bool) -> None:
    check_calls("fabric", calls(), update)


def test_figures_of_questions(update: bool) -> None:
    check_questions("fabric", update)

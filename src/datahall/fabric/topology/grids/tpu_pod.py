"""TPU pods: cubes of 4×4×4 chips whose faces meet in optical circuit switches.

A slice is a torus of whole cubes, any cubes: the switches join them as the slice needs.  Inside a cube the
links are copper and fixed, so what is swapped when a chip dies is its whole cube.

References: N. Jouppi et al., "TPU v4: an optically reconfigurable supercomputer", ISCA 2023; Google Cloud TPU
documentation (largest schedulable v5p slice: 16×16×24).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, prod

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.errors import ScenarioError
from datahall.fabric.topology.graph import Fabric, Ints, Wire
from datahall.fabric.topology.grids.sides import CUBE_SIDE
from datahall.fabric.topology.grids.torus import torus

Bools = NDArray[np.bool_]

CUBE_CHIPS = CUBE_SIDE**3
CUBE_OPTICAL_LINKS = 6 * CUBE_SIDE**2  # fibres that leave a cube
_SMALL = ((1, 1, 1), (2, 2, 1), (2, 2, 2), (2, 2, 4), (2, 4, 4))  # less than a cube: no wrap-around


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    """How the chips of a pod stand together and the largest slice that may be asked for."""

    name: str
    sides: tuple[int, int, int]
    largest: tuple[int, int, int]

    @property
    def num_chips(self) -> int:
        return prod(self.sides)

    @property
    def num_cubes(self) -> int:
        return self.num_chips // CUBE_CHIPS


TPU_V4 = Pod(name="tpu-v4", sides=(16, 16, 16), largest=(16, 16, 16))
TPU_V5P = Pod(name="tpu-v5p", sides=(16, 20, 28), largest=(16, 16, 24))
TPU_V7X = Pod(name="tpu-v7x", sides=(16, 24, 24), largest=(16, 24, 24))
PODS = {pod.name: pod for pod in (TPU_V4, TPU_V5P, TPU_V7X)}
FLAT = (
    (2, 4), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16),
)  # fmt: skip  # slices of chips with four links, Google Cloud TPU documentation
FLAT_CHIPS = ("tpu-v5e", "tpu-v6e")
LEAST = 4  # chips of a slice of a pod, which are those of a host


def slice_shapes(pod: Pod) -> tuple[tuple[int, int, int], ...]:
    """Every shape that can be scheduled: parts of a cube, and tori of whole cubes, smallest first."""
    most = prod(pod.largest)
    steps = range(CUBE_SIDE, max(pod.largest) + 1, CUBE_SIDE)
    whole = [
        (a, b, c)
        for a in steps
        for b in steps
        for c in steps
        if a <= b <= c
        and a * b * c <= most
        and all(x <= y for x, y in zip((a, b, c), pod.largest, strict=True))
    ]
    return tuple(sorted((*_SMALL, *whole), key=lambda sides: (prod(sides), max(sides))))


def check_slice(sides: Sequence[int], pod: Pod) -> tuple[int, int, int]:
    """The shape with its sides in order, or an error with the nearest shapes that can be scheduled."""
    wanted = tuple(sorted(sides))
    legal = {tuple(sorted(shape)): shape for shape in slice_shapes(pod)}
    if wanted in legal:
        return legal[wanted]
    chips = prod(wanted)
    near = sorted(slice_shapes(pod), key=lambda shape: (_apart(shape, wanted), abs(prod(shape) - chips)))[:3]
    why = (
        f"the largest slice of its {pod.num_chips:,} chips is {written(pod.largest)}, {prod(pod.largest):,}"
        if chips > prod(pod.largest)
        else "slices are parts of a 4x4x4 cube or whole cubes"
    )
    raise ScenarioError(
        f"{written(sides)} cannot be scheduled on {pod.name}: {why}",
        field="sides",
        hint=f"nearest: {', '.join(f'{written(shape)} ({prod(shape):,})' for shape in near)}",
    )


def _apart(shape: Sequence[int], wanted: Sequence[int]) -> float:
    return sum(abs(log(a / max(b, 1))) for a, b in zip(sorted(shape), wanted, strict=False)) + 9 * abs(
        len(shape) - len(wanted)
    )


def slice_for(num_chips: int, pod: Pod) -> tuple[int, int, int]:
    """The most cube-like slice of exactly so many chips, or an error with the nearest sizes."""
    shapes = slice_shapes(pod)
    fits = [shape for shape in shapes if prod(shape) == num_chips]
    if fits:
        return min(fits, key=max)
    sizes = sorted({prod(shape) for shape in shapes})
    below = [n for n in sizes if n < num_chips][-1:]
    above = [n for n in sizes if n > num_chips][:1]
    raise ScenarioError(
        f"no slice of {pod.name} has {num_chips:,} chips",
        field="chips",
        hint=f"nearest: {' or '.join(f'{n:,}' for n in (*below, *above))}",
    )


def own_slice(chip: str, num_chips: int, most: int) -> tuple[int, ...]:
    """The sides of the slice that so many chips take where nobody says how they are wired; none: it has no slices.

    That is the smallest that holds them, or the largest of at most so many chips where they need several.

    >>> own_slice("tpu-v5p", 500, 8960), own_slice("tpu-v6e", 512, 256), own_slice("h100-sxm", 8, 8)
    ((8, 8, 8), (16, 16), ())
    """
    shapes: list[tuple[int, ...]] = list(FLAT) if chip in FLAT_CHIPS else []
    if chip in PODS:
        shapes = list(slice_shapes(PODS[chip]))
    allowed = [shape for shape in shapes if LEAST <= prod(shape) <= most]
    holding = [shape for shape in allowed if prod(shape) >= num_chips]
    if holding:
        return min(holding, key=lambda shape: (prod(shape), max(shape)))
    return max(allowed, key=prod, default=())


def tpu_slice(sides: Sequence[int], wire: Wire, pod: Pod) -> Fabric:
    """A slice as its chips see it: a torus of whole cubes, or a mesh inside one."""
    shape = check_slice(sides, pod)
    fabric = torus(shape, wire, wrap=prod(shape) >= CUBE_CHIPS)
    return msgspec.structs.replace(fabric, name=f"{pod.name} slice {written(shape)}", topology="tpu-pod")


def tpu_pod(pod: Pod, wire: Wire) -> Fabric:
    """All chips of a pod as one torus, though a job may be held to a smaller slice."""
    fabric = torus(pod.sides, wire)
    held = f"; the largest slice is {written(pod.largest)}" if pod.largest != pod.sides else ""
    return msgspec.structs.replace(
        fabric, name=f"{pod.name} pod {written(pod.sides)}{held}", topology="tpu-pod"
    )


def cube_of(sides: Sequence[int], chip: Ints) -> Ints:
    """The cube of each chip of a slice, counted with the last axis fastest."""
    _, middle, last = (side // CUBE_SIDE for side in sides)
    x, rest = np.divmod(chip, sides[1] * sides[2])
    y, z = np.divmod(rest, sides[2])
    cube = (x // CUBE_SIDE * middle + y // CUBE_SIDE) * last + z // CUBE_SIDE
    return np.asarray(cube, np.int32)


def crosses_cubes(fabric: Fabric, sides: Sequence[int]) -> Bools:
    """Which links pass an optical circuit switch: those between cubes and those that wrap around one."""
    source, target = cube_of(sides, fabric.link_source), cube_of(sides, fabric.link_target)
    step = np.abs(fabric.link_source - fabric.link_target)
    strides = {sides[1] * sides[2], sides[2], 1}
    apart: Bools = (source != target) | ~np.isin(step, list(strides))
    return apart


def num_circuit_switches(num_cubes: int, ports: int = 128) -> int:
    """Optical circuit switches of a pod: 96 fibres a cube over so many ports.

    >>> num_circuit_switches(64)
    48
    """
    return -(-num_cubes * CUBE_OPTICAL_LINKS // ports)


def written(sides: Sequence[int]) -> str:
    """Sides as people write them: 16x16x24."""
    return "x".join(map(str, sides))

"""The all-reduce of serving engines: their own kernels for small messages, the library's ring for large ones.

Inside one scale-up domain, replayed from a graph, a message of S bytes over n ranks takes the fastest of

    one shot  base + (n − 2) · hop + (n − 1) · S / one_shot      every rank reads all others
    two shots two_shot_s + (n − 2) · hop + 2 (n − 1)/n · S / two_shot  reduce a share, then gather
    library   library_s + 2 (n − 1)/n · S / bus(n)               ring or multicast

`data/custom.json` holds the constants of each chip and engine.  Reference: vLLM, custom_all_reduce.cuh (2024).
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.basis import Basis
from datahall.breakdown import Source
from datahall.catalog import load
from datahall.fabric.collectives.choice import collective_times
from datahall.fabric.collectives.system import System
from datahall.silicon.calibration import NEAREST_STACK


class CustomConstants(msgspec.Struct, frozen=True, kw_only=True):
    """What the all-reduce of one engine does on one chip's links."""

    chip: str
    engine: str
    fitted_on: str
    source: Source
    most_ranks: int  # above it the engine calls the library
    base_s: float
    hop_s: float  # what each rank past two adds: flags to wait for
    one_shot_bytes_per_s: float
    two_shot_s: float
    two_shot_bytes_per_s: float
    library_s: float
    bus_bytes_per_s: tuple[float, float, float]  # of 2, 4 and 8 ranks; multicast lifts the last
    band: tuple[float, float]  # measured/predicted at P10 and P90


class AllReduceTimes(msgspec.Struct, frozen=True):
    """Times [s] of messages, and what they rest on."""

    time_s: NDArray[np.float64]
    level: Basis


@cache
def custom_sets() -> dict[str, CustomConstants]:
    """The shipped constants, by "chip-engine"."""
    text = resources.files("datahall.fabric.collectives").joinpath("data/custom.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, CustomConstants])


def serving_all_reduce_times(
    system: System, size_bytes: NDArray[np.float64] | float, num_ranks: int, engine: str = NEAREST_STACK
) -> AllReduceTimes:
    """Times [s] of the all-reduces of `size_bytes` that an engine replays between its kernels.

    A chip that nobody measured takes a relative's constants with its own link rate; without a relative, or over
    more ranks than a scale-up domain holds, the library's collective answers.
    """
    sizes = np.atleast_1d(np.asarray(size_bytes, dtype=np.float64))
    found = constants_of(system, engine) if 2 <= num_ranks <= system.num_domain else None
    if found is None or num_ranks > found[0].most_ranks:
        times, _ = collective_times(system, "all-reduce", sizes, num_ranks)
        return AllReduceTimes(times, system.level(num_ranks))
    constants, level = found
    return AllReduceTimes(custom_time(sizes, num_ranks, constants), level)


def custom_time(
    size_bytes: NDArray[np.float64], num_ranks: int, constants: CustomConstants
) -> NDArray[np.float64]:
    """The fastest of the three ways [s].

    >>> one = custom_sets()["h100-sxm-vllm"]
    >>> bool(4e-6 < custom_time(np.array([16384.0]), 8, one)[0] < 6.5e-6)
    True
    """
    waits_s = (num_ranks - 2) * constants.hop_s
    sent = 2.0 * (num_ranks - 1) / num_ranks * size_bytes
    one = constants.base_s + waits_s + (num_ranks - 1) * size_bytes / constants.one_shot_bytes_per_s
    two = constants.two_shot_s + waits_s + sent / constants.two_shot_bytes_per_s
    bus = np.exp(np.interp(np.log2(num_ranks), [1.0, 2.0, 3.0], np.log(constants.bus_bytes_per_s)))
    fastest: NDArray[np.float64] = np.minimum(
        np.minimum(one, two), constants.library_s + waits_s + sent / bus
    )
    return fastest


def constants_of(system: System, engine: str) -> tuple[CustomConstants, Basis] | None:
    """The constants of a system's chip, or of a relative on the same kind of link; None without one.

    Where an engine's own were not measured, those of the nearest stack stand in.
    """
    return _own_constants(system, engine) or _own_constants(system, NEAREST_STACK)


def _own_constants(system: System, engine: str) -> tuple[CustomConstants, Basis] | None:
    sets = custom_sets()
    own = sets.get(f"{system.chip}-{engine}")
    if own is not None:
        return own, "measured"
    shelf = load()  # with the chips that the constants were fitted on
    for one in sets.values():
        kin = shelf.chip(one.chip)
        wire = shelf.scale_up_of(kin)
        alike = wire is not None and wire.technology == system.scale_up_technology
        if one.engine == engine and kin.family == system.silicon and alike:
            return _scaled(one, system.scale_up_bytes_per_s / kin.scale_up_bytes_per_s), "family-calibrated"
    return None


def _scaled(constants: CustomConstants, factor: float) -> CustomConstants:
    low, middle, high = constants.bus_bytes_per_s
    return msgspec.structs.replace(
        constants,
        one_shot_bytes_per_s=constants.one_shot_bytes_per_s * factor,
        two_shot_bytes_per_s=constants.two_shot_bytes_per_s * factor,
        bus_bytes_per_s=(low * factor, middle * factor, high * factor),
    )

"""Constants of each chip, and which of three levels an answer rests on.

- `measured`: fitted on kernels measured on that very chip.
- `family-calibrated`: the constants of a measured chip of the same family, with this chip's own datasheet.
- `datasheet only`: generic constants for a chip nobody measured here.

Each set in `data/constants.json` says what it was fitted on and how far eight of ten held-out kernels fell from
it; that range is the band of every time computed with it, widened where a relative's constants are used.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import get_args

import msgspec

from datahall.basis import Basis
from datahall.breakdown import Source
from datahall.catalog.entries.chip import Chip
from datahall.errors import ScenarioError
from datahall.scenario.words import LEVELS
from datahall.silicon.attention import DecodeConstants, PrefillConstants
from datahall.silicon.experts import ExpertConstants
from datahall.silicon.gemm import GemmConstants
from datahall.silicon.grouped_gemm import GroupedConstants
from datahall.silicon.kernel_formats import casts_input, experts_like, products_like
from datahall.silicon.stream import StreamConstants


def weakest(bases: Iterable[Basis]) -> Basis:
    """What a figure rests on that rests on several."""
    return min(bases, key=get_args(Basis).index)


class Path(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between precisions on one chip."""

    tensor_efficiency: float
    power_efficiency: float
    memory_factor: float = (
        1.0  # share of the bandwidth that weights of this precision reach of what bf16's do
    )
    launch_factor: float = 1.0
    single_row_s: float = 0.0  # added where there is one row and the library leaves its fast path
    eager_s: float = 0.0  # least time of a call that the host launches itself: no graph replay pays it


NEAREST_STACK = "vllm"  # whose kernels stand in where a serving engine's own were not measured


class Constants(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the kernel models know about a chip beyond its datasheet."""

    name: str
    chip: str  # the catalogue's name of the chip it was fitted on, "" for the generic set
    family: str
    stack: str  # the software whose kernels were measured: "pytorch", "vllm", "trtllm", "sglang"
    source: Source
    fitted_on: str
    gemm: GemmConstants
    paths: dict[str, Path]
    prefill: PrefillConstants
    decode: DecodeConstants
    grouped: GroupedConstants
    batched: GroupedConstants
    stream: StreamConstants
    reference_sm_flop_per_s: float  # bf16 peak of one multiprocessor of the chip it was fitted on
    sustained: float  # share of the power-limited rate left when whole passes follow one another
    bands: dict[str, tuple[float, float]]  # kernel kind -> measured/predicted at P10 and P90
    experts: dict[str, ExpertConstants] = {}  # by format, see `kernel_format`; serving engines only
    latent_prefill: PrefillConstants | None = None  # latent attention, expanded to heads
    latent_decode: DecodeConstants | None = None  # and in the latent space

    def path(self, precision: str) -> Path:
        """The constants of a precision; one that was not measured takes those of the nearest kind."""
        if precision in self.paths:
            return self.paths[precision]
        return next(self.paths[name] for name in products_like(precision) if name in self.paths)

    def gemm_for(self, precision: str, *, sustained: bool = False) -> GemmConstants:
        """The GEMM constants with a precision's own shares put in."""
        path = self.path(precision)
        droop = self.sustained if sustained else 1.0
        return msgspec.structs.replace(
            self.gemm,
            launch_s=self.gemm.launch_s * path.launch_factor,
            memory_efficiency=self.gemm.memory_efficiency * path.memory_factor,
            tensor_efficiency=path.tensor_efficiency,
            power_efficiency=path.power_efficiency * droop,
        )

    def expert(self, name: str) -> ExpertConstants | None:
        """The constants of the experts' kernel in a format; one not measured takes those of the nearest."""
        return next((self.experts[one] for one in experts_like(name) if one in self.experts), None)


class Calibration(msgspec.Struct, frozen=True):
    """A chip's constants and the level they make an answer.

    `serving`: a stack was asked for, so that its own kernels for experts and latent attention count; without one
    they are the library calls that all frameworks share.
    """

    constants: Constants
    level: Basis
    serving: bool = False


@cache
def constant_sets() -> dict[str, Constants]:
    """All sets, by name."""
    text = resources.files("datahall.silicon").joinpath("data/constants.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, Constants])


def calibrate(chip: Chip, level: str | None = None, stack: str | None = None) -> Calibration:
    """Return the best constants there are for a chip, or those of the level and software stack asked for.

    An asked-for level or stack that the chip does not have is an error, never another one.
    """
    if level is not None and level not in LEVELS:
        raise ScenarioError(f'"{level}" is not a level', hint=f"one of {', '.join(LEVELS)}")
    every = constant_sets()
    stacks = tuple(dict.fromkeys(one.stack for one in every.values() if one.chip))
    if stack is not None and stack not in stacks:
        raise ScenarioError(f'"{stack}" is not a measured software stack', hint=f"one of {', '.join(stacks)}")
    sets = {name: one for name, one in every.items() if stack in {None, one.stack}}
    own = next((one for one in sets.values() if one.chip == chip.name), None)
    kin = next((one for one in sets.values() if one.chip and one.family == chip.family), None)
    if level in {None, "measured"} and own is not None:
        return Calibration(own if stack is None else _served(own), "measured", stack is not None)
    if level in {None, "family"} and kin is not None:
        found = kin if stack is None else _served(kin)
        return Calibration(_scaled(found, chip), "family-calibrated", stack is not None)
    if level == "datasheet" or (level is None and stack is None):
        generic = msgspec.structs.replace(_scaled(every["generic"], chip), bands=every["generic"].bands)
        return Calibration(_with_measured_peak(generic, chip), "datasheet only")
    have = [name for name, found in (("measured", own), ("family", kin), ("datasheet", True)) if found]
    asked = " and ".join(f'{what} "{name}"' for what, name in (("level", level), ("stack", stack)) if name)
    raise ScenarioError(
        f"{chip.name} has no constants of {asked}", field="level", hint=f"it has {', '.join(have)}"
    )


@cache
def _served_set(name: str) -> Constants:
    return _with_served_streams(constant_sets()[name])


def _served(constants: Constants) -> Constants:
    """A set with the element-wise kernels of an engine."""
    return _served_set(constants.name)


def _with_served_streams(constants: Constants) -> Constants:
    """Shorter casts leave more of a measured cast-and-multiply to the product: what was measured stays the sum."""
    stream = constants.stream.served
    longer = (constants.stream.kernel_s - stream.kernel_s) / constants.gemm.launch_s
    if longer == 0.0:
        return msgspec.structs.replace(constants, stream=stream)
    paths = {
        name: msgspec.structs.replace(path, launch_factor=path.launch_factor + longer)
        if casts_input(name)  # its tables hold the cast too
        else path
        for name, path in constants.paths.items()
    }
    return msgspec.structs.replace(constants, stream=stream, paths=paths)


# What a relative's constants add to a band: H100 and H200 sets, swapped, move bf16 products by this much.
KIN_LOW, KIN_HIGH = 0.9, 1.12
GENERIC_SMS = 100.0  # chips that are not made of multiprocessors: tiles are then only a granularity
MOST_SMS = 512  # past it they are cores too small to hold a tile (a wafer has 900,000)


def num_sms(chip: Chip) -> float:
    """Multiprocessors that share a product; a few large cores, or a sea of tiny ones, count as a hundred.

    >>> from datahall.catalog import load
    >>> num_sms(load().chip("h100-sxm")), num_sms(load().chip("tpu-v5p"))
    (132.0, 100.0)
    """
    return float(chip.num_sms) if 16 <= chip.num_sms <= MOST_SMS else GENERIC_SMS


def _scaled(constants: Constants, chip: Chip) -> Constants:
    """Rates of one multiprocessor grow with its arithmetic: what feeds it is built for it."""
    peaks = chip.peak_flop_per_s
    peak = peaks.get("bf16") or peaks.get("fp16") or max(peaks.values(), default=math.nan)
    factor = peak / num_sms(chip) / constants.reference_sm_flop_per_s
    if not math.isfinite(factor):
        return constants
    gemm, decode, prefill = constants.gemm, constants.decode, constants.prefill
    return msgspec.structs.replace(
        constants,
        bands={kind: (low * KIN_LOW, high * KIN_HIGH) for kind, (low, high) in constants.bands.items()},
        gemm=msgspec.structs.replace(
            gemm,
            feed_bytes_per_s=gemm.feed_bytes_per_s * factor,
            epilogue_bytes_per_s=gemm.epilogue_bytes_per_s * factor,
            sm_stream_bytes_per_s=gemm.sm_stream_bytes_per_s * factor,
            choose_stream_bytes_per_s=gemm.choose_stream_bytes_per_s * factor,
        ),
        experts={
            name: msgspec.structs.replace(one, feed_bytes_per_s=one.feed_bytes_per_s * factor)
            for name, one in constants.experts.items()
        },
        decode=msgspec.structs.replace(decode, sm_stream_bytes_per_s=decode.sm_stream_bytes_per_s * factor),
        prefill=msgspec.structs.replace(prefill, softmax_s=prefill.softmax_s / factor),
    )


def _with_measured_peak(generic: Constants, chip: Chip) -> Constants:
    """Use the best matrix product anybody published for the chip as its power-limited rate in that format.

    Products of experts move by the same share.  Formats that nobody measured keep the generic one: products of 32 bits
    draw less power than those of 16 that stand in for them.
    """
    shares = {
        name: rate / chip.peak_flop_per_s[name]
        for name, rate in chip.measured_peak_flop_per_s.items()
        if name in chip.peak_flop_per_s
    }
    usual = generic.path("bf16")
    paths = {
        name: msgspec.structs.replace(generic.path(name), power_efficiency=share)
        for name, share in shares.items()
    }
    moved = shares.get("bf16", usual.power_efficiency) / usual.power_efficiency
    return msgspec.structs.replace(
        generic,
        paths=generic.paths | dict.fromkeys(("fp32", "tf32"), usual) | paths,
        grouped=_limited(generic.grouped, moved),
        batched=_limited(generic.batched, moved),
    )


def _limited(grouped: GroupedConstants, factor: float) -> GroupedConstants:
    return msgspec.structs.replace(grouped, power_efficiency=min(1.0, grouped.power_efficiency * factor))

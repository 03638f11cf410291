"""Constants of the power model, what they were fitted on, and how near to a chip that is.

- `measured`: that very chip was measured under load.
- `family-calibrated`: a chip of its family was.
- `datasheet only`: none was; what all families share, with this chip's own limit and bandwidth.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import msgspec

from datahall.basis import Basis
from datahall.breakdown import Source
from datahall.catalog.entries.chip import Chip

ANY = "any"  # the set of families that were not measured


class ChipConstants(msgspec.Struct, frozen=True, kw_only=True):
    """What parts of a chip draw when they are fully used."""

    busy_headroom_ratio: float  # clocks, instructions and registers, over what lies between idle and limit
    tensor_headroom_ratio: (
        float  # tensor cores at the dense peak and what feeds them, likewise, if nothing stopped them
    )
    memory_j_per_byte: float  # from main memory through the caches into registers
    cache_j_per_byte: float  # besides, what attention of decodes does with a byte of the cache
    scaled_j_per_value: float  # ordinary arithmetic that widens a weight


class ServerConstants(msgspec.Struct, frozen=True, kw_only=True):
    """What stands around the chips."""

    host_w: float  # CPUs, memory, drives, NICs, switches of the domain and fans of an idle server of eight chips, DC
    load_fraction: float  # more of all that per watt that chips draw beyond their idle power
    supply_efficiency: float  # DC over AC
    start_s: float  # of a benchmark run: before its steps are under way


class Constants(msgspec.Struct, frozen=True, kw_only=True):
    """All of `data/constants.json`."""

    source: Source
    fitted_on: str
    chips: tuple[str, ...]  # that were measured
    families: dict[str, ChipConstants]
    server: ServerConstants
    server_source: Source
    server_fitted_on: str
    bands: dict[str, tuple[float, float]]  # figure and basis -> measured over predicted at P10 and P90


@cache
def constants() -> Constants:
    """The constants that ship with the package."""
    text = resources.files("datahall.power").joinpath("data/constants.json").read_bytes()
    return msgspec.json.decode(text, type=Constants)


def chip_constants(chip: Chip) -> ChipConstants:
    """The constants of a chip's family, or those that families share."""
    known = constants().families
    return known.get(chip.family, known[ANY])


def basis_of(chip: Chip) -> Basis:
    """How near to the chip its constants were found."""
    known = constants()
    if chip.name in known.chips:
        return "measured"
    return "family-calibrated" if chip.family in known.families else "datasheet only"


def band_of(figure: str, chip: Chip) -> tuple[float, float]:
    """P10 and P90 of measured over predicted: of a "chip" or a "server", on what its constants rest."""
    return constants().bands[f"{figure}, {basis_of(chip)}"]

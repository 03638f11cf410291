"""Number formats: what a value takes, which unit multiplies it, whose chips do.  One row a format."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from datahall.errors import UnknownNameError

NARROWEST_WIDE_BITS = 16  # formats from here on are never called quantised


class NumberFormat(msgspec.Struct, frozen=True, kw_only=True):
    """One way to write a number; what is left out is that of a plain format with a unit of its own.

    Values that share a scale in hardware are multiplied by the unit of a plain format, one that takes scales.
    """

    bits: int  # of a value
    integer: bool = False
    stored: str = ""  # the format it is kept in, where it is but a way to multiply
    group: int = 0  # values that share a scale
    scale_bits: int = 0
    unit: str = ""  # the plain format whose unit multiplies it
    takes_scales: bool = False  # of its unit: multiplies values that share a scale
    packs: bool = False  # checkpoints keep linear layers in it
    families: tuple[str, ...] = ()  # whose units take its scales, where not all do that take any
    foreign: tuple[str, ...] = ()  # whose makers name other scales alone
    also: tuple[str, ...] = ()  # other spellings

    @property
    def bytes_per_value(self) -> float:
        """Bytes of a stored value, its share of a group's scale included."""
        if self.stored:
            return FORMATS[self.stored].bytes_per_value
        return (self.bits + (self.scale_bits / self.group if self.group else 0.0)) / 8

    @property
    def wide(self) -> bool:
        """Whether values keep so many bits that nothing is scaled for them."""
        return self.bits >= NARROWEST_WIDE_BITS

    @property
    def tensor_scaled(self) -> bool:
        """Whether one scale covers a tensor, a channel or a large block; none of its groups has its own."""
        return self.packs and not self.group


# Units that multiply FP6 or FP4 take scales of small groups, none before did: MXFP8 runs from Blackwell on, and not on
# Hopper (NVIDIA, Transformer Engine, support matrix; OCP, MX formats v1.0).  In MX formats 32 values share an E8M0
# scale, and the makers of CDNA4, Trainium3 and Ascend 950 name these alone; NVFP4 is NVIDIA's: 16 share an E4M3 scale.
# Of other FP4 units (CDNA5, TPU 8) no datasheet says what scales they take.  INT4 is GPTQ's and AWQ's: 128 values share
# an FP16 scale, which the kernel applies.
FORMATS: Mapping[str, NumberFormat] = MappingProxyType(
    {
        "fp64": NumberFormat(bits=64, also=("float64", "double")),
        "fp32": NumberFormat(bits=32, also=("float32", "float")),
        "tf32": NumberFormat(bits=19, stored="fp32"),
        "fp16": NumberFormat(bits=16, also=("float16", "half")),
        "bf16": NumberFormat(bits=16, also=("bfloat16",)),
        "fp8": NumberFormat(bits=8, packs=True, also=("float8", "e4m3", "e5m2")),
        "fp6": NumberFormat(bits=6, takes_scales=True),
        "fp4": NumberFormat(bits=4, takes_scales=True),
        "int8": NumberFormat(bits=8, integer=True, packs=True, also=("w8a8",)),
        "int4": NumberFormat(bits=4, integer=True, packs=True, group=128, scale_bits=16),
        "mxfp8": NumberFormat(bits=8, packs=True, group=32, scale_bits=8, unit="fp8"),
        "mxfp6": NumberFormat(bits=6, group=32, scale_bits=8, unit="fp6"),
        "mxfp4": NumberFormat(bits=4, packs=True, group=32, scale_bits=8, unit="fp4"),
        "nvfp4": NumberFormat(
            bits=4, packs=True, group=16, scale_bits=8, unit="fp4",
            families=("blackwell", "blackwell-rtx", "rubin"), foreign=("cdna4", "trainium", "ascend"),
        ),
    }
)  # fmt: skip

PEAK_FORMATS = tuple(
    name for name, one in FORMATS.items() if not one.unit
)  # a datasheet may state a peak of each
GROUP_SCALED = tuple(name for name, one in FORMATS.items() if one.unit)
SCALED_UNITS = tuple(name for name, one in FORMATS.items() if one.takes_scales)
PACKED = tuple(name for name, one in FORMATS.items() if one.packs)

_ALSO = {other: name for name, one in FORMATS.items() for other in one.also}
_UNITS = {name: one.unit for name, one in FORMATS.items() if one.unit}
_BYTES = {name: one.bytes_per_value for name, one in FORMATS.items()}
_WIDE = {name for name, one in FORMATS.items() if one.wide}


def bytes_per_value(name: str) -> float:
    """Return the bytes that one value takes in a number format, its share of a group's scale included.

    >>> bytes_per_value("bf16"), bytes_per_value("nvfp4")
    (2.0, 0.5625)
    """
    if name not in _BYTES:
        raise UnknownNameError("number format", name, FORMATS, hint=f"formats: {', '.join(FORMATS)}")
    return _BYTES[name]


def is_wide(name: str) -> bool:
    """Whether a format is one of 16 bits or more.

    >>> is_wide("tf32"), is_wide("mxfp8")
    (True, False)
    """
    return name in _WIDE


def format_named(name: str) -> str:
    """Return the catalogue's name of a format, however it is spelled; a word that is none comes back folded.

    >>> format_named("BFloat16"), format_named("MX-FP8")
    ('bf16', 'mxfp8')
    """
    folded = name.lower().replace("torch.", "").replace("-", "").replace("_", "")
    return _ALSO.get(folded, folded)


def unit_for(name: str) -> str:
    """Return the format whose unit multiplies one: its own, where it has no scale per small group of values.

    >>> unit_for("BFloat16"), unit_for("nvfp4")
    ('bf16', 'fp4')
    """
    named = format_named(name)
    return _UNITS.get(named, named)

"""Which number format a model keeps its weights, activations and cache in, and which one multiplies them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from datahall.catalog.entries.model import Model
from datahall.catalog.number_formats import FORMATS, bytes_per_value, is_wide, unit_for
from datahall.errors import UnknownNameError


class Precision(msgspec.Struct, frozen=True):
    """The number formats of one model as it runs.

    `weights` and `activations` are those of the linear layers.  The embedding, the head, the router, the
    norms and the attention core are not quantised and run in `wide`.  `compute` is what the linear layers
    multiply in; left out it follows from the other two: the wider of them, so that weight-only
    quantisation multiplies in 16 bits.

    >>> Precision(weights="int4").compute, Precision(weights="fp8", activations="fp8").compute
    ('bf16', 'fp8')
    >>> Precision(weights="int4", activations="fp8").compute, Precision.named("nvfp4").compute
    ('fp8', 'fp4')
    """

    weights: str = "bf16"
    activations: str = "bf16"
    kv: str = "bf16"
    compute: str = ""

    def __post_init__(self) -> None:
        for name in (self.weights, self.activations, self.kv):
            bytes_per_value(name)
        if self.compute:
            bytes_per_value(self.compute)
            return
        wider = max(self.activations, self.weights, key=bytes_per_value)
        msgspec.structs.force_setattr(self, "compute", unit_for(wider))

    @classmethod
    def named(cls, name: str) -> Precision:
        """Return a preset; an unknown name is an error that lists the nearest ones.

        >>> Precision.named("fp8").kv, Precision.named("fp8-kv8").kv
        ('bf16', 'fp8')
        """
        if name not in PRESETS:
            raise UnknownNameError("precision", name, PRESETS, hint=f"precisions: {', '.join(PRESETS)}")
        return PRESETS[name]

    @property
    def operands(self) -> str:
        """What the linear layers multiply, whose unit is `compute`: the wider of weights and activations.

        >>> [Precision.named(name).operands for name in ("mxfp8", "w4a8", "tf32", "mxfp4")]
        ['mxfp8', 'fp8', 'tf32', 'bf16']
        """
        wider = max(self.activations, self.weights, key=bytes_per_value)
        return wider if unit_for(wider) == self.compute else self.compute

    @property
    def wide(self) -> str:
        """The format of everything that is never quantised: residual stream, norms, attention, head."""
        return self.activations if is_wide(self.activations) else "bf16"

    @property
    def wide_compute(self) -> str:
        """What the unquantised GEMMs and the attention core multiply in."""
        return self.compute if is_wide(self.compute) else self.wide

    @property
    def quantises_activations(self) -> bool:
        """Whether a linear layer's input must first be cast to a narrower format."""
        return not is_wide(self.activations)

    @property
    def tensor_scaled(self) -> bool:
        """Whether one scale covers the whole input of a linear layer."""
        return FORMATS[self.activations].tensor_scaled

    @property
    def trains(self) -> bool:
        """Whether it can be trained in: weights and what they multiply have one floating format, and nothing is cached.

        >>> Precision.named("nvfp4").trains, Precision.named("w4a16").trains, Precision.named("fp8-kv8").trains
        (True, False, False)
        """
        alike = self.weights == self.activations and self.kv == self.wide
        return alike and not FORMATS[self.weights].integer

    @property
    def weight_bytes_per_value(self) -> float:
        return bytes_per_value(self.weights)

    @property
    def activation_bytes_per_value(self) -> float:
        return bytes_per_value(self.activations)

    @property
    def kv_bytes_per_value(self) -> float:
        return bytes_per_value(self.kv)

    @property
    def wide_bytes_per_value(self) -> float:
        return bytes_per_value(self.wide)


def block_scaled(model: Model, precision: Precision) -> bool:
    """Whether the linear layers of a model run FP8 kernels that take a scale per block of weights.

    It is a fact of the checkpoint: its `quantization_config`, or that of the FP8 weights published beside it.  Weights
    that an engine makes FP8 itself have one scale per tensor.
    """
    if precision.weights != "fp8":
        return False
    own = model.quantisation
    published = own if own is not None and own.format == "fp8" else model.fp8_checkpoint
    return published is not None and published.block_scaled


def attention_stays_wide(model: Model, precision: Precision) -> bool:
    """Whether a checkpoint of 4-bit experts keeps the projections of attention in 16 bits.

    Those that are published do: gpt-oss, DeepSeek-R1-FP4 and Kimi-K2 quantise MLPs alone.
    """
    if model.moe is None or precision.weight_bytes_per_value >= 1.0:
        return False
    return model.mla is not None or precision.weights == "mxfp4"


BF16 = Precision()

PRESETS: Mapping[str, Precision] = MappingProxyType(
    {
        "fp32": Precision("fp32", "fp32", "fp32"),
        "tf32": Precision("fp32", "fp32", "fp32", "tf32"),
        "bf16": BF16,
        "fp16": Precision("fp16", "fp16", "fp16"),
        "fp8": Precision("fp8", "fp8"),
        "fp8-kv8": Precision("fp8", "fp8", "fp8"),
        "mxfp8": Precision("mxfp8", "mxfp8"),
        "int8": Precision("int8", "int8"),
        "w8a16": Precision("int8"),
        "w4a16": Precision("int4"),
        "w4a8": Precision("int4", "fp8"),
        "mxfp4": Precision("mxfp4"),  # GPT-OSS: weight-only on chips without FP4 units
        "nvfp4": Precision("nvfp4", "nvfp4"),
    }
)

COMMON = (
    "bf16",
    "fp8",
    "fp8-kv8",
    "w4a16",
    "nvfp4",
)  # what remedies and tables weigh, the least change first
ACTIVATIONS = tuple(dict.fromkeys(one.activations for one in PRESETS.values()))  # what tokens are sent in
WIDEST, HALVES = "fp32", ("bf16", "fp16")  # what a ladder of formats begins with, and goes on to
TRAINED = tuple(name for name, one in PRESETS.items() if one.trains)

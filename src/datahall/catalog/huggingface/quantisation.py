"""`quantization_config`: which number format a checkpoint keeps its linear layers in, and how its scales lie.

quant_method          says
fp8                   weight_block_size = [128, 128] where scales lie by block; one per tensor without it
fbgemm_fp8            one scale per row
mxfp4                 one 8-bit exponent per 32 values (GPT-OSS)
gptq, awq             bits, and group_size values of a row under one scale
compressed-tensors    config_groups.*.weights: num_bits, type, strategy, group_size or block_structure
modelopt              quant_algo = "FP8" or "NVFP4"
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from datahall.catalog.entries.model import Quantisation
from datahall.catalog.huggingface.config import Config

ROW = 1  # a scale that covers a part of one row
_FORMATS: dict[tuple[str, int], str] = {
    ("float", 8): "fp8",
    ("int", 8): "int8",
    ("int", 4): "int4",
    ("float", 4): "nvfp4",
}


def quantisation(config: Config) -> Quantisation | None:
    """How the weights are packed, or None where the file says nothing of it.

    A wrapper for images and text may say it outside its text model; what is not known is refused, never guessed.
    """
    if not config.has("quantization_config"):
        return quantisation(config.outer) if config.outer is not None else None
    part = config.part("quantization_config")
    method = part.text("quant_method")
    if not method:
        return None
    if method not in _METHODS:
        part.refuse("quant_method", f"those that can be read: {', '.join(_METHODS)}")
        return None
    return _METHODS[method](part)


def _fp8(part: Config) -> Quantisation:
    return Quantisation(format="fp8", block=_block(part, "weight_block_size"))


def _grouped_integers(part: Config) -> Quantisation | None:
    """GPTQ and AWQ: integers of 4 or 8 bits, a scale per group of a row; a group of −1 is the whole row."""
    kind = _FORMATS.get(("int", part.count("bits")))
    if kind is None:
        part.refuse("bits", "integers of 4 or 8 bits are")
        return None
    group = part.count("group_size", default=128, at_least=-1)
    return Quantisation(format=kind, block=(ROW, group) if group > 0 else (0, 0))


def _modelopt(part: Config) -> Quantisation | None:
    algorithm = part.text("quant_algo", "FP8")
    if algorithm == "FP8":
        return Quantisation(format="fp8")
    if algorithm == "NVFP4":
        return Quantisation(format="nvfp4", block=(ROW, 16))
    part.refuse("quant_algo", "FP8 and NVFP4 are")
    return None


def _compressed_tensors(part: Config) -> Quantisation | None:
    """The first of its groups speaks for all linear layers."""
    groups = part.part("config_groups")
    if not groups.table:
        part.problem('"config_groups" is missing', "config_groups")
        return None
    weights = groups.part(next(iter(groups.table))).part("weights")
    kind = _FORMATS.get((weights.text("type"), weights.count("num_bits")))
    if kind is None:
        weights.refuse("num_bits", "fp8, int8, int4 and nvfp4 are")
        return None
    match weights.text("strategy", "tensor"):
        case "tensor" | "channel":
            return Quantisation(format=kind)
        case "group" | "tensor_group":
            return Quantisation(format=kind, block=(ROW, weights.count("group_size")))
        case "block":
            return Quantisation(format=kind, block=_block(weights, "block_structure"))
    weights.refuse("strategy", "tensor, channel, group and block are")
    return None


def _block(part: Config, key: str) -> tuple[int, int]:
    sides = part.items(key, int)
    if sides is None:
        return (0, 0)
    if len(sides) != 2 or any(cast(int, side) < 1 for side in sides):
        part.problem(f'"{key}" must be two whole numbers of at least 1', key)
        return (0, 0)
    return cast("tuple[int, int]", tuple(sides))


_METHODS: dict[str, Callable[[Config], Quantisation | None]] = {
    "fp8": _fp8,
    "fbgemm_fp8": lambda _: Quantisation(format="fp8"),
    "mxfp4": lambda _: Quantisation(format="mxfp4", block=(ROW, 32)),
    "gptq": _grouped_integers,
    "awq": _grouped_integers,
    "compressed-tensors": _compressed_tensors,
    "modelopt": _modelopt,
}

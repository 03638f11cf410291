"""What a training framework adds to the physics: what it hides, and what it costs by itself."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Literal

import msgspec

from datahall.breakdown import Source
from datahall.errors import UnknownNameError


class Framework(msgspec.Struct, frozen=True, kw_only=True):
    """A framework of some years with its usual options; shares are of the time the communication would take alone."""

    name: str
    title: str
    source: Source
    fitted_on: str
    fusion: str  # style of the element-wise kernels
    flash_attention: bool
    books: str  # what it keeps in memory: its row of `BOOKS` in `memory/bookkeeping.py`
    compute_factor: float  # time of the kernels in the framework over their time alone
    attention_factor: float  # time of its attention over that of the kernels the chip was measured with
    later_attention_factor: float = (
        1.0  # and again on chips newer than its attention was written for (past Ampere)
    )
    tensor_exposed: float  # share of tensor-parallel exchange that nothing hides
    expert_exposed: float = 1.0  # share of expert dispatch and combine; 1: kernels wait for it
    deduplicated: bool = False  # a token goes once to a chip and once to a domain, not once to each expert
    fused_experts: bool = False  # biases and activations of experts are done inside their products
    pipeline_exposed: float
    data_exposed: float  # share of gradient exchange outside what backward can hide
    parameters_exposed: float = 0.0  # share of fully sharded parameters' exchange that nothing hides
    gradient_bytes: float  # of a gradient on the wire where values have 16 bits
    fixed_s: float  # loss, norms, data, host work once a step
    jitter: float  # growth of the step per factor of e in chips: the slowest of more ranks is slower
    host_s: float = 0.0  # host time to launch one operator of a layer; 0: never in the way
    captured: Literal["none", "attention", "step"] = "none"  # what CUDA graphs replay without the host
    band: tuple[float, float] = (0.85, 1.18)  # P10–P90 of measured over predicted steps of dense models
    expert_band: tuple[float, float] = (0.8, 1.3)  # of mixtures of experts, on which nothing was fitted
    adapter_band: tuple[float, float] = (0.8, 1.3)  # of adapters alone
    kin_band: tuple[float, float] = (0.8, 1.3)  # on chips whose kernels were not measured

    def sent_bytes(self, value_bytes: float) -> float:
        """Of a gradient on the wire [B]: its own format, or that of the values where it is wider."""
        return max(self.gradient_bytes, value_bytes)


def band_of(framework: Framework, *, moe: bool, adapters: bool, measured: bool) -> tuple[float, float]:
    """The band of a step: of the kind of job that was seen to miss most."""
    if moe:
        return framework.expert_band
    if adapters:
        return framework.adapter_band
    return framework.band if measured else framework.kin_band


WRITTEN_FOR = {"volta", "turing", "ampere", "ada"}  # families that attention before 2024 was written for


def attention_factor(framework: Framework, family: str) -> float:
    """What a framework's attention takes over the kernels a chip was measured with."""
    return framework.attention_factor * (1.0 if family in WRITTEN_FOR else framework.later_attention_factor)


@cache
def frameworks() -> dict[str, Framework]:
    """All presets, by name."""
    text = resources.files("datahall.training").joinpath("data/frameworks.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, Framework])


def framework(name: str) -> Framework:
    """One preset; an unknown name is an error with the nearest ones."""
    known = frameworks()
    if name not in known:
        raise UnknownNameError(
            "framework", name, known, hint=f"frameworks: {', '.join(known)}", field="framework"
        )
    return known[name]

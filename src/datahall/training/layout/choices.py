"""The words of a layout that are not numbers: what is recomputed, exchanged, compressed and moved out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from datahall.workload.memory.activation import Recompute

Context = Literal["ring", "all-to-all"]
RECOMPUTES: tuple[Recompute, ...] = ("none", "selective", "full")
# ring: keys and values pass by; all-to-all: each chip gets whole sequences of some heads (DeepSpeed Ulysses)
CONTEXTS: tuple[Context, ...] = ("ring", "all-to-all")
# what selective recomputation may run again, in Megatron-LM's words
MODULES = ("core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts")
COMPRESSIONS = ("none", "bf16", "fp8", "1-bit", "power-sgd")
# what may leave a chip's memory, and where to
OFFLOADS = ("optimizer", "parameters", "activations")
TIERS = ("host", "nvme")


def module_bits(modules: Iterable[str]) -> int:
    """Modules as a number with one bit for each."""
    return sum(1 << MODULES.index(one) for one in set(modules))


def module_names(bits: int) -> tuple[str, ...]:
    """The inverse of `module_bits`.

    >>> module_names(module_bits(("moe_act", "layernorm")))
    ('layernorm', 'moe_act')
    """
    return tuple(one for at, one in enumerate(MODULES) if bits >> at & 1)


def offload_parts(text: str) -> tuple[str, str]:
    """What leaves a chip and where to.

    >>> offload_parts("optimizer:nvme"), offload_parts("activations")
    (('optimizer', 'nvme'), ('activations', 'host'))
    """
    what, _, tier = text.partition(":")
    return what, tier or TIERS[0]


def offload_code(offload: Iterable[str]) -> int:
    """What is offloaded where as a number: a digit of base 3 for each of OFFLOADS, 0 stays, 1 host, 2 NVMe."""
    parts = dict(map(offload_parts, offload))
    return sum((TIERS.index(tier) + 1) * 3 ** OFFLOADS.index(what) for what, tier in parts.items())


def offload_names(code: int) -> tuple[str, ...]:
    """The inverse of `offload_code`.

    >>> offload_names(offload_code(("optimizer:nvme", "activations")))
    ('optimizer:nvme', 'activations')
    """
    places = {what: code // 3**at % 3 for at, what in enumerate(OFFLOADS)}
    return tuple(what if place == 1 else f"{what}:{TIERS[1]}" for what, place in places.items() if place)

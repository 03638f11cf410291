"""Parts of a layer that can be recomputed alone: what runs again, what need not be kept, and which models have them.

Reference: Megatron-Core, recompute_modules; Korthikanti et al. (2022), section 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from datahall.catalog.entries.model import Model


class Module(NamedTuple):
    """A part of a layer that can be recomputed alone: kernels that run again, tensors that need not be kept."""

    kernels: tuple[str, ...]
    tensors: tuple[str, ...]
    needs: str = ""  # part of a model without which it means nothing


_SHARED = ("shared_gate", "shared_up", "shared_product", "shared_activated")
_SHARED_KERNELS = ("shared_gate_up", "shared_up", "shared_activation", "shared_down")
_EXPERT = ("expert_gate", "expert_up", "expert_product", "expert_activated")
_EXPERT_KERNELS = ("expert_gate_up", "expert_up", "expert_activation", "expert_down")
# kernels of attention are known by their shape, its scores by their mark
PARTS: Mapping[str, Module] = MappingProxyType(
    {
        "core_attn": Module((), ()),
        "layernorm": Module(("mixer_norm", "mlp_norm"), ("norm_1_output", "norm_2_output")),
        "mla_up_proj": Module(("q_up", "kv_up", "rope"), ("query", "key", "value"), "mla"),
        "mlp": Module(
            ("gate_up", "up", "activation", "down"), ("gate", "up", "product", "activated"), "dense"
        ),
        "moe": Module(
            ("router", "dispatch", "combine", *_EXPERT_KERNELS, *_SHARED_KERNELS),
            ("router_scores", "expert_input", "expert_output", *_EXPERT, *_SHARED),
            "moe",
        ),
        "moe_act": Module(("expert_activation",), ("expert_product", "expert_activated"), "moe"),
        "shared_experts": Module(_SHARED_KERNELS, _SHARED, "shared"),
    }
)


def lacking_module(model: Model, modules: Iterable[str]) -> tuple[str, str] | None:
    """The first module that a model does not have, and what it would need; None where it has all."""
    has = {
        "": True,
        "mla": model.mla is not None,
        "moe": model.moe is not None,
        "shared": model.moe is not None and model.moe.shared_ffn > 0,
        "dense": any(layer.mlp == "dense" for layer in model.layers),
    }
    named = {
        "mla": "latent attention",
        "moe": "experts",
        "shared": "shared experts",
        "dense": "layers with a dense MLP",
    }
    return next(((one, named[PARTS[one].needs]) for one in modules if not has[PARTS[one].needs]), None)


def dropped_tensors(modules: Iterable[str]) -> frozenset[str]:
    """Names of the tensors that are not kept when some modules are recomputed."""
    return frozenset(name for module in modules for name in PARTS[module].tensors)

"""What runs: a transformer as operators with arithmetic and traffic, and the memory that it needs.

Everything is plain arithmetic over numbers or NumPy columns and knows nothing of hardware.  The names below are loaded
when they are first used, so that reading a question loads no NumPy.
"""

from __future__ import annotations

_HOMES = {
    "operator": (
        "Attention", "Gemm", "GroupedGemm", "Number", "Operator", "Stream", "total_bytes", "total_flop",
        "total_weight_bytes",
    ),
    "forward": ("forward_pass", "layer_operators", "mixed_pass"),
    "backward": ("Gradients", "backward_pass", "training_pass"),
    "step": ("Chunk",),
    "flops": ("forward_flop_per_token", "mfu_fraction", "token_work", "training_flop_per_token"),
    "parameters": ("ParameterCount", "count_parameters"),
    "precision": ("Precision", "block_scaled"),
    "sharding": ("Sharding",),
    "config": ("read_config",),
    "memory.recipe": ("StateRecipe",),
    "memory.state": ("StateBytes", "chip_parameters", "serving_weight_bytes", "state_bytes"),
    "memory.kv_cache": ("kv_bytes", "kv_bytes_per_token", "recurrent_state_bytes"),
    "memory.activation": ("SavedTensor", "Saving", "activation_bytes", "layer_tensors", "outside_tensors"),
}  # fmt: skip

__all__ = sorted(name for names in _HOMES.values() for name in names)


def __getattr__(name: str) -> object:
    from importlib import import_module

    home = next((module for module, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module 'datahall.workload' has no attribute {name!r}")
    found: object = getattr(import_module(f"datahall.workload.{home}"), name)
    return found

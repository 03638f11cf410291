"""What runs: a transformer as operators with arithmetic and traffic, and the memory that it needs.

Everything is plain arithmetic over numbers or NumPy columns and knows nothing of hardware.
"""

from __future__ import annotations

from datahall.lazy import exporter

_HOMES = {
    "backward": (
        "Gradients",
        "backward_pass",
        "training_pass",
    ),
    "flops": (
        "forward_flop_per_token",
        "mfu_fraction",
        "training_flop_per_token",
    ),
    "forward": (
        "forward_pass",
        "layer_operators",
        "mixed_pass",
    ),
    "memory.activation": (
        "SavedTensor",
        "Saving",
        "activation_bytes",
        "layer_tensors",
        "outside_tensors",
    ),
    "memory.footprint": (
        "Footprint",
        "training_footprint",
    ),
    "memory.kv_cache": (
        "kv_bytes",
        "kv_bytes_per_token",
        "recurrent_state_bytes",
    ),
    "memory.state": (
        "StateBytes",
        "StateRecipe",
        "chip_parameters",
        "serving_weight_bytes",
        "state_bytes",
    ),
    "operator": (
        "Attention",
        "Gemm",
        "GroupedGemm",
        "Number",
        "Operator",
        "Stream",
        "total_bytes",
        "total_flop",
        "total_weight_bytes",
    ),
    "parameters": (
        "ParameterCount",
        "count_parameters",
    ),
    "precision": ("Precision",),
    "sharding": ("Sharding",),
    "step": ("Chunk",),
}
__getattr__ = exporter(__name__, _HOMES)
__all__ = [name for names in _HOMES.values() for name in names]

"""What runs: a transformer as operators with arithmetic and traffic, and the memory that it needs.

Everything is plain arithmetic over numbers or NumPy columns and knows nothing of hardware.
"""

from datahall.workload.backward import Gradients, backward_pass, training_pass
from datahall.workload.flops import forward_flop_per_token, mfu_fraction, training_flop_per_token
from datahall.workload.forward import forward_pass, layer_operators, mixed_pass
from datahall.workload.memory.activation import (
    SavedTensor,
    Saving,
    activation_bytes,
    layer_tensors,
    outside_tensors,
)
from datahall.workload.memory.footprint import Footprint, training_footprint
from datahall.workload.memory.kv_cache import kv_bytes, kv_bytes_per_token, recurrent_state_bytes
from datahall.workload.memory.state import (
    StateBytes,
    StateRecipe,
    chip_parameters,
    serving_weight_bytes,
    state_bytes,
)
from datahall.workload.operator import (
    Attention,
    Gemm,
    GroupedGemm,
    Number,
    Operator,
    Stream,
    total_bytes,
    total_flop,
    total_weight_bytes,
)
from datahall.workload.parameters import ParameterCount, count_parameters
from datahall.workload.precision import Precision
from datahall.workload.sharding import Sharding
from datahall.workload.step import Chunk

__all__ = [
    "Attention",
    "Chunk",
    "Footprint",
    "Gemm",
    "Gradients",
    "GroupedGemm",
    "Number",
    "Operator",
    "ParameterCount",
    "Precision",
    "SavedTensor",
    "Saving",
    "Sharding",
    "StateBytes",
    "StateRecipe",
    "Stream",
    "activation_bytes",
    "backward_pass",
    "chip_parameters",
    "count_parameters",
    "forward_flop_per_token",
    "forward_pass",
    "kv_bytes",
    "kv_bytes_per_token",
    "layer_operators",
    "layer_tensors",
    "mfu_fraction",
    "mixed_pass",
    "outside_tensors",
    "recurrent_state_bytes",
    "serving_weight_bytes",
    "state_bytes",
    "total_bytes",
    "total_flop",
    "total_weight_bytes",
    "training_flop_per_token",
    "training_footprint",
    "training_pass",
]

"""How fast chips that train a model on text take tokens, and what a checkpoint of it is.

    tokens/s of a chip = MFU · peak / FLOP of a token

For Llama 3.1 405B at 40 % of an H100's 989 TFLOP/s that is 160 tokens/s, or 640 bytes: 16,384 chips read 10 MB/s.
Text never starves a chip; what storage has to bear are checkpoints.
"""

from __future__ import annotations

from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.workload.flops import training_flop_per_token
from datahall.workload.parameters import count_parameters

CONTEXT = 8192  # tokens of a sequence
TRAINED_IN = "bf16"
WEIGHT_BYTES = 2.0  # of a parameter, as weights are stored


def tokens_per_s(model: Model, chip: Chip, mfu_fraction: float) -> float:
    """Tokens that one chip trains on per second."""
    return mfu_fraction * chip.peak(TRAINED_IN) / float(training_flop_per_token(model, float(CONTEXT)))


def checkpoint_bytes(model: Model, bytes_per_parameter: float) -> float:
    """Weights and the optimiser's state [B]."""
    return count_parameters(model).total * bytes_per_parameter


def weights_bytes(model: Model) -> float:
    """What a replica loads [B]."""
    return count_parameters(model).total * WEIGHT_BYTES

"""How fast chips take tokens that train a model on text, and what a checkpoint of it is.

A model is trained as the house trains it: on the fastest layout of its chips.  Where
somebody says how fast, it is

    tokens/s of a chip = MFU · peak / FLOP of a token

For Llama 3.1 405B at 40 % of an H100's 989 TFLOP/s that is 160 tokens/s, or 640 bytes: 16,384 chips read 10 MB/s.
Text never starves a chip; what storage has to bear are checkpoints.
"""

from __future__ import annotations

from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.reliability.checkpoint.size import CheckpointSize, checkpoint_size
from datahall.scenario.scenario import Scenario
from datahall.scenario.usual import USUAL_PRECISION, USUAL_SEQ
from datahall.training.layout.layout import ON_ONE_CHIP
from datahall.training.setup import framework_of, job_of
from datahall.workload.flops import training_flop_per_token
from datahall.workload.memory.state import serving_weight_bytes
from datahall.workload.parameters import count_parameters
from datahall.workload.precision import PRESETS


def size_of(asked: Scenario) -> CheckpointSize:
    """What a checkpoint of a model holds, by the state that training keeps of it, however it is laid out."""
    job = job_of(asked)
    return checkpoint_size(job, ON_ONE_CHIP, job.books(framework_of(asked)))


def tokens_per_s(model: Model, chip: Chip, mfu_fraction: float) -> float:
    """Tokens that one chip trains on per second at a share of its peak."""
    return mfu_fraction * chip.peak(USUAL_PRECISION) / float(training_flop_per_token(model, float(USUAL_SEQ)))


def weights_bytes(model: Model) -> float:
    """What a replica loads in the usual format [B]."""
    return float(serving_weight_bytes(model, count_parameters(model), PRESETS[USUAL_PRECISION]))

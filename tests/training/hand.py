"""What the steps worked out by hand have in common.

Llama 3.1 70B: 80 layers of width 8,192 with 64 heads of 128, eight of them for keys and values, and a vocabulary of
128,256; one sequence of 8,192 tokens in 16 bits is 2²⁷ bytes.  Chips stand eight to a domain.  The time of one
collective of a size among ranks in a domain is the fabric's own.
"""

from __future__ import annotations

import msgspec
import numpy as np

from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster, cluster_of
from datahall.fabric.collectives.algorithms.bus import Collective
from datahall.fabric.collectives.choice import collective_times
from datahall.training.step.framework import framework
from datahall.training.step.step import (
    Job,
)

SHELF = Catalog(user=False)
H100 = SHELF.chip("h100-sxm")
RATE = H100.memory_bytes_per_s
CLUSTER = cluster_of(H100, 512)
KIT = msgspec.structs.replace(
    framework("nemo"), compute_factor=1.0, tensor_exposed=0.5, expert_exposed=0.5, pipeline_exposed=0.25,
    data_exposed=0.75, gradient_bytes=4.0, fixed_s=0.0, jitter=0.0, host_s=0.0,
)  # fmt: skip
LLAMA, QWEN = SHELF.model("llama-3.1-70b"), SHELF.model("qwen3-30b-a3b")
JOB = Job(model=LLAMA, seq=8192, global_batch=256)
ROUTED = Job(model=QWEN, seq=4096, global_batch=256, imbalance=1.0)
SEQUENCE = 2.0**27
TABLE = 128256 * 8192
BODY = 70_553_706_496 - 2 * TABLE


def took(
    collective: Collective, size_bytes: float, num_ranks: int, inside: int, cluster: Cluster = CLUSTER
) -> float:
    """The fabric's own time of a collective with so many ranks of a domain at most."""
    near = msgspec.structs.replace(cluster.system, num_domain=inside)
    return float(collective_times(near, collective, size_bytes, num_ranks)[0][0])


def one(times: np.ndarray) -> float:
    assert times.shape == (1,)
    return float(times[0])


DENSE = BODY / 2 + TABLE
# rank 16 beside queries, keys and values (an A for each) and the output of 80 layers, as a share of all parameters
TRAINED = 16 * 80 * (3 * 8192 + 10240 + 2 * 8192)
ADAPTED = DENSE * TRAINED / 70_553_706_496

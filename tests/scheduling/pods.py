"""Pods of Alibaba's cluster of 2023 (Weng et al., USENIX ATC 2023): the trace itself, and a made one of its shape.

The trace has no licence, so it is not kept here: DATAHALL_TRACES names the folder that has openb_pods.csv.gz, or it
lies in the folder of shared research beside the checkout.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "research" / "audit_data" / "cluster"
TRACE = Path(os.environ.get("DATAHALL_TRACES", BESIDE)) / "openb_pods.csv.gz"
HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"

needs_trace = pytest.mark.skipif(not TRACE.exists(), reason="the trace may not be redistributed")


def made_pods(folder: Path, num: int = 600) -> Path:
    """A trace of the same shape: most pods hold chips, some hold none, some never start."""
    draw = np.random.default_rng(5)
    lines = [HEAD]
    created = np.cumsum(draw.exponential(200.0, num)).astype(int)
    for pod, at in enumerate(created.tolist()):
        gpus, waits = int(draw.choice([0, 1, 1, 1, 2, 4, 8])), int(draw.exponential(30.0))
        starts = "" if pod % 10 == 9 else str(at + waits)
        quality = "BE" if pod % 3 else "LS"
        ends = at + waits + int(draw.exponential(20_000.0)) + 1
        lines.append(f"pod-{pod:04d},4000,8192,{gpus},1000,,{quality},Succeeded,{at},{ends},{starts}")
    path = folder / "pods.csv.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return path

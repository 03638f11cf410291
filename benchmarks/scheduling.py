"""A queue: a sacct dump of 100,000 jobs read and played with backfill, and what each policy takes.

RAPS and Slurm's own simulators take minutes to hours for as many jobs; they are not run here.
"""

from __future__ import annotations

import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
from table import Line

from datahall.scheduling.files.read import read_queue
from datahall.scheduling.machine import plain_machine
from datahall.scheduling.run import Conditions, simulate_queue

NUM_JOBS, NUM_NODES, NODE_CHIPS, LOAD = 100_000, 256, 8, 0.92
HEAD = "JobID|JobName|Account|User|AllocTRES|State|ExitCode|Submit|Start|End|NNodes|Timelimit|Priority"
START = datetime(2026, 1, 1)


def dump(path: Path) -> None:
    """A dump as sacct writes it, of jobs of 1 to 128 GPUs that keep a cluster nearly full."""
    draws = np.random.default_rng(3)
    gpus = draws.choice([1, 1, 1, 2, 4, 8, 8, 8, 16, 32, 64, 128], NUM_JOBS)
    run_s = draws.lognormal(7.0, 1.6, NUM_JOBS).astype(int) + 1
    gap_s = float((gpus * run_s).mean()) / (LOAD * NUM_NODES * NODE_CHIPS)
    submit_s = np.cumsum(draws.exponential(gap_s, NUM_JOBS)).astype(int)
    wait_s = draws.exponential(300.0, NUM_JOBS).astype(int)
    rows = [HEAD]
    for job, (count, run, submit, wait) in enumerate(zip(gpus, run_s, submit_s, wait_s, strict=True)):
        times = "|".join(_stamp(int(at)) for at in (submit, submit + wait, submit + wait + run))
        nodes = -(-count // NODE_CHIPS)
        given = f"billing={count},cpu={8 * count},gres/gpu={count},mem=64G,node={nodes}"
        limit = str(timedelta(seconds=int(3 * run) + 60)).replace(" days, ", "-").replace(" day, ", "-")
        rows.append(f"{job}|train|a{job % 17}|u{job % 211}|{given}|COMPLETED|0:0|{times}|{nodes}|{limit}|1")
    path.write_text("\n".join(rows), encoding="utf-8")


def _stamp(seconds: int) -> str:
    return (START + timedelta(seconds=seconds)).isoformat()


def scheduling_lines() -> list[Line]:
    """Read and play, with the loop compiled already; then other policies on the same jobs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sacct.txt"
        dump(path)
        machine = plain_machine(NUM_NODES, NODE_CHIPS)
        simulate_queue(read_queue(str(path)).jobs, machine, "backfill", Conditions())
        start = time.process_time()
        jobs = read_queue(str(path)).jobs
        read_s = time.process_time() - start
        lines = [Line(f"queue: a sacct dump of {NUM_JOBS:,} jobs read", read_s, "s")]
        for policy in ("backfill", "fair-share", "topology"):
            start = time.process_time()
            simulate_queue(jobs, machine, policy, Conditions())
            took_s = time.process_time() - start
            if policy == "backfill":
                lines.append(Line("  and played with backfill, both together", read_s + took_s, "s", 5.0))
            else:
                lines.append(Line(f"  played with {policy}", took_s, "s"))
    return lines

"""Runs over weeks, failure by failure."""

from __future__ import annotations

from functools import partial
from math import inf

from clock import best_s
from table import Line

from datahall.catalog import load
from datahall.reliability.checkpoint.tier import Cadence, CheckpointTier
from datahall.reliability.process import mttf_s, process_of
from datahall.reliability.recovery import Recovery
from datahall.reliability.simulation.simulate import simulate_runs
from datahall.units import DAY_S

NUM_RUNS = 1000


def run_lines() -> list[Line]:
    """A thousand runs of 54 days on 16,384 chips: copies to storage, and to peers every half minute beside them."""
    process = process_of(load().failure_preset("llama-3"), load(), 2048)
    recovery = Recovery(detect_s=180.0, reschedule_s=120.0, warmup_s=300.0, num_spares=20)
    remote = CheckpointTier(name="remote", blocking_s=5.0, drain_s=3.0, load_s=3.0)
    peer = CheckpointTier(name="peer", blocking_s=0.05, drain_s=0.01, load_s=0.01)
    plans = {
        "copies to storage": (Cadence(tier=remote, interval_s=330.0, share_fraction=1.0),),
        "and to peers": (
            Cadence(tier=peer, interval_s=32.0, share_fraction=0.98),
            Cadence(tier=remote, interval_s=2800.0, share_fraction=0.02),
        ),
    }
    events = NUM_RUNS * 54 * DAY_S / mttf_s(process)
    lines = []
    for name, plan in plans.items():
        took = best_s(
            partial(
                simulate_runs,
                process,
                plan,
                recovery,
                until_s=54 * DAY_S,
                goal_s=inf,
                num_runs=NUM_RUNS,
                seed=0,
            )
        )
        lines.append(Line(f"runs: {NUM_RUNS:,} of 54 days on 16,384 chips, {name}", took * 1e3, "ms", 5000.0))
        lines.append(Line("  failures per second", events / took, "/s"))
    return lines

"""From the arrays of a simulation to its result."""

from __future__ import annotations

import numpy as np

from datahall.inference.memory.tiers import NUM_TIERS
from datahall.inference.simulation.run import Records, ReplicaUse, ServingRun
from datahall.inference.simulation.state import OFF, State
from datahall.inference.simulation.state import Records as Rows

GROWS = 0.03  # of the arrivals that stay in the queue: the load is more than the fleet carries
NUM_TELLING = 200  # arrivals below which a growing queue may be chance


def summarise(state: State, ended: Rows) -> ServingRun:
    """Counts, rates and what the replicas did."""
    whole = state.fleet[0]
    now_s, last_s = float(whole["now_s"]), float(whole["last_end_s"])
    duration_s = max(now_s, last_s)
    arrived, finished = int(whole["num_arrived"]), int(whole["num_finished"])
    refused = int(whole["num_too_long"] + whole["num_too_large"])
    stable, sustained = stability(state, finished, duration_s)
    waiting_s = whole["waiting_area_s"] + whole["num_waiting"] * (now_s - whole["waiting_since_s"])
    return ServingRun(
        duration_s=duration_s,
        num_arrived=arrived,
        num_finished=finished,
        num_unfinished=arrived - finished - refused,
        num_too_long=int(whole["num_too_long"]),
        num_too_large=int(whole["num_too_large"]),
        num_answered=int(whole["num_answered"]),
        num_measured=int(whole["num_measured"]),
        num_good=int(whole["num_good"]),
        num_preempted=int(whole["num_preempted"]),
        num_rerouted=int(whole["num_rerouted"]),
        prompt_tokens=int(whole["prompt_tokens"]),
        output_tokens=int(whole["output_tokens"]),
        hit_tokens=int(whole["hit_tokens"]),
        measured_s=max(0.0, duration_s - float(whole["warmup_s"])),
        queue_mean=float(waiting_s / now_s) if now_s > 0 else 0.0,
        queue_peak=int(whole["peak_waiting"]),
        stable=stable,
        sustained_per_s=sustained,
        replicas=_use(state, now_s),
        histograms=state.histograms.copy(),
        records=_records(ended) if whole["record"] else None,
        trace=state.trace if state.trace.kept.size > 1 else None,
        num_events=int(whole["num_events"]),
        host_hit_tokens=int(state.tiers["hit_tokens"][0::NUM_TIERS].sum()),
        num_over_budget=int(whole["num_over_budget"]),
        num_over_blocks=int(whole["num_over_blocks"]),
        num_short=int(whole["num_short"]),
        drive_hit_tokens=int(state.tiers["hit_tokens"][1::NUM_TIERS].sum()),
    )


def stability(state: State, finished: int, duration_s: float) -> tuple[bool, float]:
    """Whether the queue keeps its length, and the rate served: arrivals less the slope of the queue over time."""
    whole = state.fleet[0]
    num, last_s = int(whole["num_arrived"]), float(whole["last_arrival_s"])
    served = finished / duration_s if duration_s > 0 else 0.0
    if whole["users"] or num < NUM_TELLING or last_s <= 0:
        return True, served
    spread = num * whole["sum_tt"] - whole["sum_t"] ** 2
    slope = (num * whole["sum_tq"] - whole["sum_t"] * whole["sum_q"]) / spread if spread > 0 else 0.0
    rate = num / last_s
    if slope <= GROWS * rate:
        return True, max(served, rate)
    return False, max(float(rate - slope), min(served, rate))


def _use(state: State, now_s: float) -> ReplicaUse:
    rows, blocks = state.replicas, state.pools["blocks"][state.replicas["pool"]]
    active_s = rows["active_s"] + np.where(rows["status"] != OFF, now_s - rows["active_since_s"], 0.0)
    seconds = np.maximum(active_s, 1e-12)
    return ReplicaUse(
        pool=rows["pool"].copy(),
        busy_fraction=rows["busy_s"] / seconds,
        active_s=active_s,
        num_steps=rows["num_steps"].copy(),
        num_preempted=rows["preempted"].copy(),
        cache_mean_fraction=rows["used_area_s"] / seconds / np.maximum(blocks, 1),
        cache_peak_fraction=rows["peak_used"] / np.maximum(blocks, 1),
        queue_mean=rows["queue_area_s"] / seconds,
        queue_peak=rows["peak_queued"].copy(),
        prompt_tokens=rows["prompt_tokens"].copy(),
        output_tokens=rows["output_tokens"].copy(),
        free_blocks=rows["free"].copy(),
        blocks=blocks.copy(),
        host_blocks=state.tiers["held"][0::NUM_TIERS].copy(),
        drive_blocks=state.tiers["held"][1::NUM_TIERS].copy(),
    )


def _records(ended: Rows) -> Records:
    rows = ended[np.argsort(ended["row"], kind="stable")]
    return Records(**{name: np.ascontiguousarray(rows[name]) for name in rows.dtype.names or ()})

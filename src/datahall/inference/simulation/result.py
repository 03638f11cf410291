"""From the arrays of a simulation to its result."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from datahall.inference.simulation import histogram
from datahall.inference.simulation.lifecycle import E2E
from datahall.inference.simulation.run import Records, ReplicaUse, ServingRun
from datahall.inference.simulation.scheduler import IDLE, WAITS
from datahall.inference.simulation.state import NUM_TIERS, OFF, State
from datahall.inference.simulation.state import Records as Rows

Floats = NDArray[np.float64]

GROWS = 0.03  # of the arrivals that stay in the queue: the load is more than the fleet carries
NUM_TELLING = 200  # arrivals below which a growing queue may be chance


class Meter(NamedTuple):
    """Counts and areas of a fleet at one moment; what lies between two of them is their difference."""

    time_s: float
    num_ended: int
    prompt_tokens: int
    output_tokens: int
    waiting_area_s: float
    busy_s: Floats  # of each replica, as all below
    active_s: Floats
    used_area_s: Floats
    queue_area_s: Floats


def read_meter(state: State, time_s: float | None = None) -> Meter:
    """What has happened until now, with the part that has passed of what is under way."""
    whole, rows = state.fleet[0], state.replicas
    now_s = float(whole["now_s"]) if time_s is None else time_s
    computing = (rows["in_flight"] != IDLE) & (rows["in_flight"] != WAITS)
    begun_s = np.where(computing, np.maximum(0.0, now_s - rows["start_s"]), 0.0)
    used = state.pools["blocks"][rows["pool"]] - rows["free"]
    return Meter(
        time_s=now_s,
        num_ended=int(whole["num_finished"]),
        prompt_tokens=int(whole["all_prompt_tokens"]),
        output_tokens=int(whole["all_output_tokens"]),
        waiting_area_s=float(
            whole["waiting_area_s"] + whole["num_waiting"] * (now_s - whole["waiting_since_s"])
        ),
        busy_s=rows["busy_s"] + begun_s,
        active_s=rows["active_s"] + np.where(rows["status"] != OFF, now_s - rows["active_since_s"], 0.0),
        used_area_s=rows["used_area_s"] + used * begun_s,
        queue_area_s=rows["queue_area_s"] + rows["queued"] * (now_s - rows["queue_since_s"]),
    )


def summarise(
    state: State, ended: Rows, begun: Meter | None = None, closed: Meter | None = None
) -> ServingRun:
    """Counts, rates and what the replicas did, between two readings where they are far enough from each other."""
    whole = state.fleet[0]
    now_s, last_s = float(whole["now_s"]), float(whole["last_end_s"])
    duration_s = max(now_s, last_s)
    arrived, finished = int(whole["num_arrived"]), int(whole["num_finished"])
    refused = int(whole["num_too_long"] + whole["num_too_large"])
    stable, sustained = stability(state, finished, duration_s)
    end = read_meter(state)
    load = _between(begun, closed or end, histogram.mean(state.histograms[E2E]))
    start, stop = load or (_zero(end), end)
    warmup_s, measured = float(whole["warmup_s"]), int(whole["num_measured"])
    tokens = int(whole["prompt_tokens"]), int(whole["output_tokens"])
    return ServingRun(
        duration_s=duration_s,
        num_arrived=arrived,
        num_finished=finished,
        num_unfinished=arrived - finished - refused,
        num_too_long=int(whole["num_too_long"]),
        num_too_large=int(whole["num_too_large"]),
        num_answered=int(whole["num_answered"]),
        num_measured=measured,
        num_good=int(whole["num_good"]),
        num_preempted=int(whole["num_preempted"]),
        num_rerouted=int(whole["num_rerouted"]),
        prompt_tokens=tokens[0],
        output_tokens=tokens[1],
        hit_tokens=int(whole["hit_tokens"]),
        drain_apart=load is not None,
        measured_s=stop.time_s - start.time_s if load else max(0.0, duration_s - warmup_s),
        num_ended=stop.num_ended - start.num_ended if load else measured,
        ended_prompt_tokens=stop.prompt_tokens - start.prompt_tokens if load else tokens[0],
        ended_output_tokens=stop.output_tokens - start.output_tokens if load else tokens[1],
        queue_mean=(stop.waiting_area_s - start.waiting_area_s) / (stop.time_s - start.time_s)
        if stop.time_s > start.time_s
        else 0.0,
        queue_peak=int(whole["peak_waiting"]),
        stable=stable,
        sustained_per_s=sustained,
        replicas=_use(state, start, stop),
        histograms=state.histograms.copy(),
        records=_records(ended) if whole["record"] else None,
        trace=state.trace if state.trace.kept.size > 1 else None,
        num_events=int(whole["num_events"]),
        host_hit_tokens=int(state.cache.tiers["hit_tokens"][1::NUM_TIERS].sum()),
        num_over_budget=int(whole["num_over_budget"]),
        num_over_blocks=int(whole["num_over_blocks"]),
        num_short=int(whole["num_short"]),
        drive_hit_tokens=int(state.cache.tiers["hit_tokens"][2::NUM_TIERS].sum()),
    )


def _between(begun: Meter | None, closed: Meter, stay_s: float) -> tuple[Meter, Meter] | None:
    """Both readings, where what lies between is at least as long as a request stays: less says nothing about a rate."""
    if begun is None or not closed.time_s - begun.time_s >= stay_s > 0.0:
        return None
    return begun, closed


def _zero(like: Meter) -> Meter:
    """The reading of a fleet that has not begun."""
    none = np.zeros_like(like.busy_s)
    return Meter(0.0, 0, 0, 0, 0.0, none, none, none, none)


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


def _use(state: State, start: Meter, stop: Meter) -> ReplicaUse:
    """Means of the time between two readings; counts and peaks of the whole run, as `active_s` is, which is paid."""
    rows, blocks = state.replicas, state.pools["blocks"][state.replicas["pool"]]
    seconds = np.maximum(stop.active_s - start.active_s, 1e-12)
    return ReplicaUse(
        pool=rows["pool"].copy(),
        busy_fraction=(stop.busy_s - start.busy_s) / seconds,
        active_s=read_meter(state).active_s,
        num_steps=rows["num_steps"].copy(),
        num_preempted=rows["preempted"].copy(),
        cache_mean_fraction=(stop.used_area_s - start.used_area_s) / seconds / np.maximum(blocks, 1),
        cache_peak_fraction=rows["peak_used"] / np.maximum(blocks, 1),
        queue_mean=(stop.queue_area_s - start.queue_area_s) / seconds,
        queue_peak=rows["peak_queued"].copy(),
        prompt_tokens=rows["prompt_tokens"].copy(),
        output_tokens=rows["output_tokens"].copy(),
        free_blocks=rows["free"].copy(),
        blocks=blocks.copy(),
        host_blocks=state.cache.tiers["held"][1::NUM_TIERS].copy(),
        drive_blocks=state.cache.tiers["held"][2::NUM_TIERS].copy(),
    )


def _records(ended: Rows) -> Records:
    rows = ended[np.argsort(ended["row"], kind="stable")]
    return Records(**{name: np.ascontiguousarray(rows[name]) for name in rows.dtype.names or ()})

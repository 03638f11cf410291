"""From the arrays of a simulation to its result."""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from datahall.inference.simulation import histogram
from datahall.inference.simulation.histogram import E2E, TPOT
from datahall.inference.simulation.run import Records, ReplicaUse, ServingRun, Watched
from datahall.inference.simulation.scheduler import IDLE, WAITS
from datahall.inference.simulation.state import ALL_ROWS, NUM_TIERS, OFF, State
from datahall.inference.simulation.state import Records as Rows

Floats = NDArray[np.float64]

GROWS = 0.03  # of the arrivals that stay in the queue: the load is more than the fleet carries
FILLS = 3.0  # stays of a request after which an overloaded fleet ends what it holds
NUM_TELLING = 200  # arrivals below which a growing queue may be chance


class Meter(NamedTuple):
    """Counts and areas of a fleet at one moment; what lies between two of them is their difference."""

    time_s: float
    num_arrived: int
    num_ended: int
    prompt_tokens: int
    output_tokens: int
    waiting_area_s: float
    busy_s: Floats  # of each replica, as all below
    active_s: Floats
    used_area_s: Floats
    queue_area_s: Floats


class Passed(NamedTuple):
    """What went through a fleet in a time."""

    time_s: float
    num_requests: int
    prompt_tokens: int
    output_tokens: int


def read_meter(state: State) -> Meter:
    """What has happened until now, with the part that has passed of what is under way."""
    whole, rows = state.fleet[0], state.replicas
    now_s = float(whole["now_s"])
    computing = (rows["in_flight"] != IDLE) & (rows["in_flight"] != WAITS)
    begun_s = np.where(computing, np.maximum(0.0, now_s - rows["start_s"]), 0.0)
    used = state.pools["blocks"][rows["pool"]] - rows["free"]
    return Meter(
        time_s=now_s,
        num_arrived=int(whole["num_arrived"]),
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
    state: State,
    ended: Rows,
    begun: Meter | None = None,
    closed: Meter | None = None,
) -> ServingRun:
    """Counts, rates and what the replicas did, between two readings where they are far enough from each other."""
    whole = state.fleet[0]
    now_s, last_s = float(whole["now_s"]), float(whole["last_end_s"])
    arrived, finished = int(whole["num_arrived"]), int(whole["num_finished"])
    refused = int(whole["num_too_long"] + whole["num_too_large"])
    duration_s = max(now_s, last_s)
    stable, sustained = stability(state, finished, duration_s)
    end = read_meter(state)
    stop = closed or end
    measured, tokens = int(whole["num_measured"]), (int(whole["prompt_tokens"]), int(whole["output_tokens"]))
    passed, apart, start = (
        Passed(duration_s, finished, end.prompt_tokens, end.output_tokens),
        False,
        _zero(end),
    )
    window_s = stop.time_s - begun.time_s if begun is not None else 0.0
    if begun is None:
        passed = Passed(max(0.0, duration_s - float(whole["warmup_s"])), measured, *tokens)
    elif window_s > 0.0 and window_s >= (1.0 if stable else FILLS) * _stay_s(state, stable):
        passed, apart, start = _passed(begun, stop), True, begun
        limited = whole["measure_rows"] < ALL_ROWS or isfinite(whole["measure_until_s"])
        span_s = float(whole["last_measured_s"] - whole["warmup_s"])
        if stable and limited and span_s > 0.0 and not whole["users"] and arrived == finished + refused:
            # all that comes is served: counted by arrival, a fleet that is still filling does not lag behind
            passed = Passed(span_s, measured, *tokens)
    if begun is not None and not stable:
        sustained = passed.num_requests / passed.time_s
    stop = stop if apart else end
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
        drain_apart=apart,
        measured_s=passed.time_s,
        num_passed=passed.num_requests,
        passed_prompt_tokens=passed.prompt_tokens,
        passed_output_tokens=passed.output_tokens,
        queue_mean=(stop.waiting_area_s - start.waiting_area_s) / (stop.time_s - start.time_s)
        if stop.time_s > start.time_s
        else 0.0,
        queue_peak=int(whole["peak_waiting"]),
        watched=_watched(state),
        stable=stable,
        sustained_per_s=sustained,
        replicas=_use(state, start, stop, end),
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


def _stay_s(state: State, stable: bool) -> float:
    """From arrival to end on average; of a fleet that is overloaded without the wait."""
    whole = state.fleet[0]
    if stable:
        return histogram.mean(state.histograms[E2E])
    return (
        histogram.mean(state.histograms[TPOT])
        * float(whole["output_tokens"])
        / max(1, int(whole["num_measured"]))
    )


def _passed(start: Meter, stop: Meter) -> Passed:
    """What ended between two readings."""
    return Passed(
        stop.time_s - start.time_s,
        stop.num_ended - start.num_ended,
        stop.prompt_tokens - start.prompt_tokens,
        stop.output_tokens - start.output_tokens,
    )


def _zero(like: Meter) -> Meter:
    """The reading of a fleet that has not begun."""
    none = np.zeros_like(like.busy_s)
    return Meter(0.0, 0, 0, 0, 0, 0.0, none, none, none, none)


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


def _use(state: State, start: Meter, stop: Meter, end: Meter) -> ReplicaUse:
    """Means of the time between two readings; counts and peaks of the whole run, as `active_s` is, which is paid."""
    rows, blocks = state.replicas, state.pools["blocks"][state.replicas["pool"]]
    seconds = np.maximum(stop.active_s - start.active_s, 1e-12)
    return ReplicaUse(
        pool=rows["pool"].copy(),
        busy_fraction=(stop.busy_s - start.busy_s) / seconds,
        active_s=end.active_s,
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


def _watched(state: State) -> Watched | None:
    """The readings of a run, where there are any."""
    looks = state.looks[: state.fleet[0]["num_looks"]]
    if not looks.size:
        return None
    time_s = looks["time_s"].copy()
    blocks = state.pools["blocks"][state.replicas["pool"]].sum()
    return Watched(
        time_s=time_s,
        num_waiting=np.diff(looks["waiting_area_s"], prepend=0.0) / np.diff(time_s, prepend=0.0),
        num_running=looks["running"].copy(),
        cache_fraction=np.minimum(1.0, looks["used"] / max(1, blocks)),
    )


def _records(ended: Rows) -> Records:
    order, names = np.argsort(ended["row"], kind="stable"), ended.dtype.names or ()
    columns = np.ascontiguousarray(
        ended.view(np.int64).reshape(-1, len(names))[order].T
    )  # fields of one size
    return Records(**{name: row.view(ended.dtype[name]) for name, row in zip(names, columns, strict=True)})

"""Serving: requests simulated per CPU-second, a day of a fleet, and the memory of ten million requests.

Rates of other simulators are as recorded on a machine of this kind with the same requests (512 tokens in, 128 out, four
a second, one replica); they are not run here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from math import nan
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from clock import best_s
from table import Line

import datahall as dh
from datahall.catalog import load
from datahall.inference.engine.engine import engine
from datahall.inference.engine.replica import Replica
from datahall.inference.fleet.fleet import Fleet
from datahall.inference.simulation.simulate import simulate_serving
from datahall.workload.traffic.requests import Requests

VIDUR_PER_S, BLIS_PER_S, DYNOSIM_PER_S = 270.0, 1_400.0, 11_000.0
DYNOSIM_SHARED_PER_S = 10_000.0  # where prompts share prefixes; 5,000 to 10,000
AICONFIGURATOR_S = 13.0  # CPU-seconds of one search
DAY_S = 86_400.0
CHUNK = 50_000


def serving_lines() -> list[Line]:
    """One replica first, then a fleet for a day, then ten million requests."""
    return [*replica_lines(), *shared_lines(), *day_lines(), *user_lines(), *plan_lines(), *memory_lines()]


def poisson(num: int, rate_per_s: float, prompt: int, output: int) -> Iterator[Requests]:
    """Independent requests of one length, a chunk at a time."""
    draw, start_s = np.random.default_rng(1), 0.0
    for start in range(0, num, CHUNK):
        size = min(CHUNK, num - start)
        arrival_s = start_s + np.cumsum(draw.exponential(1.0 / rate_per_s, size))
        start_s = float(arrival_s[-1])
        yield Requests.of(arrival_s, np.full(size, prompt), np.full(size, output))


def fleet_of(model: str, count: int = 1, tp: int = 1) -> Fleet:
    """Equal replicas on H100."""
    shelf = load()
    replica = Replica(model=shelf.model(model), chip=shelf.chip("h100-sxm"), engine=engine("vllm"), tp=tp)
    return Fleet.of(replica, count)


def cpu_s(fleet: Fleet, num: int, rate_per_s: float, prompt: int, output: int) -> float:
    """CPU time of a run [s], tables and compiled code already there."""
    simulate_serving(fleet, poisson(100, rate_per_s, prompt, output))
    start = time.process_time()
    simulate_serving(fleet, poisson(num, rate_per_s, prompt, output))
    return time.process_time() - start


def replica_lines() -> list[Line]:
    """Llama 8B on one chip."""
    rate = 400_000 / cpu_s(fleet_of("llama-3.1-8b"), 400_000, 4.0, 512, 128)
    return [
        Line("serving: requests simulated per CPU-second, 512 in, 128 out", rate, "/s", 50_000.0, True),
        Line("  against DynoSim as recorded", rate / DYNOSIM_PER_S, "× its rate"),
        Line("  against BLIS as recorded", rate / BLIS_PER_S, "× its rate"),
        Line("  against Vidur as recorded", rate / VIDUR_PER_S, "× its rate"),
    ]


SHARED: dict[str, dict[str, Any]] = {
    "half of 1,000 tokens a system prompt": {"rate": 40, "isl": 1000, "osl": 200, "system": 500},
    "six turns of 1,000 tokens": {"rate": 8, "isl": 1000, "osl": 200, "turns": 6},
    "a coding agent": {"rate": 3, "traffic": "agent"},
    "Mooncake's agents": {"rate": 8, "traffic": "mooncake-agent"},
}


def shared_lines() -> list[Line]:
    """Prompts that share prefixes, on eight replicas of one chip, as a question is asked; the best of five."""
    lines = []
    for name, asked in SHARED.items():
        ask = partial(
            dh.simulate_serve, "llama-3.1-8b", chip="h100-sxm", replicas=8, requests=20_000, **asked
        )
        num_finished = ask().results["num_finished"]
        assert isinstance(num_finished, int)
        rate = num_finished / best_s(ask)
        lines.append(Line(f"serving: shared prefixes, {name}", rate, "/s", 100_000.0, True))
    slowest = min(line.value for line in lines)
    return [
        *lines,
        Line("  the slowest against DynoSim as recorded", slowest / DYNOSIM_SHARED_PER_S, "× its rate"),
    ]


def day_lines() -> list[Line]:
    """Llama 70B on 45 groups of four chips, 80 requests a second for a day."""
    num = int(80.0 * DAY_S)
    took = cpu_s(fleet_of("llama-3.1-70b", 45, 4), num, 80.0, 1024, 256)
    return [Line(f"serving: a day of 45 replicas, {num / 1e6:.1f} M requests", took, "CPU-s", 30.0)]


def user_lines() -> list[Line]:
    """Ten thousand users who never pause, 300 tokens in and 600 out, on 180 chips."""
    fleet, num = fleet_of("llama-3.1-70b", 45, 4), 4_000_000
    start = time.process_time()
    run = simulate_serving(fleet, poisson(num, 1e9, 300, 600), users=10_000)
    took = (time.process_time() - start) * DAY_S / run.duration_s
    return [Line("serving: a day of 10,000 users on 180 chips (2.4 h of it, scaled)", took, "CPU-s", 30.0)]


def plan_lines() -> list[Line]:
    """The golden scenario, tables and compiled code already there."""
    took = best_s(lambda: dh.plan_serve("llama-3.1-70b", users=10_000))
    return [
        Line(
            "serving: plan over four chips and two precisions, the best simulated", took * 1e3, "ms", 1000.0
        ),
        Line("  against AIConfigurator as recorded, two chips", AICONFIGURATOR_S / took, "× its speed"),
    ]


def memory_lines() -> list[Line]:
    """How much higher ten million requests lift the peak of a fresh process than a hundred thousand do."""
    simulate_serving(
        fleet_of("llama-3.1-8b"), poisson(100, 60.0, 128, 8)
    )  # compiled before either is measured
    peaks = []
    for num in (100_000, 10_000_000):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            peaks.append(pool.submit(peak_bytes, num).result())
    more = (peaks[1] - peaks[0]) / 2**20
    return [Line("serving: memory that 10 M requests take over 0.1 M", more, "MiB", 64.0)]


def peak_bytes(num: int) -> float:
    """The most memory that this process has had, after so many requests on eight replicas."""
    simulate_serving(fleet_of("llama-3.1-8b", 8), poisson(num, 60.0, 128, 8))
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM:"):
            return float(line.split()[1]) * 1024.0
    return nan

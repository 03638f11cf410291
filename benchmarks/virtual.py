"""The virtual engine under load: its latencies beside those that the simulator says of the same requests, and its room.

Engine and load generator are processes of their own, in real time.  Other work on the machine makes answers late and
never early, so the best of some runs is taken; the core is that of its busiest load, as an engine with little to do
spends time on waking in the right fraction of a millisecond.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gateway import cpu_s
from table import Line

import datahall as dh

MODEL, CHIP, REPLICAS = "llama-3.1-8b", "h100", 2
RUNS = 3
TOKENS_PER_S = 50  # of one stream
WITHIN = 5.0  # percent
LOADS: dict[str, dict[str, Any]] = {
    "20 requests a second": {"rate": 20, "duration": "10s"},
    "64 users who come at once": {"users": 64, "requests": 512},
    "256 users who come at once": {"users": 256, "requests": 1024},
}
LENGTHS: dict[str, Any] = {"isl": 500, "osl": 100, "spread": 0.5}
LATENCIES = ("mean_ttft", "median_ttft", "mean_tpot", "median_tpot")


def virtual_lines() -> list[Line]:
    """How far measured latencies lie from simulated ones, load by load, and how many streams a core answers."""
    lines, token_s = [], 0.0
    with virtual() as (process, url):
        for name, load in LOADS.items():
            runs, tokens, before_s = [], 0, cpu_s(process)
            for seed in range(RUNS):
                results: Any = dh.gateway_load(
                    url, model=MODEL, chip=CHIP, replicas=REPLICAS, seed=seed, **LENGTHS, **load
                ).results
                tokens += int(results["total_output_tokens"])
                runs.append(off_percent(results))
            lines += offs(name, min(runs, key=furthest_percent))
            token_s = (cpu_s(process) - before_s) / tokens
    return [
        *lines,
        Line("virtual engine: CPU a streamed token, the most users", token_s * 1e6, "µs"),
        Line(f"  streams of {TOKENS_PER_S} a second at once, a core", 1 / (token_s * TOKENS_PER_S), "/s"),
    ]


def offs(name: str, run: dict[str, float]) -> list[Line]:
    """One load: the latency that is furthest off, and each."""
    return [
        Line(f"virtual engine: furthest from the simulation, {name}", furthest_percent(run), "%", WITHIN),
        *(Line(f"  {latency.replace('_', ' ')}", off, "%") for latency, off in run.items()),
    ]


def furthest_percent(run: dict[str, float]) -> float:
    return max(map(abs, run.values()))


def off_percent(results: Any) -> dict[str, float]:
    return {
        latency: 100 * (results[f"{latency}_ms"] / results[f"simulated_{latency}_ms"] - 1)
        for latency in LATENCIES
    }


@contextmanager
def virtual() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A simulated fleet that runs: its process and its URL."""
    said = ["--virtual", MODEL, "--on", CHIP, "--replicas", str(REPLICAS), "--listen", "127.0.0.1:0"]
    command = [sys.executable, "-m", "datahall", "serve", *said]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().split()[0]
        finally:
            process.terminate()

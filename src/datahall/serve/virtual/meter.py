"""What a virtual engine measures, under the names that vLLM's engines have."""

from __future__ import annotations

from collections.abc import Iterator

from datahall.inference.simulation.state import ACTIVE
from datahall.serve.modelserver.meter import Histogram
from datahall.serve.virtual.course import Course

WAITING, ROUTER = "vllm:num_requests_waiting", "router"  # where requests wait that no replica is up for
LONG_S = (
    0.001,
    0.005,
    0.01,
    0.02,
    0.04,
    0.06,
    0.08,
    0.1,
    0.25,
    0.5,
    0.75,
    1,
    2.5,
    5,
    7.5,
    10,
    20,
    40,
    80,
    160,
    640,
)
SHORT_S = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.015,
    0.02,
    0.025,
    0.05,
    0.075,
    0.1,
    0.15,
    0.2,
    0.3,
    0.4,
    0.5,
    0.75,
    1,
    2.5,
    5,
)


class Meter:
    """Counters beside those that the simulation keeps; times are simulated ones."""

    def __init__(self) -> None:
        self.prompt_tokens = self.generation_tokens = 0
        self.ended = {"length": 0, "abort": 0, "error": 0}
        self.first_s, self.end_s = Histogram(LONG_S), Histogram(LONG_S)
        self.gap_s, self.token_s = Histogram(SHORT_S), Histogram(SHORT_S)

    def exposition(self, course: Course, model: str) -> str:
        """In the text format of Prometheus; an engine is a replica."""
        label = f'model_name="{model}"'
        text = [*_gauges(course, label)]
        for name, value in (
            ("prompt_tokens", self.prompt_tokens),
            ("generation_tokens", self.generation_tokens),
            ("num_preemptions", int(course.state.fleet[0]["num_preempted"])),
        ):
            text += [f"# TYPE vllm:{name}_total counter", f"vllm:{name}_total{{{label}}} {value}"]
        text.append("# TYPE vllm:request_success_total counter")
        text += [
            f'vllm:request_success_total{{{label},finished_reason="{why}"}} {num}'
            for why, num in self.ended.items()
        ]
        for name, histogram in (
            ("time_to_first_token", self.first_s),
            ("inter_token_latency", self.gap_s),
            ("request_time_per_output_token", self.token_s),
            ("e2e_request_latency", self.end_s),
        ):
            text.append(f"# TYPE vllm:{name}_seconds histogram")
            text += histogram.lines(f"vllm:{name}_seconds", label)
        return "\n".join(text) + "\n"


def _gauges(course: Course, label: str) -> Iterator[str]:
    replicas, pools = course.state.replicas, course.state.pools
    blocks = pools["blocks"][replicas["pool"]]
    for name, values in (
        ("vllm:num_requests_running", replicas["running"]),
        (WAITING, replicas["queued"]),
        ("vllm:kv_cache_usage_perc", 1.0 - replicas["free"] / blocks),
        ("datahall_virtual_replica_up", (replicas["status"] == ACTIVE).astype(int)),
    ):
        yield f"# TYPE {name} gauge"
        yield from (f'{name}{{{label},engine="{place}"}} {value:.9g}' for place, value in enumerate(values))
        if name == WAITING:
            yield f'{name}{{{label},engine="{ROUTER}"}} {course.num_held}'

"""One scenario at two levels of detail, and the difference.

closed form: each job alone, from the formulas of `collectives/`, with the slowest link and the longest path
of its own. symmetric:   flows that share links, alike ones folded, a phase at a time. full:        every
message of every round, each waiting only for what it must.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import msgspec
import numpy as np

from datahall.errors import ScenarioError, option
from datahall.fabric.collectives.algorithms import all_gather, all_reduce, all_to_all, rooted
from datahall.fabric.collectives.algorithms.bus import Number
from datahall.fabric.flows.jobs import Ask, Job, Level, Net, Routing, job_routes, latency_s
from datahall.fabric.flows.outcome import FlowScenario, Outcome, simulate_flows

Fidelity = Literal["closed-form", "symmetric", "full"]
FIDELITIES: tuple[Fidelity, ...] = get_args(Fidelity)
Formula = Callable[..., Number]


def _tree_rooted(size_bytes: Number, num_ranks: Number, *, hop_s: Number, bytes_per_s: Number) -> Number:
    """A binomial tree that sends whole arrays, one way: half an all-reduce of that kind."""
    both = all_reduce.tree_all_reduce_time(size_bytes, num_ranks, hop_s=hop_s, bytes_per_s=bytes_per_s)
    return both / 2.0


FORMULAS: dict[tuple[str, str], Formula] = {
    ("all-reduce", "ring"): all_reduce.ring_all_reduce_time,
    ("all-reduce", "tree"): all_reduce.tree_all_reduce_time,
    ("all-reduce", "halving-doubling"): all_reduce.halving_doubling_all_reduce_time,
    ("all-gather", "ring"): all_gather.ring_all_gather_time,
    ("all-gather", "doubling"): all_gather.bruck_all_gather_time,
    ("reduce-scatter", "ring"): all_gather.ring_all_gather_time,
    ("reduce-scatter", "halving"): all_gather.bruck_all_gather_time,
    ("all-to-all", "direct"): all_to_all.direct_all_to_all_time,
    ("all-to-all", "pairwise"): all_to_all.direct_all_to_all_time,
    ("broadcast", "tree"): _tree_rooted,
    ("reduce", "tree"): _tree_rooted,
    ("send-recv", "direct"): rooted.send_recv_time,
}


class JobTimes(msgspec.Struct, frozen=True):
    """How long one job takes at two levels [s]; the difference is of the second from the first."""

    name: str
    lower_s: float
    higher_s: float

    @property
    def difference_fraction(self) -> float:
        return self.higher_s / self.lower_s - 1.0 if self.lower_s > 0 else 0.0


class Crosscheck(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of a scenario at two levels."""

    lower: Fidelity
    higher: Fidelity
    jobs: tuple[JobTimes, ...]

    @property
    def worst_fraction(self) -> float:
        """The largest difference of any job, either way."""
        return max((abs(job.difference_fraction) for job in self.jobs), default=0.0)


def level_named(text: str) -> Level:
    """A level that can be simulated."""
    return "full" if text == "full" else "symmetric"


def check_levels(level: str, other: str) -> tuple[Fidelity, Fidelity]:
    """Two levels to compare, the coarser first; a level says nothing beside itself."""
    if other == level:
        known = ", ".join(one for one in FIDELITIES if one != level)
        raise ScenarioError(
            f"{option('check_with', other)} is the level that is simulated",
            field="check_with",
            hint=f"one of {known}",
        )
    both = sorted((one for one in FIDELITIES if one in (level, other)), key=FIDELITIES.index)
    return both[0], both[1]


def crosscheck(
    scenario: FlowScenario,
    lower: Fidelity = "symmetric",
    higher: Fidelity = "full",
    known: Outcome | None = None,
) -> Crosscheck:
    """Time every job at two levels; an outcome that is there already is not simulated again."""
    first, second = (job_times(scenario, level, known) for level in (lower, higher))
    rows = tuple(
        JobTimes(job.name, one, other) for job, one, other in zip(scenario.jobs, first, second, strict=True)
    )
    return Crosscheck(lower=lower, higher=higher, jobs=rows)


def job_times(scenario: FlowScenario, level: Fidelity, known: Outcome | None = None) -> list[float]:
    """From the start of each job to its end [s]."""
    if level == "closed-form":
        return [
            closed_form_s(scenario.net, job, ask)
            for job, ask in zip(scenario.jobs, scenario.asks, strict=True)
        ]
    outcome = known if known is not None and known.level == level else simulate_flows(scenario, level)
    label = outcome.traffic.flows.label
    assert label is not None
    return [
        float(outcome.run.end_s[label == index].max(initial=job.start_s)) - job.start_s
        for index, job in enumerate(scenario.jobs)
    ]


def closed_form_s(net: Net, job: Job, ask: Ask) -> float:
    """The job alone on a fabric without contention [s]."""
    if not job.phases:
        return 0.0
    once = _two_level(net, job, ask) if ask.algorithm == "two-level" else _flat(net, job, ask)
    return job.repeat * once + (job.repeat - 1) * job.pause_s


def _flat(net: Net, job: Job, ask: Ask) -> float:
    hop_s, bytes_per_s = _hop(net, job, 0)
    for index in range(1, len(job.phases)):
        far_s, slow = _hop(net, job, index)
        hop_s, bytes_per_s = max(hop_s, far_s), min(bytes_per_s, slow)
    ranks = float(job.hosts.size)
    if ask.collective == "all-to-all" and ask.algorithm == "direct":  # all messages are under way at once
        hop_s /= ranks - 1.0
    formula = FORMULAS[ask.collective, ask.algorithm]
    return float(formula(ask.size_bytes, ranks, hop_s=hop_s, bytes_per_s=bytes_per_s))


def _two_level(net: Net, job: Job, ask: Ask) -> float:
    names = [phase.name for phase in job.phases]
    inside = [index for index, name in enumerate(names) if "in the domain" in name]
    across = [index for index, name in enumerate(names) if "across" in name]
    hop_s, bytes_per_s = _hop(net, job, inside[0]) if inside else (0.0, np.inf)
    far_s, slow = _hop(net, job, across[0]) if across else (0.0, np.inf)
    return float(
        all_reduce.two_level_all_reduce_time(
            ask.size_bytes, float(job.hosts.size), hop_s=hop_s, bytes_per_s=bytes_per_s,
            num_domain=float(ask.num_in_domain), across_hop_s=far_s, across_bytes_per_s=slow,
        )
    )  # fmt: skip


def _hop(net: Net, job: Job, index: int) -> tuple[float, float]:
    """Latency of the longest path of a phase and bandwidth of its slowest link, one flow on each."""
    alone = msgspec.structs.replace(net, routing=Routing("deterministic"))
    routes = job_routes(alone, job.hosts, job.phases[index : index + 1], np.random.default_rng(0))
    rates = net.fabric.link_bytes_per_s[routes.paths.links]
    latency = latency_s(net.fabric, routes)
    return float(latency.max(initial=0.0)) + job.message_s, float(rates.min(initial=np.inf))

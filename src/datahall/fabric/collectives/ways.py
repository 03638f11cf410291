"""Every way to run one collective: what NCCL has for it, and the closed forms of textbooks on the same machine."""

from __future__ import annotations

from typing import NamedTuple

from datahall.fabric.collectives.algorithms.bus import algorithm_bandwidth, bus_bandwidth
from datahall.fabric.collectives.algorithms.table import num_steps, spoken
from datahall.fabric.collectives.choice import Choice
from datahall.fabric.collectives.system import System
from datahall.fabric.collectives.textbook import textbook_times


class Way(NamedTuple):
    """An algorithm with its time; what runs on one number has no bandwidth, NCCL no estimate of some."""

    name: str
    algorithm: str
    time_s: float
    estimate_s: float | None
    algbw_bytes_per_s: float | None
    busbw_bytes_per_s: float | None
    num_steps: float | None
    is_textbook: bool = False


def ways(system: System, choice: Choice) -> tuple[Way, ...]:
    """NCCL's candidates, fastest first, then those of textbooks that are not among them."""
    kind, ranks = choice.collective, choice.num_ranks

    def way(name: str, algorithm: str, time_s: float, estimate_s: float | None, steps: float | None) -> Way:
        algbw: float | None = None
        busbw: float | None = None
        if choice.moves.is_sized:
            algbw = float(algorithm_bandwidth(choice.size_bytes, time_s))
            busbw = float(bus_bandwidth(kind, choice.size_bytes, time_s, float(ranks)))
        return Way(name, algorithm, time_s, estimate_s, algbw, busbw, steps)

    own = [
        way(
            spoken((one.algorithm, one.protocol)), one.algorithm, one.time_s, one.estimate_s,
            num_steps(system, kind, one.algorithm, ranks),
        )
        for one in choice.candidates
    ]  # fmt: skip
    textbooks = [
        way(one.name, one.name, one.time_s, None, None)._replace(is_textbook=True)
        for one in textbook_times(system, kind, choice.size_bytes, ranks)
        if one.name not in {candidate.algorithm for candidate in choice.candidates}
    ]
    return (*own, *textbooks)

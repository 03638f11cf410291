"""What a plan says of the trace that it was made from."""

from __future__ import annotations

from datahall.counted import counted
from datahall.planner.serving.candidate import Proposal
from datahall.planner.serving.demand import Demand
from datahall.scenario.kinds import Plain
from datahall.units import fmt
from datahall.workload.traffic.recorded.stretch import Stretch


def recorded(stretch: Stretch) -> str:
    """Which part of a trace a plan is made for, and how much more comes in it than in the mean."""
    if stretch.is_whole:
        return f", all of {stretch.trace.path}"
    mean = fmt(stretch.mean_per_s, "requests/s")
    return f", the busiest {fmt(stretch.span_s, 's', 3)} of {stretch.trace.path} ({mean} in the mean)"


def replayed(best: Proposal, stretch: Stretch) -> list[str]:
    """Where the stretch lies, what of it was simulated, and what an engine would refuse."""
    where = "the whole trace" if stretch.is_whole else f"from {fmt(stretch.start_s, 's', 3)} on"
    num = len(stretch.requests)
    again = ", played over and over" if best.repeats else ""
    lines = [
        f"{where}, {counted(num, 'request')} of {stretch.num_recorded:,}, simulated as recorded{again}, faster by the "
        "headroom; prompts that begin alike are found in caches by the simulation alone"
    ]
    if stretch.num_too_long:
        lines.append(
            f"{counted(stretch.num_too_long, 'request')} of the trace pass the context and are left out"
        )
    return lines


def mean_lengths(demand: Demand) -> dict[str, Plain | None]:
    """Of a trace, where another question is asked with a rate."""
    if demand.stretch is None:
        return {}
    return {"isl": demand.whole_prompt, "osl": demand.whole_output}

"""What a service is short of: which resource takes the time of its mean step."""

from __future__ import annotations

from datahall.breakdown import Breakdown
from datahall.inference.closed_form.steady_state import Load, State
from datahall.inference.engine.replica import Replica
from datahall.inference.step.figure import step_breakdown

COMPUTE, BANDWIDTH, INTERCONNECT, HOST = "compute", "memory bandwidth", "interconnect", "host"
NAMED = {"exchange": INTERCONNECT, "host": HOST, "decodes": BANDWIDTH, "chunk of a prompt": COMPUTE}


def mean_step(replica: Replica, load: Load, state: State) -> Breakdown:
    """The step of a rank in a steady state: its decodes, and the prompt tokens that come with them on average."""
    started = state.decoding / load.steps
    tokens = started * load.computed
    return step_breakdown(
        replica,
        num_decodes=max(1, round(state.decoding)),
        mean_context=load.prompt + load.aged,
        chunks=((tokens, load.cached),) if tokens >= 1.0 else (),
    )


def resource_shares(step: Breakdown) -> dict[str, float]:
    """Shares of a step by the resource that bounds each of its parts, greatest first.

    >>> from datahall.breakdown import fitted, given, product, total
    >>> each = fitted("each", 1.0, "s", "memory-bound")
    >>> qkv = product("qkv", (given("times", 3.0, "count"), each), "s", "memory-bound")
    >>> resource_shares(total("step", (qkv, fitted("host", 1.0, "s", "engine"))))
    {'memory bandwidth': 0.75, 'host': 0.25}
    """
    taken: dict[str, float] = {}
    for part in step.parts:
        _add(taken, part, "")
    total = sum(taken.values()) or 1.0
    return {name: value / total for name, value in sorted(taken.items(), key=lambda pair: -pair[1])}


def _add(taken: dict[str, float], part: Breakdown, inherited: str) -> None:
    resource = NAMED.get(part.name, inherited)
    if part.operation == "sum":
        for inner in part.parts:
            _add(taken, inner, resource)
        return
    if not resource:
        resource = COMPUTE if part.note.startswith("compute") else BANDWIDTH
    taken[resource] = taken.get(resource, 0.0) + part.value

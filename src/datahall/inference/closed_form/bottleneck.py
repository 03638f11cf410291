"""What a service is short of: which resource takes the time of its mean step."""

from __future__ import annotations

from datahall.inference.closed_form.steady_state import Load, State
from datahall.inference.engine.replica import Replica
from datahall.inference.step.figure import StepFigure, step_figure


def mean_step(replica: Replica, load: Load, state: State) -> StepFigure:
    """The step of a rank in a steady state: its decodes, and the prompt tokens that come with them on average."""
    started = state.decoding / load.steps
    tokens = started * load.computed
    return step_figure(
        replica,
        num_decodes=max(1, round(state.decoding)),
        mean_context=load.prompt + load.aged,
        chunks=((tokens, load.cached),) if tokens >= 1.0 else (),
    )


def resource_shares(step: StepFigure) -> dict[str, float]:
    """Shares of a step by the resource that bounds each of its parts, greatest first.

    >>> from datahall.breakdown import given
    >>> resource_shares(StepFigure(given("step", 4.0, "s"), {"host": 1.0, "memory bandwidth": 3.0}))
    {'memory bandwidth': 0.75, 'host': 0.25}
    """
    whole_s = sum(step.taken_s.values()) or 1.0
    return {name: taken / whole_s for name, taken in sorted(step.taken_s.items(), key=lambda pair: -pair[1])}

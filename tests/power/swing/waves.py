"""Steps whose power is known by hand."""

from __future__ import annotations

from datahall.power.swing.timeline import EXCHANGE, FORWARD, Group, Span, Timeline
from datahall.power.swing.trace import Trace, step_trace


def square(low_w: float, high_w: float, *, duty: float, step_s: float) -> tuple[Timeline, dict[str, float]]:
    """A step that computes for a share of its time and exchanges for the rest, and what its phases draw."""
    spans = (Span(FORWARD, 0.0, duty * step_s), Span(EXCHANGE, duty * step_s, step_s))
    group = Group(name="all", num_chips=1.0, spans=spans)
    return Timeline(step_s=step_s, groups=(group,)), {FORWARD: high_w, EXCHANGE: low_w}


def square_trace(
    low_w: float = 0.0,
    high_w: float = 75e6,
    *,
    duty: float = 0.8,
    step_s: float = 4.0,
    time_constant_s: float = 0.0,
) -> Trace:
    """The same as a trace."""
    timeline, levels = square(low_w, high_w, duty=duty, step_s=step_s)
    return step_trace(timeline, levels, time_constant_s=time_constant_s)

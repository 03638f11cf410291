"""In which step of a leap a moment falls: at the end of a step, just past it, and far beyond."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from datahall.inference.simulation.decode_clock import leap_time, steps_until


@given(
    step_s=st.floats(1e-3, 1.0),
    growth=st.sampled_from([0.0, 1e-12, 1e-7, 1e-4, 0.3, -1e-9]),
    steps=st.integers(1, 3000),
    more=st.integers(1, 2000),
)
def test_the_end_of_a_step_is_in_it_and_what_follows_in_the_next(
    step_s: float, growth: float, steps: int, more: int
) -> None:
    """Exactly, whatever the rounding: those who ask compare with the same sum."""
    growth_s = growth * step_s
    end_s = leap_time(step_s, growth_s, steps)
    after_s = math.nextafter(end_s, math.inf)
    assert steps_until(step_s, growth_s, end_s, steps + more) == steps
    assert steps_until(step_s, growth_s, after_s, steps + more) == steps + 1
    assert steps_until(step_s, growth_s, after_s, steps) == steps

"""Figures of a site over time: what it draws, how far that swings, and the energy of so many steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datahall.breakdown import Breakdown, again, derived, given, modelled, product
from datahall.training.pipeline.figure import steps_figure

if TYPE_CHECKING:
    from datahall.power.assessment import Assessment

THROUGH = "the chips through a step, phase by phase, behind what smooths them (power/swing/trace.py)"


def peak_figure(site: Assessment) -> Breakdown:
    """The most of a step."""
    drawn = again(site.with_remedies)
    found = modelled("peak", site.as_asked.trace.peak_w, "w", THROUGH, drawn, *_levels(site))
    return _as_far_off(found, drawn)


def swing_figure(site: Assessment) -> Breakdown:
    """From the least of a step to the most."""
    drawn = again(site.with_remedies)
    found = modelled("swing", site.as_asked.trace.swing_w, "w", THROUGH, drawn, *_levels(site))
    return _as_far_off(found, drawn)


def _levels(site: Assessment) -> tuple[Breakdown, ...]:
    return (
        derived("chips at work", site.execution.layout.num_chips, "count"),
        derived(f"a chip in {site.busiest}", site.levels_w[site.busiest], "w", "the most of its phases"),
        derived(f"a chip in “{site.idlest}”", site.levels_w[site.idlest], "w", "the least of its phases"),
        derived("a step", site.execution.step_s, "s"),
        given("time constant", site.asked.time_constant_s, "s", field="time_constant"),
    )


def _as_far_off(figure: Breakdown, drawn: Breakdown) -> Breakdown:
    """With the band of what is drawn, in proportion: what a chip draws is off in all of its phases."""
    if drawn.band is None:
        return figure
    low, high = drawn.band.low / drawn.value, drawn.band.high / drawn.value
    return figure.with_band(low, high, drawn.band.basis)


def run_figure(site: Assessment, num_tokens: float) -> Breakdown:
    """Energy of the steps in which so many tokens are trained on."""
    steps = derived(
        "time of the steps", steps_figure(site.execution, num_tokens).value, "s", "whole ones, for all tokens"
    )
    return product("energy of the steps", (again(site.with_remedies), steps), "j")

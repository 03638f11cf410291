"""Verbs that rest on a closed form: what has none is refused before the rooms that compute are loaded."""

from __future__ import annotations

from datahall.answer import Answer
from datahall.inference.closed_form.asked import check_closed_form
from datahall.scenario.scenario import Scenario


def plan_serve(scenario: Scenario) -> Answer:
    """The least hardware of each kind of chip that serves so many users, or requests a second, within limits."""
    check_closed_form(scenario)
    from datahall.answers.serving import plan

    return plan.plan_serve(scenario)


def show_techniques(scenario: Scenario) -> Answer:
    """Batching, chunked prefill, prefix cache, speculation, quantisation and disaggregation on one load."""
    check_closed_form(scenario)
    from datahall.answers.serving import techniques

    return techniques.show_techniques(scenario)

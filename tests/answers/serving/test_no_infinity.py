"""No figure and no cell of an answer is infinite: what has no value says so."""

from __future__ import annotations

from math import inf, isfinite
from types import SimpleNamespace
from typing import cast

import datahall as dh
from datahall.answers.serving.plan_tables import UNSTABLE, crosscheck_table
from datahall.breakdown import Breakdown
from datahall.planner.serving.plan import ServingPlan


def every(figure: Breakdown) -> list[Breakdown]:
    return [figure, *(below for part in figure.parts for below in every(part))]


def test_pools_that_only_decode_have_no_limit_on_the_first_token() -> None:
    answer = dh.show_techniques("llama-3.1-8b", chip="l40s", rate=2, isl=2000, osl=300, cached="60 %")
    assert answer.figure is not None
    figures = every(answer.figure)
    assert all(isfinite(one.value) for one in figures)
    held = [one for one in figures if one.name == "held by a rank" and one.operation == "solved"]
    assert held
    assert all("limit" in one.parts[1].name for one in held)


def _candidate(*, stable: bool) -> SimpleNamespace:
    time_s = 0.5 if stable else inf
    return SimpleNamespace(
        full_state=SimpleNamespace(stable=stable, ttft_s=time_s, tpot_s=0.02),
        replica=SimpleNamespace(chip=SimpleNamespace(name="h200-sxm")),
        run=SimpleNamespace(mean_s=lambda _: 0.1, good_fraction=0.98),
        demand=SimpleNamespace(load=SimpleNamespace(streams=True)),
        num_added=-3,
    )


def test_a_closed_form_that_does_not_hold_the_load_has_no_latency() -> None:
    for stable, closed_s in ((True, 0.5), (False, None)):
        plan = cast(ServingPlan, SimpleNamespace(best=(_candidate(stable=stable),)))
        table = crosscheck_table(plan)
        (row,) = table.records()
        assert row["closed_ttft_s"] == closed_s
        assert (UNSTABLE in table.note) is not stable

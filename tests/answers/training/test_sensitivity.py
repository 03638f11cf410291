"""The picture of what a plan is sensitive to says what its tables say."""

from __future__ import annotations

import pytest

import datahall as dh
from datahall.answer import ChangeChart
from datahall.catalog import Catalog
from datahall.units import fmt


@pytest.mark.parametrize(
    "asked", [{"chips": 64, "chip": "h200"}, {"chips": 64, "chip": "h100-sxm", "on": "fat-tree"}], ids=str
)
def test_each_change_that_fits_is_a_bar(asked: dict[str, object]) -> None:
    answer = dh.plan_train("llama-3.1-8b", tokens="1T", **asked, catalog=Catalog(user=False))  # type: ignore[arg-type]
    (chart,) = (one for one in answer.charts if isinstance(one, ChangeChart))
    tables = {table.title: table for table in answer.tables}
    said = {str(change): str(then) for change, then in tables["if one choice changes"].rows}
    bars = dict(zip(chart.rows, chart.shares, strict=True))
    assert {change for change, then in said.items() if "not" not in then} <= set(bars)
    for change, then in said.items():
        if then.endswith("faster"):
            assert bars[change] < 0
        elif "slower" in then:
            assert then.startswith(fmt(bars[change], "fraction"))
    machines = tables["if the machine changes"]
    chosen = machines.rows[0][1]
    for change, layout, _, share, _ in machines.rows:
        if layout == chosen:
            assert bars[str(change)] == share

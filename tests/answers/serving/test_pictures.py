"""What the charts of serving draw is what the tables beside them say."""

from __future__ import annotations

import pytest

import datahall as dh
from datahall.answer import StackChart
from datahall.catalog import Catalog

SHELF = Catalog(user=False)


@pytest.mark.parametrize(
    "asked",
    [{"chip": "h200", "rate": 5}, {"chip": "l40s", "rate": 2, "cached": "60 %", "ttft": "200 ms"}],
    ids=["usual", "close limits"],
)
def test_techniques_are_drawn_as_long_as_they_hold(asked: dict[str, object]) -> None:
    answer = dh.show_techniques("llama-3.1-8b", **asked, catalog=SHELF)  # type: ignore[arg-type]
    (chart,) = answer.charts
    assert isinstance(chart, StackChart)
    alone, together = answer.tables[:2]
    said = [(row[0], row[1]) for table in (alone, together) for row in table.rows if row[1] is not None]
    drawn = list(zip(chart.rows, map(sum, zip(*chart.parts.values(), strict=True)), strict=True))
    assert [name for name, _ in drawn] == [name for name, _ in said]
    assert [held for _, held in drawn] == pytest.approx([held for _, held in said], abs=1e-4)
    for values in zip(*chart.parts.values(), strict=True):
        assert sum(value > 0 for value in values) <= 1  # a bar is of one kind

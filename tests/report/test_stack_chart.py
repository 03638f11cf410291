"""Bars cut into parts stand inside their picture, with what they come to."""

from __future__ import annotations

import re

import pytest

from datahall.answer import StackChart
from datahall.report.charts.chart import WIDTH, svg

# of the widest usual font (DejaVu Sans) at the size of the page, as Chromium measures them
MEASURED = {"M": 9.93, "W": 11.38, " ": 3.66, ".": 3.66, "k": 6.67, "G": 8.92, "B": 7.89, "µ": 7.32, "s": 6.0}


def measured(words: str) -> float:
    return sum(MEASURED.get(one, 7.32) for one in words)


@pytest.mark.parametrize("value", [1.71e8, 9.99e8, 1.11e8, 171e3, 17.1e6, 1.0])
@pytest.mark.parametrize("unit", ["w", "bytes", "s"])
def test_what_a_bar_comes_to_is_not_cut_off(value: float, unit: str) -> None:
    chart = StackChart(title="a", unit=unit, rows=("provisioned", "MW"), parts={"all": (value, 0.5 * value)})
    ends = re.findall(r'<text class="tick" x="([\d.]+)" y="[\d.]+" text-anchor="start">([^<]*)<', svg(chart))
    assert len(ends) == 2
    for x, words in ends:
        assert float(x) + measured(words) <= WIDTH, words
    names = re.findall(r'<text class="tick" x="([\d.]+)" y="[\d.]+" text-anchor="end">([^<]*)<', svg(chart))
    assert all(float(x) - measured(words) >= 0 for x, words in names)

"""Ranges of a simulated run: P10 and P90 of its runs, wherever their mean lies."""

from __future__ import annotations

import pytest
from tests.results import number

import datahall as dh
from datahall.breakdown import false_nodes


def test_the_range_of_the_headline_is_that_of_the_table() -> None:
    """Of runs of three days without a regular copy few fail, and those lose most: the mean is below the P10."""
    answer = dh.simulate_run(model="llama-3.1-70b", chips=64, days=3, interval="30d")
    kept = dict(next(iter(answer.tables[0].records())))
    low, high = number(answer, "ettr_low_fraction"), number(answer, "ettr_high_fraction")
    assert low == pytest.approx(kept["low_s"] / (3 * 86_400), rel=1e-6)
    assert high == pytest.approx(kept["high_s"] / (3 * 86_400), rel=1e-6)
    assert number(answer, "ettr_fraction") < low
    assert any("mean lies beyond P10 to P90" in note for note in answer.notes)
    assert answer.figure is not None
    assert false_nodes(answer.figure) == []


def test_one_spare_suffices() -> None:
    answer = dh.simulate_run(model="llama-3.1-8b", chips=64, days=3, runs=5, failure_rate="1e-3/node-day")
    assert "1 spare suffices 99" in answer.tables[1].note


def test_storage_that_would_do_is_said_in_three_digits() -> None:
    answer = dh.show_checkpoint(model="llama-3.1-405b", chips=16_384, storage="1GB/s", tier="remote")
    assert 'storage="17.4GB/s"' in answer.next_commands[0] or "--storage 17.4GB/s" in answer.next_commands[0]
    mended = dh.show_checkpoint(model="llama-3.1-405b", chips=16_384, storage="17.4GB/s", tier="remote")
    assert mended.verdict == "yes"

"""Where nothing serves, the way that is told is the one nearest to the limits, and what it keeps is kept."""

from __future__ import annotations

import pytest

import datahall
from datahall.errors import InfeasibleError


def refused(**asked: str) -> InfeasibleError:
    with pytest.raises(InfeasibleError) as caught:
        datahall.plan_serve("llama-3.1-70b", users=10, precision="fp8,bf16", **asked)
    return caught.value


def test_the_nearest_is_no_matter_of_order() -> None:
    forth, back = (refused(chips=chips, tpot="6ms") for chips in ("h200,mi300x", "mi300x,h200"))
    assert "8 × h200-sxm" in forth.message
    assert forth.message.partition(" as asked")[2] == back.message.partition(" as asked")[2]


def test_a_format_that_is_slower_is_not_the_nearest() -> None:
    both = refused(chips="b200-sxm", tpot="6ms")
    assert "precision" not in both.hint


def test_the_limit_that_is_offered_is_kept() -> None:
    error = refused(chips="h200", ttft="60ms")
    longer = error.hint.partition('ttft="')[2].partition('"')[0]
    assert longer
    datahall.plan_serve("llama-3.1-70b", users=10, precision="fp8", chips="h200", ttft=longer)

"""Prompts of many lengths: the time to the first token at a percentile grows by what the long ones take."""

from __future__ import annotations

import numpy as np
import pytest
from tests.inference.closed_form_case import linear
from tests.inference.test_curve import curved

from datahall.inference.closed_form.steady_state import Load


@pytest.mark.parametrize("percentile", [0.8, 0.95])
def test_a_long_prompt_takes_longer_by_its_own_tokens(percentile: float) -> None:
    """Steps of a second and 0.05 s a token: prompts that vary by 10 of 20 tokens add at most z · ½ s, and something."""
    even, uneven = (
        curved(linear(token_s=0.05), Load(prompt=20.0, output=21.0, spread=spread), percentile=percentile)
        for spread in (0.0, 0.5)
    )
    more_s = uneven.ttft_high_s - even.ttft_high_s
    assert (more_s > 0).all()
    alone = np.argmin(np.abs(even.decoding - 0.01))  # an idle replica: nothing else varies
    z = {0.8: 0.8416, 0.95: 1.6449}[percentile]
    assert more_s[alone] == pytest.approx(z * 0.5 * 1.0, rel=0.05)


def test_below_the_median_length_adds_nothing() -> None:
    even, uneven = (
        curved(linear(token_s=0.05), Load(prompt=20.0, output=21.0, spread=spread), percentile=0.4)
        for spread in (0.0, 0.5)
    )
    alone = np.argmin(np.abs(even.decoding - 0.01))
    assert uneven.ttft_high_s[alone] == pytest.approx(even.ttft_high_s[alone], rel=0.01)

"""A step over a longer context is no faster, on any chip, of any model, under any measured constants."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.silicon.kernel_case import CATALOG, passed

from datahall.errors import UnsupportedError
from datahall.silicon.kernel import scalar

MODELS = ("llama-3.1-70b", "deepseek-v2-lite", "gemma-3-1b", "qwen3-next-80b-a3b")
CONTEXTS = (100, 500, 700, 800, 900, 1100, 1500, 2100, 5000)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("chip", [chip.name for chip in CATALOG.chips()])
def test_a_step_over_a_longer_context_is_no_faster(chip: str, model: str) -> None:
    for batch in (1, 4):
        try:
            times = [scalar(passed(chip, model, batch=batch, past=past).total_s) for past in CONTEXTS]
        except UnsupportedError:
            return
        falls = [
            (context, shorter / longer)
            for context, (shorter, longer) in zip(CONTEXTS[1:], pairwise(times), strict=True)
            if longer < shorter * (1 - 1e-9)
        ]
        assert not falls, (batch, falls)

"""The memory of a simulated step: its fullest stage decides."""

import pytest

from datahall.training.pipeline.step_memory import StepMemory


@pytest.mark.parametrize(("limit", "left", "fits"), [(8.0, 3.0, True), (5.0, 0.0, True), (4.5, -0.5, False)])
def test_the_fullest_stage_decides(limit: float, left: float, fits: bool) -> None:
    found = StepMemory(by_stage_bytes=(3.0, 5.0, 2.0), limit_bytes=limit)
    assert (found.most_bytes, found.headroom_bytes, found.fits) == (5.0, left, fits)

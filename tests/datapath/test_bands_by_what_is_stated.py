"""Who does not say how many readers there are is less sure, where readers load whole batches."""

from __future__ import annotations

from datahall.datapath.benchmark import constants


def test_readers_matter_where_each_loads_a_whole_batch() -> None:
    known = constants()
    stated, unstated = (known.band("whole batches", readers) for readers in (13.0, None))
    assert unstated[1] - unstated[0] > stated[1] - stated[0]
    assert known.band("one batch", None) == known.band("one batch", 8.0)

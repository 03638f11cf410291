"""The array of a simulated job stands in the answer, whoever said it."""

from __future__ import annotations

import datahall as dh
from datahall.answer import Answer


def simulated(**job: object) -> Answer:
    return dh.simulate_fabric(on="fat-tree", chips=64, job=[{"collective": "all-reduce", **job}])


def test_a_size_that_nobody_gave_is_said() -> None:
    """An all-reduce took 131 µs, of an array that stood nowhere."""
    found = simulated()
    assert found.headline.startswith("all-reduce 0 of 1 MB on")
    assert "by default the array of all-reduce is 1 MB" in found.notes


def test_a_size_that_was_given_is_said_too_and_is_no_default() -> None:
    found = simulated(size="64MB")
    assert found.headline.startswith("all-reduce 0 of 64 MB on")
    assert found.results["size_bytes"] == 64e6
    jobs = found.tables[0]
    assert jobs.columns[1].name == "size"
    assert jobs.rows[0][1] == 64e6
    assert not [note for note in found.notes if "the array of" in note]


def test_background_has_the_size_of_a_flow() -> None:
    found = dh.simulate_fabric(
        on="fat-tree",
        chips=64,
        job=[{"collective": "all-to-all", "size": "2MB"}],
        background=[{"pattern": "permutation", "size": "3MB"}],
    )
    assert [row[1] for row in found.tables[0].rows] == [2e6, 3e6]
    assert found.headline.startswith("all-to-all 0 of 2 MB + permutation 0 on")

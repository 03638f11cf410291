"""The largest number that holds, and the change that helps most where none is enough."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.datapath.cases import job, store

from datahall.datapath.remedies import remedies
from datahall.datapath.scaling import largest


@given(st.integers(1, 200), st.integers(0, 250))
def test_the_largest_is_found_to_the_last(most: int, border: int) -> None:
    assert largest(lambda number: number <= border, most) == min(border, most)


def test_where_no_number_of_readers_is_enough_the_most_are_offered() -> None:
    """A chip takes 100 samples a second, and requests take 10 s: 256 readers bring 26, fewer less."""
    found = remedies(
        job(format="files", shuffle="random", num_samples_per_file=1), store(latency_s=10.0), 0.9, 1.0
    )
    (readers,) = (one for one in found if tuple(one.changes) == ("readers",))
    assert readers.changes == {"readers": 256}
    assert readers.utilisation_fraction < 0.9

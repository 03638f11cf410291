"""Distinct rows of columns are those that sorting finds, whatever the numbers are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from datahall.cluster.distinct import unique_rows

WHOLE = st.integers(0, 9).map(float)
ANY = st.one_of(WHOLE, st.sampled_from([-3.0, -1.0, 0.5, 2.5, 2.0**22 - 1, 2.0**22, 2.0**40, 1e18]))


@given(st.lists(st.tuples(WHOLE, ANY, ANY), max_size=40))
def test_rows_are_those_that_sorting_finds(rows: list[tuple[float, float, float]]) -> None:
    table = np.array(rows, dtype=np.float64).reshape(-1, 3)
    distinct, index = unique_rows(table.T)
    wanted, places = np.unique(table, axis=0, return_inverse=True)
    assert distinct.tolist() == wanted.tolist()
    assert index.tolist() == np.ravel(places).tolist()


@given(st.lists(ANY, min_size=1, max_size=20))
def test_one_column_is_a_table_too(column: list[float]) -> None:
    distinct, index = unique_rows((np.array(column),))
    assert distinct[index, 0].tolist() == column
    assert (np.diff(distinct[:, 0]) > 0).all()

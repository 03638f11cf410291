"""Numbers that stand in the code because the library that has them takes longer to load than to ask."""

from __future__ import annotations

import numpy as np

from datahall.inference.closed_form.steady_state import GAUSS, GAUSS_WEIGHTS
from datahall.inference.step.column import distinct


def test_seven_points_are_those_of_gauss_and_hermite() -> None:
    points, weights = np.polynomial.hermite_e.hermegauss(7)
    assert np.allclose(points, GAUSS, rtol=1e-14)
    assert np.allclose(weights, GAUSS_WEIGHTS, rtol=1e-13)


def test_each_value_is_there_once_as_numpy_says() -> None:
    drawn = np.random.default_rng(5).integers(-20, 20, 200).astype(np.float64)
    assert distinct(drawn).tolist() == np.unique(drawn).tolist()

"""Lengths have the moments that were asked for, and are cut to a context with a count."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.errors import DocumentError, ScenarioError
from datahall.events import stream
from datahall.workload.traffic.lengths import (
    Empirical,
    Fixed,
    Lengths,
    Lognormal,
    Quantiles,
    Uniform,
    cut_to_context,
    lengths_file,
    lognormal_median,
    lognormal_p95,
    mean_tokens,
    quantile_tokens,
    sampler,
)
from datahall.workload.traffic.shapes import check_lengths

SHAPES: dict[str, Lengths] = {
    "fixed": Fixed(700),
    "uniform": Uniform(10, 1000),
    "narrow": Lognormal(1000.0, 0.3),
    "wide": Lognormal(1000.0, 1.5),
    "quantiles": Quantiles(((0.0, 10.0), (0.5, 200.0), (0.9, 800.0), (1.0, 3000.0))),
    "empirical": Empirical((5, 50, 50, 500)),
}
each_shape = pytest.mark.parametrize("shape", SHAPES)


def drawn(lengths: Lengths, num: int = 400_000) -> np.ndarray:
    return sampler(lengths)(stream(3, "lengths"), num)


@each_shape
def test_draws_have_the_mean_and_percentiles_of_their_shape(shape: str) -> None:
    values = drawn(SHAPES[shape])
    assert values.dtype == np.int64
    assert values.min() >= 1
    assert values.mean() == pytest.approx(mean_tokens(SHAPES[shape]), rel=0.012)
    for share in (0.3, 0.6, 0.95):
        assert np.quantile(values, share) == pytest.approx(quantile_tokens(SHAPES[shape], share), rel=0.02)


def test_a_lognormal_varies_as_said() -> None:
    values = drawn(SHAPES["wide"], 2_000_000)
    assert values.std() / values.mean() == pytest.approx(1.5, rel=0.03)


def test_uniform_reaches_both_ends() -> None:
    assert set(drawn(Uniform(3, 5), 1000)) == {3, 4, 5}


@given(mean=st.floats(1, 1e5), ratio=st.floats(1.0, 3.86))
def test_mean_and_p95_are_met(mean: float, ratio: float) -> None:
    lengths = lognormal_p95(mean, mean * ratio)
    assert mean_tokens(lengths) == mean
    assert quantile_tokens(lengths, 0.95) == pytest.approx(mean * ratio, rel=1e-6)


@given(mean=st.floats(1, 1e5), ratio=st.floats(0.05, 1.0))
def test_mean_and_median_are_met(mean: float, ratio: float) -> None:
    lengths = lognormal_median(mean, mean * ratio)
    assert mean_tokens(lengths) == mean
    assert quantile_tokens(lengths, 0.5) == pytest.approx(mean * ratio, rel=1e-6)


def test_moments_that_no_lognormal_has_are_refused() -> None:
    with pytest.raises(ScenarioError, match=r"between 1 and 3\.87 times the mean"):
        lognormal_p95(100.0, 400.0)
    with pytest.raises(ScenarioError, match="a median of 200"):
        lognormal_median(100.0, 200.0)


@pytest.mark.parametrize(
    "lengths",
    [
        Fixed(0),
        Fixed(-5),
        Uniform(0, 5),
        Uniform(9, 5),
        Lognormal(0.0, 1.0),
        Lognormal(100.0, -1.0),
        Lognormal(float("nan"), 1.0),
        Quantiles(((0.0, 5.0),)),
        Quantiles(((0.0, 5.0), (0.5, 3.0), (1.0, 9.0))),
        Quantiles(((0.1, 5.0), (1.0, 9.0))),
        Empirical(()),
        Empirical((3, 0)),
    ],
)
def test_lengths_that_cannot_be_are_refused(lengths: Lengths) -> None:
    with pytest.raises(ScenarioError, match="prompt of"):
        check_lengths(lengths, "prompt")


@each_shape
def test_lengths_that_can_be_are_not_refused(shape: str) -> None:
    check_lengths(SHAPES[shape], "prompt")


def test_what_does_not_fit_the_context_is_cut_and_counted() -> None:
    prompt, output = np.array([10, 95, 99, 100, 500]), np.array([90, 6, 1, 1, 9])
    prompt, output, num_prompts, num_outputs = cut_to_context(prompt, output, 100)
    assert prompt.tolist() == [10, 95, 99, 99, 99]
    assert output.tolist() == [90, 5, 1, 1, 1]
    assert (num_prompts, num_outputs) == (2, 2)


def test_without_a_limit_nothing_is_cut() -> None:
    prompt, output = np.array([10**6]), np.array([10**6])
    assert cut_to_context(prompt, output, 0) == (prompt, output, 0, 0)


def test_lengths_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "lengths.txt"
    file.write_text("prompt_tokens\n10\n\n20\n")
    assert lengths_file(file) == Empirical((10, 20))


@pytest.mark.parametrize(
    ("text", "said"),
    [("", ":1: no lengths"), ("10\nx9\n", ":2: 'x9'"), ("10\n-3\n", ":2: '-3'"), ("10\n0\n", ":2: '0'")],
)
def test_a_bad_file_of_lengths_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "lengths.txt"
    file.write_text(text)
    with pytest.raises(DocumentError, match=f"lengths.txt{said}"):
        lengths_file(file)


def test_a_missing_file_of_lengths_says_so(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="cannot be read"):
        lengths_file(tmp_path / "nothing.txt")

"""Numbers that somebody states about hardware, held against the catalogue; docs/claims.toml has those of documents."""

from __future__ import annotations

import pytest

from datahall.catalog import Catalog
from datahall.catalog.claim import judge
from datahall.errors import ScenarioError, UnitError, UnknownNameError


def test_a_sparse_peak_is_recognised_and_the_dense_one_given(catalog: Catalog) -> None:
    verdict = judge(catalog, "h100", "peak.fp8", "3,958 TFLOPS")
    assert verdict.outcome == "sparse"
    assert verdict.right is not None
    assert verdict.right.value == 1979e12


def test_a_peak_the_chip_does_not_have(catalog: Catalog) -> None:
    verdict = judge(catalog, "a100", "peak.fp8", "624 TFLOPS")
    assert (verdict.outcome, verdict.right) == ("unsupported", None)
    assert "has no FP8" in verdict.reason


def test_both_ways_is_recognised_and_right_when_said(catalog: Catalog) -> None:
    assert judge(catalog, "b200", "scale_up_bandwidth", "1.8 TB/s").outcome == "both-ways"
    assert judge(catalog, "b200", "scale_up_bandwidth", "1.8 TB/s both ways").outcome == "correct"
    assert judge(catalog, "b200", "scale_up_bandwidth", "900 GB/s").outcome == "correct"
    assert (
        judge(catalog, "nvlink-4", "bandwidth", "50 GB/s").reason
        == "50 GB/s is both ways; one way it is 25 GB/s"
    )


@pytest.mark.parametrize(
    ("claimed", "outcome"),
    [("3.35 TB/s", "correct"), ("3.4 TB/s", "correct"), ("3.5 TB/s", "rounded"), ("3 TB/s", "rounded"),
     ("3.0 TB/s", "rounded"), ("3.75 TB/s", "wrong"), ("4 TB/s", "wrong"), ("3.2-3.5 TB/s", "correct")],
)  # fmt: skip
def test_how_near_is_near_enough(catalog: Catalog, claimed: str, outcome: str) -> None:
    assert judge(catalog, "h100", "memory_bandwidth", claimed).outcome == outcome


@pytest.mark.parametrize(
    "quantity", ["memory", "peak.fp8", "memory_bandwidth", "clock", "level.l2.capacity", "price"]
)
@pytest.mark.parametrize("number", ["0", "-1", "-1e9"])
def test_nothing_and_less_than_nothing_are_wrong_and_no_share_of_what_is_right(
    catalog: Catalog, quantity: str, number: str
) -> None:
    unit = {"memory": "GB", "peak.fp8": "TFLOP/s", "clock": "GHz", "price": "USD"}
    verdict = judge(
        catalog, "h100", quantity, f"{number} {unit.get(quantity, 'TB/s' if 'band' in quantity else 'MB')}"
    )
    assert verdict.outcome == "wrong"
    assert "the claim is" not in verdict.reason


@pytest.mark.parametrize(
    ("claimed", "words"),
    [
        ("1 GB", "the claim is 1/80 of that"),
        ("800 GB", "the claim is 10 times that"),
        ("1e290 GB", "the claim is more than a million times that"),
        ("1e-290 GB", "the claim is less than a millionth of that"),
    ],
)
def test_a_factor_is_said_in_a_few_digits(catalog: Catalog, claimed: str, words: str) -> None:
    assert judge(catalog, "h100", "memory", claimed).reason.endswith(words)


def test_a_working_set_of_nothing_is_no_claim(catalog: Catalog) -> None:
    with pytest.raises(ScenarioError, match="larger than zero"):
        judge(catalog, "h100", "fits.l2", "-5 GB")
    assert "more than a million times" in judge(catalog, "h100", "fits.l2", "1e290 GB").reason


def test_a_count_is_exact(catalog: Catalog) -> None:
    assert judge(catalog, "h100", "sms", "132").outcome == "correct"
    assert judge(catalog, "h100", "sms", "144").outcome == "wrong"
    assert judge(catalog, "h100", "year", "2023").outcome == "wrong"
    assert judge(catalog, "meta-24k", "chips", "24,500").outcome == "rounded"


def test_a_working_set_is_held_against_the_level(catalog: Catalog) -> None:
    assert judge(catalog, "h100", "fits.l2", "40 MB").outcome == "correct"
    assert judge(catalog, "h100", "fits.l2", "2 GB").reason == "2 GB is 40 times the 50 MB of l2"
    assert judge(catalog, "h100", "fits.host", "1 TB").outcome == "unknown"


def test_what_nobody_published_is_unknown(catalog: Catalog) -> None:
    assert judge(catalog, "maia-100", "scale_up_bandwidth", "600 GB/s").outcome == "unknown"


def test_nonsense_is_an_error_not_a_verdict(catalog: Catalog) -> None:
    with pytest.raises(UnknownNameError):
        judge(catalog, "h1000x", "memory", "80 GB")
    with pytest.raises(UnknownNameError, match="quantity"):
        judge(catalog, "h100", "memori", "80 GB")
    with pytest.raises(UnitError):
        judge(catalog, "h100", "memory", "80 W")

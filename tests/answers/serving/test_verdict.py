"""A simulated service has one verdict: whether it keeps its latency limits at the percentile that was asked for."""

from __future__ import annotations

from typing import Any

import pytest
from tests.results import number

import datahall as dh
from datahall.answer import Answer
from datahall.catalog import Catalog
from datahall.cli.main import run

SHELF = Catalog(user=False)
SMALL: dict[str, Any] = {"chip": "l40s", "isl": 1000, "osl": 100, "requests": 500}
WIDE = {"ttft": "10 h", "tpot": "1 h"}


def simulated(**said: Any) -> Answer:
    return dh.simulate_serve("llama-3.1-8b", **SMALL | said, catalog=SHELF)


@pytest.mark.parametrize(
    ("said", "keeps"),
    [
        ({"rate": 1}, True),
        ({"rate": 4, "tpot": "10 ms"}, False),  # of a fleet whose queue keeps its length
        ({"rate": 80, **WIDE}, False),  # whose queue grows without end, so that no wait is the last
        ({"rate": 4, "warmup": "1 h"}, False),  # of which nothing was measured
    ],
    ids=str,
)
def test_the_verdict_is_that_of_the_limits(said: dict[str, Any], keeps: bool) -> None:
    answer = simulated(**said)
    assert answer.results["keeps_limits"] is keeps
    assert answer.verdict == ("yes" if keeps else "no")


def test_a_growing_queue_keeps_no_limits_though_every_request_did() -> None:
    answer = simulated(rate=80, **WIDE)
    assert answer.results["stable"] is False
    assert answer.results["good_fraction"] == 1.0
    assert answer.results["keeps_limits"] is False


@pytest.mark.parametrize("percentile", ["P50", "P95", "P99.9"])
def test_the_headline_names_the_percentile_that_is_asked_for(percentile: str) -> None:
    """What is enough for half of the requests is not for all."""
    answer = simulated(rate=4, tpot="30 ms", percentile=percentile)
    share = f"{percentile[1:]} %"
    assert f"where {share} should" in answer.headline
    good = answer.results["good_fraction"]
    assert isinstance(good, float)
    assert answer.verdict == ("yes" if 100 * good >= float(percentile[1:]) else "no")
    assert answer.headline.startswith("No: ") is (answer.verdict == "no")


def test_a_limit_that_is_broken_is_named_with_what_was_reached() -> None:
    broken = simulated(rate=4, tpot="10 ms")
    assert broken.binding.startswith("P95 of TPOT is ")
    assert "10 ms was asked for" in broken.binding
    assert "TTFT" not in broken.binding.partition(".")[0]
    kept = simulated(rate=1)
    assert "asked for" not in kept.binding


def test_the_exit_code_is_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "simulate",
        "serve",
        "llama-3.1-8b",
        "--chip",
        "l40s",
        "--rate",
        "4",
        "--isl",
        "1000",
        "--osl",
        "100",
    ]
    words += ["--requests", "500", "--quiet"]
    assert run([*words, "--tpot", "10ms"]) == 1
    assert run([*words, "--tpot", "1s"]) == 0
    capsys.readouterr()


def test_limits_that_are_kept_each_and_not_together_are_said_so() -> None:
    """Some requests miss the one limit and others the other."""
    said = {"rate": 6, "osl": 200, "spread": 1.0}
    usual = simulated(**said).results
    limits = {name: f"{usual[f'{name}_p95_s'] * 1.001:.6f} s" for name in ("ttft", "tpot")}  # type: ignore[operator]
    run = simulated(**said, **limits)
    assert run.verdict == "no"
    assert number(run, "good_fraction") < 0.95
    assert run.binding.startswith("Either limit is kept at P95, both together are not.")

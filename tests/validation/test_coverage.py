"""What bands are worth on rows that they were not made of, and that the documents say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from datahall.answers.validation.scorecard import scorecard_answer
from datahall.validation.coverage import FEW, LEAST_ROWS, coverage_apart
from datahall.validation.ledger import LEDGER, validate
from datahall.validation.scorecard import Coverage, Prediction

LIMITS = (Path(__file__).parents[2] / "docs/limits.md").read_text(encoding="utf-8").partition("## Bands")[2]
SAID = " ".join(LIMITS.partition("\n## ")[0].split())


def rows(source: str, ratios: list[float], *, high: float = 1.5, metric: str = "") -> list[Prediction]:
    return [
        Prediction(
            source=source, hardware="", model="", label="", where="", measured=one, predicted=1.0, low=0.5, high=high,
            metric=metric,
        ) for one in ratios
    ]  # fmt: skip


def test_a_source_is_judged_by_the_spread_of_the_others() -> None:
    """P10 and P90 of 0.9, 1.0 … 1.9 are 1.0 and 1.8; the stated band is 0.5 to 1.5."""
    wide, two = [0.9 + 0.1 * step for step in range(11)], [1.1] * 10 + [2.0] * 10
    found = coverage_apart(rows("a", wide) + rows("b", two))
    assert found == {"b": Coverage(20, 50.0, 50.0)}
    beyond = coverage_apart(rows("a", wide) + rows("b", [1.7] * 20))
    assert beyond["b"] == Coverage(20, 0.0, 100.0)
    assert coverage_apart(rows("a", wide) + rows("b", [1.81] * 20))["b"].apart_percent == 0.0
    assert coverage_apart(rows("a", wide) + rows("b", [0.99] * 20))["b"].apart_percent == 0.0


def test_bands_are_made_kind_by_kind_where_others_have_enough() -> None:
    near, far = rows("a", [1.0, 1.1] * (FEW // 2)), rows("a", [3.0, 3.1] * FEW, high=4.0)
    own = rows("b", [1.05] * LEAST_ROWS)
    assert coverage_apart(near + far + own)["b"].apart_percent == 100.0
    few = near[1:] + far  # too few of the kind: all of the metric
    assert coverage_apart([*few, *rows("b", [2.0] * LEAST_ROWS)])["b"].apart_percent == 100.0
    assert coverage_apart([*near, *far, *rows("b", [2.0] * LEAST_ROWS)])["b"].apart_percent == 0.0


def test_metrics_kinds_of_kernels_and_small_sources_are_kept_apart() -> None:
    many = [1.0] * LEAST_ROWS
    assert coverage_apart(rows("a: GEMM", many) + rows("a: attention", many)) == {}
    assert set(coverage_apart(rows("a", many) + rows("b", many[1:]))) == {"a"}
    assert set(coverage_apart(rows("a", many) + rows("b", many))) == {"a", "b"}
    assert coverage_apart(rows("a", many, metric="time") + rows("b", many, metric="memory")) == {}
    assert set(coverage_apart(rows("a", many, metric="time") * 2 + rows("b", many, metric="time"))) == {
        "a, time",
        "b, time",
    }


@pytest.mark.parametrize("domain", LEDGER)
def test_limits_say_what_bands_hold_of_another_source(domain: str) -> None:
    """Nothing is typed here: the page must say what comes out."""
    card = validate(domain)
    shares: dict[str, list[float]] = {}
    for name, one in card.apart.items():
        words = {"step time": "training steps", "peak memory": "memory"}.get(name.rpartition(", ")[2], "")
        shares.setdefault(words or {"inference": "serving"}.get(domain, domain), []).append(one.apart_percent)
    assert bool(shares) != (f"of {domain} no source has rows enough" in SAID)
    if not shares:
        return
    for words, found in shares.items():
        low, high = min(found), max(found)
        span = f"{low:.0f} to {high:.0f} %" if len(found) > 1 else f"{low:.0f} %"
        assert f"{words} {span}" in SAID
    note = next(note for note in scorecard_answer(card).notes if note.startswith("bands are the spread"))
    every = [one.apart_percent for one in card.apart.values()]
    low, high = f"{min(every):.0f}", f"{max(every):.0f}"
    assert (f"hold {low} %" if low == high else f"hold {low} to {high} %") in note

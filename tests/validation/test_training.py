"""The training ledger: our error on public runs, and rows that cannot be expressed are counted."""

from __future__ import annotations

import pytest

from datahall.validation import validate
from datahall.validation.ledger import shipped_files
from datahall.validation.measurement import read_rows
from datahall.validation.scorecard import Scorecard


@pytest.fixture(scope="module")
def card() -> Scorecard:
    return validate("training")


@pytest.mark.parametrize(
    ("source", "limit"),
    [
        ("Korthikanti et al. 2022 (selective recompute) Table 5", 5.0),
        ("vTrain ground truth (multi-node)", 10.0),
        ("MLPerf Training v5.0 (llama31_405b)", 10.0),
        ("BigScience BLOOM-176B topology study", 15.0),
        ("MosaicML llm-foundry benchmarks", 10.0),
        ("NVIDIA dgxc-benchmarking v24.11.1", 8.0),
        ("MaxText published performance", 12.0),
        ("Google tpu-recipes run logs", 12.0),
        ("Megatron-LM SC'21 Table 1 (README)", 8.0),
        ("Datahall, one H200, PyTorch eager", 7.0),
        ("SimuMax v1.2 B200 real runs, peak memory", 0.5),
        ("MLPerf Training v5.0 (llama2_70b_lora), peak memory", 6.0),
        ("Datahall, one H200, PyTorch eager, peak memory", 5.0),
    ],
)
def test_mean_error_on_rows_nothing_was_fitted_on(card: Scorecard, source: str, limit: float) -> None:
    found = card.by_source[source]
    assert found.mean_ape <= limit, f"{source}: {found.mean_ape:.1f} %"


def test_time_and_memory_are_scored_apart(card: Scorecard) -> None:
    assert set(card.by_metric) == {"step time", "peak memory"}
    assert sum(score.rows for score in card.by_metric.values()) == card.scored


def test_choosing_among_vtrain_s_layouts_by_prediction_costs_little(card: Scorecard) -> None:
    """Four models on their clusters, 74 measured layouts: the one predicted fastest, by its measured time."""
    regret = card.regret["vTrain ground truth (multi-node)"]
    assert (regret.jobs, regret.ways) == (4, 74)
    assert regret.mean_percent <= 3.0


def test_no_row_is_lost(card: Scorecard) -> None:
    assert card.rows == card.scored + card.fitted + sum(reason.rows for reason in card.unsupported)


def test_most_rows_can_be_expressed(card: Scorecard) -> None:
    assert sum(reason.rows for reason in card.unsupported) < 0.1 * card.rows


def test_at_most_a_quarter_of_each_source_is_fitted() -> None:
    counts: dict[str, list[int]] = {}
    for path in shipped_files("training"):
        for row in read_rows(path)[1]:
            count = counts.setdefault(row.text("source"), [0, 0])
            count[0] += 1
            count[1] += row.fitted
    assert not {source: count for source, count in counts.items() if count[1] > count[0] / 4}

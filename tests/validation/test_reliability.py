"""Published failures predicted from other sources' rates: what is scored, what is not, and by what."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from datahall.catalog import Catalog
from datahall.reliability.ettr import best_interval_s, renewal_ettr
from datahall.reliability.process import mttf_s, process_of
from datahall.validation.ledger import shipped_files, validate
from datahall.validation.measurement import Row, RowError, read_rows
from datahall.validation.reliability.causes import component_of
from datahall.validation.reliability.fleets import other_fleets, pooled, shares
from datahall.validation.reliability.rows import figure, predict
from datahall.validation.scorecard import Fitted, Prediction, Replayed, Scorecard, Unsupported

CATALOG = Catalog(user=False)
(SHIPPED,) = shipped_files("reliability")
COLUMNS, ROWS = read_rows(SHIPPED)
FOUND = list(predict(ROWS))


def row(**cells: str) -> Row:
    return Row("x.csv:2", {**dict.fromkeys(COLUMNS, ""), **cells})


def prediction(part: str, metric: str) -> Prediction:
    (one,) = [
        one for one in FOUND if isinstance(one, Prediction) and part in one.label and one.metric == metric
    ]
    return one


@pytest.fixture(scope="module")
def card() -> Scorecard:
    return validate("reliability")


def test_every_row_is_counted(card: Scorecard) -> None:
    places = {one.where for one in FOUND}
    assert places == {one.where for one in ROWS}
    assert card.rows == card.scored + card.fitted + card.num_replayed + card.num_unsupported
    assert card.scored >= 30
    assert card.fitted == sum(bool(one.text("fitted")) for one in ROWS)


def test_no_more_than_a_quarter_of_what_is_scored_of_a_source_was_fitted_on() -> None:
    by_source: dict[str, list[int]] = {}
    for one in ROWS:
        source = one.text("primary_source").partition(" (")[0]
        by_source.setdefault(source, []).append(bool(one.text("fitted")))
    scored = {one.source for one in FOUND if isinstance(one, Prediction)}
    over = {name: sum(marks) / len(marks) for name, marks in by_source.items() if name in scored}
    assert {name for name, share in over.items() if share > 0.25} <= {"SemiAnalysis 2025"}, over


def test_a_fleet_is_predicted_by_others_alone() -> None:
    llama = next(one for one in ROWS if one.text("cause_or_metric") == "unexpected interruptions")
    assert {one.name for one in other_fleets(llama, CATALOG)} == {"rsc-1", "rsc-2", "ft-hsdp"}
    meta = next(one for one in ROWS if one.text("cluster") == "RSC-2")
    assert {one.name for one in other_fleets(meta, CATALOG)} == {"llama-3", "ft-hsdp"}, (
        "a source, not a cluster"
    )
    stranger = row(cluster="somebody", primary_source="arXiv:2999.99999")
    assert len(other_fleets(stranger, CATALOG)) == 4


def test_interruptions_of_llama_3_from_the_rates_of_others() -> None:
    """(6.5 · 2.34 · 2.3)^(1/3) e-3 of 2,048 nodes and 2.2 of the job a day, 54 days."""
    one = prediction("unexpected", "interruptions")
    by_hand = 54 * (2048 * (6.5 * 2.34 * 2.3) ** (1 / 3) * 1e-3 + 2.206)
    assert one.predicted == pytest.approx(by_hand, rel=1e-3)
    assert one.measured == 419
    assert one.low < 419 < one.high
    assert abs(one.error_percent) < 20


def test_a_small_job_of_long_ago() -> None:
    """OPT-175B: 90 restarts of 128 nodes in 33 days, most by what does not depend on the nodes."""
    assert abs(prediction("OPT-175B", "interruptions").error_percent) < 15


@pytest.mark.parametrize("chips", ["16384", "131072"])
def test_a_projection_is_arithmetic_on_its_own_rate_and_no_prediction(chips: str) -> None:
    (line,) = [
        one.where for one in ROWS if one.text("n_accelerators") == chips and one.text("kind") == "mttf"
    ]
    (one,) = [one for one in FOUND if one.where == line]
    assert isinstance(one, Replayed)
    assert abs(one.error_percent) < 3


def test_causes_of_ft_hsdp_from_those_of_llama_3() -> None:
    """Memory, software and hosts within a factor of 1.5; what one counts otherwise is far off and stays."""
    shared = shares([CATALOG.failure_preset("llama-3")])
    assert shared["chip"] == pytest.approx((148 + 19 + 17 + 6) / 419)
    found = {
        one.label.partition(": ")[2].partition(",")[0]: one
        for one in FOUND
        if isinstance(one, Prediction) and one.metric == "share of a cause" and "32K" in one.label
    }
    assert found["hbm"].measured == pytest.approx(155 / 678)
    assert found["hbm"].predicted == pytest.approx(72 / 419)
    for component in ("hbm", "software", "host"):
        assert 1 / 1.5 < found[component].predicted / found[component].measured < 1.5
    assert found["drive"].measured == pytest.approx(30 / 678)
    assert found["drive"].predicted == pytest.approx(3 / 419)
    assert not found["drive"].low <= found["drive"].measured <= found["drive"].high


def test_effective_time_of_byterobust_inside_its_figures() -> None:
    """97 % of 9,600 GPUs: restarts of 2 to 5 min and stops of 1 s, over the rates of three fleets."""
    one = prediction("ByteRobust dense", "effective time")
    assert one.predicted == pytest.approx(0.97, abs=0.015)
    kept = []
    for name in ("llama-3", "rsc-1", "rsc-2"):
        mttf = mttf_s(process_of(CATALOG.failure_preset(name), CATALOG, 1200))
        kept += [renewal_ettr(best_interval_s(1.0, mttf), 1.0, restart, mttf) for restart in (120.0, 300.0)]
    assert 0.95 < min(kept) < 0.97 < max(kept) < 0.99


def test_effective_time_of_ft_hsdp_by_its_own_definition_is_a_check_of_that_definition() -> None:
    """By the failures and restarts that the row itself states."""
    first, second = (one for one in FOUND if isinstance(one, Replayed) and one.metric == "effective time")
    assert (first.measured, second.measured) == (0.44, 0.80)
    assert first.predicted == pytest.approx(1 - 10 / 18, abs=1e-6)
    assert second.predicted == pytest.approx(1 - 3 / 18, abs=1e-6)


def test_what_a_row_states_itself_is_not_scored(card: Scorecard) -> None:
    given = [one for one in FOUND if isinstance(one, Replayed)]
    assert card.num_replayed == len(given) == 4
    assert {one.metric for one in given} == {"MTTF", "effective time"}
    scored = {(one.where, one.metric) for one in FOUND if isinstance(one, Prediction)}
    assert not {(one.where, one.metric) for one in given} & scored


def test_a_time_between_failures_has_the_band_of_the_rate_turned_round() -> None:
    """A rate that is twice as high leaves half the time; what the job does by itself has no spread."""
    first = prediction("failure every 18 min", "MTTF")
    others = pooled([CATALOG.failure_preset(name) for name in ("llama-3", "rsc-1", "rsc-2")])
    nodes = 12_500 * others.rate_per_node_day
    assert first.predicted == pytest.approx(86400 / (nodes + 2.206))
    assert first.low == pytest.approx(86400 / (nodes * others.high_ratio + 2.206))
    assert first.high == pytest.approx(86400 / (nodes * others.low_ratio + 2.206))
    assert first.low < first.measured == 0.3 * 3600


def test_a_bound_is_no_figure() -> None:
    with pytest.raises(RowError, match="bound"):
        figure(row(value=">90"), "value")
    assert figure(row(value="2000-5000"), "value") == pytest.approx(3162.3, abs=0.1)
    assert figure(row(value="~1"), "value") == 1.0
    with pytest.raises(RowError, match="not one number"):
        figure(row(value="43 / 63"), "value")


def test_pooled_rates_have_the_spread_of_fleets_as_their_band() -> None:
    found = pooled([CATALOG.failure_preset(name) for name in ("llama-3", "rsc-1", "rsc-2", "ft-hsdp")])
    rates = (3.789e-3, 6.5e-3, 2.34e-3, 2.3e-3)
    assert found.rate_per_node_day == pytest.approx(
        (rates[0] * rates[1] * rates[2] * rates[3]) ** 0.25, rel=1e-3
    )
    assert found.low_ratio == pytest.approx(1 / found.high_ratio)
    spread = np.log(rates).std(ddof=1) * np.sqrt(1 + 1 / 4)
    assert found.high_ratio == pytest.approx(np.exp(1.28155 * spread), rel=1e-3)
    assert 1.5 < found.high_ratio < 2.5
    with pytest.raises(RowError, match="fewer than two"):
        pooled([CATALOG.failure_preset("llama-3")])


@pytest.mark.parametrize(
    ("words", "component"),
    [
        ("GPU HBM3 memory", "hbm"), ("GPU card dropout (Xid 79)", "chip"), ("NVLink errors", "chip"),
        ("Power supply", "psu"), ("Machine unreachable", "host"), ("Network switch/cable", "optics"),
        ("NCCL watchdog timeout", "unknown"), ("Numerics / silent data corruption", "corruption"), ("NIC", "nic"),
        ("Software bug", "software"), ("System memory", "host"), ("System cooling", "pump"), ("SSD", "drive"),
    ],
)  # fmt: skip
def test_a_line_blames_a_component(words: str, component: str) -> None:
    assert component_of(row(cluster="somebody", cause_or_metric=words, count="3"), CATALOG) == component


def test_lines_of_published_tables_have_the_component_of_the_catalogue() -> None:
    for one in ROWS:
        if one.text("kind") != "cause" or "2602.00277" not in one.text("primary_source"):
            continue
        preset = CATALOG.failure_preset("ft-hsdp")
        known = {cause.name: cause.component for cause in preset.causes}
        assert component_of(one, CATALOG) == known[one.text("cause_or_metric")]


def outcomes(tmp_path: Path, **cells: str) -> list[object]:
    path = tmp_path / "mine.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerow(cells)
    return list(predict(read_rows(path)[1]))


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"kind": "mttf", "n_accelerators": "-5", "mttf_hours": "3"}, "not above zero"),
        ({"kind": "mttf", "n_accelerators": "8", "mttf_hours": "nan"}, "not finite"),
        ({"kind": "mttf", "mttf_hours": "3"}, "no number of chips"),
        ({"kind": "total", "cause_or_metric": "restarts", "count": "9", "n_accelerators": "64"}, "days"),
        ({"kind": "cause", "cluster": "c", "cause_or_metric": "GPU", "count": "-2"}, "not above zero"),
        ({"kind": "cause", "cluster": "c", "cause_or_metric": "aliens", "count": "2"}, "no component"),
        ({"kind": "spot availability"}, "spot"),
        ({"kind": "astrology"}, "nothing predicts"),
        ({"kind": "mttf", "accelerator": "TPU v4", "n_accelerators": "64", "mttf_hours": "3"}, "no fleet"),
    ],
)
def test_what_cannot_be_predicted_says_why(tmp_path: Path, cells: dict[str, str], words: str) -> None:
    (one,) = (one for one in outcomes(tmp_path, **cells) if isinstance(one, Unsupported))
    assert words in one.reason


def test_a_marked_row_is_not_scored(tmp_path: Path) -> None:
    cells = {"kind": "mttf", "n_accelerators": "1024", "mttf_hours": "9"}
    (scored,) = outcomes(tmp_path, **cells)
    assert isinstance(scored, Prediction)
    (marked,) = outcomes(tmp_path, **cells, fitted="1")
    assert isinstance(marked, Fitted)

"""How far off we are on measured kernels: the floor that no change may fall through."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from datahall.catalog import Catalog
from datahall.silicon.calibration import constant_sets
from datahall.validation import Scorecard, validate
from datahall.validation.kernels import FORMATS, MODELS, SYSTEMS
from datahall.validation.ledger import LEDGER, outcomes, shipped_files
from datahall.validation.measurement import Row, read_rows
from datahall.validation.scorecard import Prediction, Score, Unsupported, score, scorecard_json

SHIPPED = shipped_files("kernels")
# Kernel tables of another project, larger than what we ship: scored where they lie beside the checkout.
TABLES = Path(__file__).parents[2].parent / "shared" / "kernels" / "aic_gemm_extract.csv"
TABLE_FORMATS = {"bfloat16", "fp8"}
FITTED_FORMATS = {"bfloat16", "fp8", "nvfp4"}  # in the draw of calibration/fit.py, per chip, in file order

GROUP = ["rows", "median_ape", "mean_ape", "p90_ape", "bias", "band_coverage"]


@pytest.fixture(scope="module")
def card() -> Scorecard:
    return validate("kernels")


@pytest.fixture(scope="module")
def judged() -> list[Prediction]:
    return [one for path in SHIPPED for one in predicted(path)]


def predicted(path: Path) -> list[Prediction]:
    return [one for one in outcomes(path, FORMATS) if isinstance(one, Prediction)]


def about(rows: Iterable[Prediction], words: str) -> list[Prediction]:
    return [row for row in rows if words in row.source]


def assert_within(found: Score, median: float, p90: float) -> None:
    said = (
        f"median {found.median_ape:.2f} % of {median}, P90 {found.p90_ape:.2f} % of {p90}; {found.rows} rows"
    )
    assert found.median_ape <= median, said
    assert found.p90_ape <= p90, said


@pytest.mark.parametrize(
    ("words", "rows", "median", "p90"),
    [
        (": GEMM", 400, 4, 11),
        ("attention", 45, 5, 12),
        ("grouped GEMM", 36, 4.8, 14),
        ("element-wise", 34, 3.1, 14),
        ("forward pass", 250, 3.9, 11.5),
        ("forward pass prefill", 90, 4.3, 12),
        ("forward pass decode", 150, 3.4, 9.8),
    ],
)
def test_unseen_kernels_of_our_h200_are_within_the_floor(
    judged: list[Prediction], words: str, rows: int, median: float, p90: float
) -> None:
    group = about(judged, words)
    assert len(group) >= rows
    assert_within(score(group), median, p90)


def test_both_precisions_of_a_gemm_are_among_them(card: Scorecard) -> None:
    kinds = {name.rpartition(": ")[2] for name in card.by_source}
    assert {"GEMM bf16", "GEMM fp8", "attention decode", "attention prefill", "grouped GEMM"} <= kinds


@pytest.mark.parametrize("words", ["", ": GEMM", "attention", "forward pass"])
def test_eight_of_ten_measurements_lie_in_their_band(judged: list[Prediction], words: str) -> None:
    group = about(judged, words)
    coverage = score(group).band_coverage
    assert 70 <= coverage <= 90, f"{coverage:.1f} % of {len(group)} rows of {words or 'all'}"


def test_we_lean_neither_way(card: Scorecard) -> None:
    assert abs(card.overall.bias) < 2, f"bias {card.overall.bias:+.2f} %"


def test_every_shipped_row_is_scored_or_was_fitted_on(card: Scorecard) -> None:
    lines = sum(len(list(csv.DictReader(path.read_text("utf-8").splitlines()))) for path in SHIPPED)
    assert card.rows == lines
    assert card.unsupported == ()
    assert card.scored + card.fitted == lines


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_at_most_a_quarter_of_a_file_was_fitted_on(path: Path) -> None:
    rows = read_rows(path)[1]
    assert sum(row.fitted_on() for row in rows) <= len(rows) / 4
    assert all(row.text("source") for row in rows)


def test_rows_that_were_fitted_on_are_not_scored() -> None:
    for path in SHIPPED:
        found = validate("kernels", path)
        fitted = sum(row.fitted_on() for row in read_rows(path)[1])
        assert (found.fitted, found.scored) == (fitted, found.rows - fitted)


def test_one_card_is_the_sum_of_its_files(card: Scorecard, judged: list[Prediction]) -> None:
    assert card.scored == len(judged) == sum(group.rows for group in card.by_source.values())
    assert card.overall == score(judged)
    assert card.by_hardware.keys() == {"h200-sxm"}


def test_the_json_has_the_shape_that_was_agreed(card: Scorecard) -> None:
    shown = json.loads(scorecard_json(card))
    agreed = {
        "domain", "rows", "scored", "unsupported", "overall", "by_source", "by_hardware", "by_model", "worst",
    }  # fmt: skip
    assert shown.keys() == agreed | {
        "schema",
        "version",
        "fitted",
        "by_metric",
        "by_basis",
        "regret",
        "apart",
        "as_stated",
        "noise",
        "notes",
        "in_points",
        "checks",
    }
    assert shown["domain"] == "kernels"
    assert list(shown["overall"]) == GROUP
    for groups in ("by_source", "by_hardware", "by_model"):
        assert shown[groups]
        assert all(list(group) == GROUP for group in shown[groups].values())
    assert shown["worst"]
    assert {"where", "label", "measured", "predicted", "error_percent"} <= shown["worst"][0].keys()


def test_rows_that_cannot_be_expressed_are_listed_in_the_json(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("dtype,m,n,k,ms\nfp64,1,2,3,4\nfp64,1,2,3,4\n")
    shown = json.loads(scorecard_json(validate("kernels", file)))
    assert shown["unsupported"] == [{"reason": 'GEMM in "fp64" is not modelled', "rows": 2}]
    assert shown["overall"] == {"rows": 0, **dict.fromkeys(GROUP[1:])}


def test_a_prediction_says_where_its_row_stands() -> None:
    path = SHIPPED[0]
    rows = read_rows(path)[1]
    assert rows[0].where == f"{path.name}:2"
    assert [one.where for one in outcomes(path, FORMATS)] == [row.where for row in rows]
    assert len(predicted(path)) == sum(not row.fitted_on() for row in rows) > 0
    assert all(one.low < one.predicted < one.high for one in predicted(path))


def test_names_in_the_tables_are_names_in_the_catalogue() -> None:
    catalog = Catalog(user=False)
    for system in SYSTEMS.values():
        assert catalog.chip(system).name == system
        assert any(one.chip == system and one.stack == "vllm" for one in constant_sets().values())
    for model in MODELS.values():
        assert catalog.model(model).name == model


def test_a_domain_is_a_set_of_formats_that_cannot_be_mistaken_for_each_other() -> None:
    for formats in LEDGER.values():
        columns = [one.columns for one in formats]
        assert len(set(columns)) == len(columns)


def unseen(system: str) -> list[Row]:
    """The bf16 and fp8 rows of a chip that were not drawn for fitting."""
    mine = [
        row
        for row in read_rows(TABLES)[1]
        if row.text("system") == system and row.text("gemm_dtype") in FITTED_FORMATS
    ]
    drawn = np.random.default_rng(7).random(len(mine)) < 0.25
    left = [row for row, fitted in zip(mine, drawn, strict=True) if not fitted]
    return [row for row in left if row.text("gemm_dtype") in TABLE_FORMATS]


if TABLES.exists():

    @pytest.mark.parametrize(
        ("system", "median", "p90"), [("a100_sxm", 7, 18.5), ("h100_sxm", 5.9, 18), ("b200_sxm", 7, 20)]
    )
    def test_unseen_rows_of_the_kernel_tables_are_within_the_floor(
        system: str, median: float, p90: float
    ) -> None:
        (table,) = (one for one in FORMATS if one.name == "GEMM table")
        found = list(table.predict(unseen(system)))
        assert len(found) > 500
        assert not [one for one in found if isinstance(one, Unsupported)]
        assert_within(score([one for one in found if isinstance(one, Prediction)]), median, p90)

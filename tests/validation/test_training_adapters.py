"""Published peaks of fine-tuning by adapters: how a row is read, and how near the memory model comes."""

from __future__ import annotations

import csv
from importlib import resources

import pytest

from datahall.validation.measurement import Row
from datahall.validation.scorecard import Prediction, Unsupported
from datahall.validation.training.adapters import predict_rows, task

CELLS = {
    "source": "x", "chip": "a100-sxm-40gb", "n_gpus": "2", "model": "llama-2-7b", "rank": "8", "targets": "query-value",
    "quantised": "nf4-dq", "seq": "1304", "micro_batch": "2", "zero": "3", "recompute": "full", "books": "litgpt",
    "measure": "allocated", "peak": "13.84", "unit": "GB",
}  # fmt: skip


def rows() -> list[Row]:
    path = resources.files("datahall.validation").joinpath("data/training/tuning.csv")
    with path.open(encoding="utf-8") as file:
        return [Row(f"{at}", cells) for at, cells in enumerate(csv.DictReader(file), start=2)]


def test_a_row_is_read_as_it_says() -> None:
    job, layout = task(Row("x", CELLS))
    assert job.adapters is not None
    assert (job.adapters.rank, job.adapters.targets, job.adapters.quantised, job.adapters.doubly) == (
        8, "query-value", True, True,
    )  # fmt: skip
    assert (job.seq, job.global_batch, layout.dp, layout.zero, layout.recompute) == (1304, 4, 2, 3, "full")
    once, _ = task(Row("x", CELLS | {"quantised": "nf4"}))
    assert once.adapters is not None
    assert not once.adapters.doubly


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"targets": "some"}, 'targets "some" is none of'),
        ({"rank": "0"}, "not above zero"),
        ({"unit": "GBit"}, 'unit "GBit" is none of'),
        ({"quantised": "int3"}, 'quantised "int3" is none of'),
        ({"doubt": "cannot be"}, "cannot be"),
        ({"model": "llama-9"}, "llama-9"),
    ],
)
def test_a_row_that_cannot_be_read_is_counted_with_its_reason(cells: dict[str, str], reason: str) -> None:
    (found,) = predict_rows([Row("x.csv:2", CELLS | cells)])
    assert isinstance(found, Unsupported)
    assert reason in found.reason


def test_a_row_may_state_a_step_in_place_of_a_peak() -> None:
    (found,) = predict_rows([Row("x", CELLS | {"peak": "", "step_s": "2.5", "framework": "eager"})])
    assert isinstance(found, Prediction)
    assert (found.metric, found.measured, found.unit) == ("step time", 2.5, "s")


def test_every_row_has_a_source_and_nothing_is_fitted_on_any() -> None:
    for row in rows():
        assert row.text("url").startswith("github.com/"), row.where
        assert row.text("notes"), row.where
        assert row.text("fitted") == "0", row.where


def test_at_least_six_published_peaks_of_qlora_are_within_a_tenth() -> None:
    """Of 4-bit weights: from LitGPT, Answer.AI and torchtune; two rows in three of all, none beyond a quarter."""
    found = [
        (row, one)
        for row in rows()
        for one in predict_rows([row])
        if isinstance(one, Prediction) and one.metric == "peak memory"
    ]
    away = [
        (row.text("quantised"), row.text("source"), one.predicted / one.measured - 1) for row, one in found
    ]
    near = [(quantised, source) for quantised, source, error in away if abs(error) <= 0.1]
    narrow = [source for quantised, source in near if quantised]
    assert len(narrow) >= 6
    assert len({source.split()[0] for source in narrow}) >= 3
    assert len(near) >= len(away) * 2 / 3
    assert max(abs(error) for *_, error in away) < 0.25

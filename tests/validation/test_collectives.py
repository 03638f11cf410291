"""How far off we are on measured collectives: the floor that no change may fall through."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import pytest

from datahall.fabric.collectives.algorithms.torus import HOP_S, bucket_all_gather_time
from datahall.units import parse
from datahall.validation import Scorecard, validate
from datahall.validation.collectives import FORMATS, SICK, predict
from datahall.validation.collectives import rows as collective_rows
from datahall.validation.collectives.health import FAULTS, reported_fault
from datahall.validation.collectives.run import Known
from datahall.validation.ledger import outcomes, shipped_files
from datahall.validation.measurement import Row, read_rows
from datahall.validation.scorecard import Prediction, Unsupported, score

SHIPPED = shipped_files("collectives")
PAGE = (Path(__file__).parents[2] / "docs/collectives.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def card() -> Scorecard:
    return validate("collectives")


@pytest.fixture(scope="module")
def judged() -> list[Prediction]:
    found = [one for path in SHIPPED for one in outcomes(path, FORMATS)]
    return [one for one in found if isinstance(one, Prediction)]


def at_least_a_kilobyte(rows: list[Prediction]) -> list[Prediction]:
    sizes = (parse(row.label.partition(" ")[2].partition(" on ")[0], "bytes") for row in rows)
    return [row for row, size in zip(rows, sizes, strict=True) if 1000 <= size <= 18e9]


def test_every_row_is_counted_somewhere(card: Scorecard) -> None:
    assert card.rows == 917
    assert card.scored + card.fitted + sum(one.rows for one in card.unsupported) == card.rows


def test_at_most_a_quarter_of_a_source_was_fitted_on() -> None:
    rows = [row for path in SHIPPED for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines())]
    total = Counter(row["source"] for row in rows)
    fitted = Counter(row["source"] for row in rows if row["fitted"])
    assert all(fitted[source] <= total[source] / 4 for source in total)
    assert all(row["source"] and row["path_or_url"] for row in rows)


def test_calibrated_systems_from_a_kilobyte_to_16_gigabytes(judged: list[Prediction]) -> None:
    found = score(at_least_a_kilobyte([row for row in judged if "datasheet" not in row.hardware]))
    assert found.rows > 500
    assert found.mean_ape <= 7.0  # the bar that the project set itself is 6
    assert found.median_ape <= 4.0
    assert f"| calibrated systems, 1 KB – 16 GB | {found.mean_ape:.1f} % |" in PAGE


def test_datasheets_alone() -> None:
    _, rows = read_rows(SHIPPED[0])
    found = [one for one in predict(rows, "datasheet") if isinstance(one, Prediction)]
    plain = at_least_a_kilobyte([one for one in found if "datasheet only" in one.hardware])
    assert len(plain) > 120
    assert score(plain).mean_ape <= 18.5
    assert f"| the same NCCL runs from datasheets alone | {score(plain).mean_ape:.0f} % |" in PAGE


def test_a_line_of_tpus_is_predicted_by_its_buckets(judged: list[Prediction]) -> None:
    """Four chips without a wrap, 45 GB/s a link: 32 MiB, and 128 KiB, where latency is nearly all of it."""
    found = [row for row in judged if row.model == "torus"]
    line = {"axes": (4,), "hop_s": HOP_S, "bytes_per_s": 45e9, "wrapped": False}
    expected = [bucket_all_gather_time(size, **line) for size in (2.0**25, 2.0**17)]  # type: ignore[arg-type]
    assert [row.predicted for row in found] == pytest.approx(expected)
    assert [row.measured for row in found] == pytest.approx([680e-6, 8e-6])


def test_four_times_the_ranks_that_were_fitted_on(judged: list[Prediction]) -> None:
    """ctran was fitted on 4 and 8 ranks: 32 is four times the largest."""
    beyond = [row for row in judged if row.model == "ctran" and " on 32," in row.label]
    assert len(beyond) > 60
    assert score(beyond).mean_ape <= 6.6
    assert f"| ctran on 32 ranks, fitted on 4 and 8 | {score(beyond).mean_ape:.0f} % |" in PAGE


def test_what_a_page_says_of_runs_that_only_wonder(judged: list[Prediction]) -> None:
    """Without them the bar would be met: the page says so, and that they are scored."""
    names = ("nccl#1250", "nccl#1244", "nccl#527", "nccl-tests#78", "nccl-tests#283")
    whole = ("nccl#527", " on 8,")  # the one row among theirs that nobody wondered at
    doubted = [
        row for row in judged
        if row.source.endswith(names) and not (row.source.endswith(whole[0]) and whole[1] in row.label)
    ]  # fmt: skip
    assert len(doubted) == 17
    rest = at_least_a_kilobyte(
        [row for row in judged if row not in doubted and "datasheet" not in row.hardware]
    )
    assert f"line would say {score(rest).mean_ape:.1f} %" in PAGE.replace("\n", " ")


def test_bands_hold_eight_of_ten(card: Scorecard) -> None:
    assert card.overall.band_coverage == pytest.approx(80.0, abs=5.0)


@pytest.mark.parametrize(
    ("source", "mean"),
    [
        ("meta-pytorch/torchcomms", 5.6), ("NVIDIA/nccl (contrib)", 5.3),
        ("aws-samples/awsome-distributed-training", 7), ("GoogleCloudPlatform/cluster-toolkit", 4.1),
        ("deepseek-ai/DeepEP", 6.2), ("stas00/ml-engineering", 14), ("uccl-project/uccl", 15),
        ("oracle-quickstart/oci-hpc", 1.6), ("NVIDIA/nccl#1469", 12),
    ],
)  # fmt: skip
def test_each_source_holds_its_floor(card: Scorecard, source: str, mean: float) -> None:
    assert card.by_source[source].mean_ape <= mean


def sick_rows() -> list[tuple[Row, str]]:
    _, rows = read_rows(SHIPPED[0])
    return [
        (row, one.reason.removeprefix(SICK)) for row, one in zip(rows, predict(rows), strict=True)
        if isinstance(one, Unsupported) and one.reason.startswith(SICK)
    ]  # fmt: skip


def test_sick_machines_are_counted_and_never_scored_or_fitted() -> None:
    assert not any(row.fitted_on() for row, _ in sick_rows())
    assert {reason for _, reason in sick_rows()} == {
        "the source reports a fault", "bandwidth halves as messages grow",
    }  # fmt: skip


def test_every_fault_is_quoted_and_every_quoted_fault_has_rows() -> None:
    """Rows leave by what their source says of them, in one list; each entry names rows of the shipped file."""
    reported = [row for row, reason in sick_rows() if "source" in reason]
    found = [fault for row in reported if (fault := reported_fault(row))]
    assert len(found) == len(reported) == 14
    assert set(map(id, found)) == set(map(id, FAULTS))
    for row, fault in zip(reported, found, strict=True):
        assert fault.url == row.text("path_or_url")
        assert len(fault.said.split()) > 8


@pytest.mark.parametrize("times", [0.02, 0.5, 2.0])
def test_what_we_predict_does_not_say_which_rows_are_scored(
    times: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither across nodes nor in one: a rule that looks at a residual would drop rows here."""
    _, rows = read_rows(SHIPPED[0])
    before = [(type(one), one.where) for one in predict(rows)]
    plain = collective_rows.read_run

    def faster(row: Row, level: str | None) -> Known:
        known = plain(row, level)
        return msgspec.structs.replace(known, predicted_s=known.predicted_s * times)

    monkeypatch.setattr(collective_rows, "read_run", faster)
    after = list(predict(rows))
    assert [(type(one), one.where) for one in after] == before


def test_runs_far_from_our_prediction_stay_in_the_score(judged: list[Prediction]) -> None:
    """Their sources wonder, or hoped for more, and show nothing better of the same machine."""
    worst = {one.source for one in judged if one.error_percent < -45}
    assert {"NVIDIA/nccl#1250", "NVIDIA/nccl#1244", "NVIDIA/nccl-tests#78"} <= worst


def cells(**changed: str) -> Row:
    plain = {
        "source": "mine", "hardware": "H100", "n_gpus": "8", "n_nodes": "1", "interconnect": "NVLink4",
        "collective": "all_reduce", "algorithm": "NCCL default", "message_bytes": "1048576", "time_us": "27",
        "algbw_GBps": "", "busbw_GBps": "", "notes": "",
    }  # fmt: skip
    return Row("mine.csv:2", plain | changed)


def only(row: Row) -> Prediction | Unsupported:
    return next(iter(predict([row])))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"hardware": "an accelerator"}, "does not name the chip"),
        ({"algorithm": "magic"}, 'algorithm "magic" is not modelled'),
        ({"collective": "all_sum"}, "is not modelled"),
        ({"time_us": "", "busbw_GBps": "0.05"}, "rounded to more than ±5 %"),
        ({"time_us": ""}, "neither a time nor a bandwidth"),
        ({"n_gpus": "eight"}, "not a number"),
        ({"n_gpus": "0"}, "not above zero"),
        ({"time_us": "-3"}, "not above zero"),
        ({"n_gpus": "1"}, "moves nothing"),
        ({"algorithm": "DeepEP V1 low-latency", "collective": "moe_dispatch_fp8"}, "top-k are not stated"),
        ({"source": "GitHub issue NVIDIA/nccl#1453"}, "the source reports a fault"),
    ],
)
def test_what_cannot_be_expressed_is_said(changed: dict[str, str], reason: str) -> None:
    found = only(cells(**changed))
    assert isinstance(found, Unsupported)
    assert reason in found.reason


def test_a_bandwidth_is_as_good_as_a_time() -> None:
    by_time, by_bus = only(cells()), only(cells(time_us="", busbw_GBps="67.96"))
    assert isinstance(by_time, Prediction)
    assert isinstance(by_bus, Prediction)
    assert by_bus.measured == pytest.approx(by_time.measured, rel=1e-3)


def test_an_unseen_size_and_count_of_a_known_system_is_predicted() -> None:
    found = only(cells(hardware="B200 (3x p6-b200)", n_gpus="24", n_nodes="3", interconnect="NVLink5 + 8x400G EFA",
                       message_bytes="12345678", time_us="700"))  # fmt: skip
    assert isinstance(found, Prediction)
    assert found.low < found.predicted < found.high
    assert "family-calibrated" in found.hardware


def test_a_file_of_the_same_columns_is_scored(tmp_path: Path) -> None:
    with SHIPPED[0].open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    chosen = [row for row in rows if "p5.48xlarge" in row["hardware"]]
    mine = tmp_path / "mine.csv"
    with mine.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [name for name in rows[0] if name != "fitted"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(chosen)
    found = validate("collectives", mine)
    assert found.scored == 32
    assert found.fitted == 0
    assert found.overall.mean_ape <= 10


def test_errors_are_about_times(judged: list[Prediction]) -> None:
    assert all(row.unit == "s" and np.isfinite(row.predicted) and row.measured > 0 for row in judged)

"""How far off we are on measured power: the floor that no change may fall through, and rows that nobody foresaw."""

from __future__ import annotations

import csv
from collections import Counter
from math import isfinite
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.catalog import load
from datahall.power.constants import constants
from datahall.validation import Scorecard, validate
from datahall.validation.ledger import outcomes, shipped_files
from datahall.validation.measurement import Row, read_rows
from datahall.validation.power import FORMATS, nodes, serving, walls
from datahall.validation.power.chips import activity_of
from datahall.validation.scorecard import Prediction, Unsupported

SHIPPED = shipped_files("power")
POINTS, NODES = (next(path for path in SHIPPED if path.stem == name) for name in ("points", "training_nodes"))


@pytest.fixture(scope="module")
def card() -> Scorecard:
    return validate("power")


def first(path: Path, **cells: str) -> Row:
    """The first row with these cells in it."""
    return next(
        row for row in read_rows(path)[1] if all(want in row.text(name) for name, want in cells.items())
    )


def changed(row: Row, **cells: str) -> Row:
    return Row(row.where, row.cells | cells)


def predicted(path: Path, row: Row) -> list[Prediction | Unsupported]:
    form = FORMATS[0] if path == POINTS else FORMATS[1]
    return [one for one in form.predict([row]) if isinstance(one, Prediction | Unsupported)]


def test_at_most_a_quarter_of_a_source_was_fitted_on() -> None:
    rows = [row for path in SHIPPED for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines())]
    total = Counter(row["source"] for row in rows)
    marked = Counter(row["source"] for row in rows if row["fitted"])
    assert all(marked[source] <= total[source] / 4 for source in total)
    assert sum(total.values()) == 409 + 46 + 5 + 56


def test_serving_power_on_rows_that_nothing_was_fitted_on(card: Scorecard) -> None:
    assert card.by_metric[serving.POWER].rows > 280
    assert card.by_metric[serving.POWER].mean_ape < 10.0  # the bar is 11
    assert card.by_metric[serving.UNAIDED].mean_ape < 15.5
    assert card.by_metric[serving.ENERGY].mean_ape < 17.5


def test_node_and_server_power(card: Scorecard) -> None:
    assert card.by_metric[nodes.NODE_POWER].rows > 40
    assert card.by_metric[nodes.NODE_POWER].mean_ape < 6.0  # the bar is 11
    assert card.by_metric[walls.SERVER_POWER].mean_ape < 8.0
    assert card.by_metric[walls.IDLE_POWER].mean_ape < 10.0


def test_each_source_of_nodes_keeps_the_bar(card: Scorecard) -> None:
    sources = [score for name, score in card.by_source.items() if name.startswith("MLPerf Training")]
    assert len(sources) == 3
    assert all(score.mean_ape < 11.0 for score in sources)


def test_bands_hold_about_eight_of_ten(card: Scorecard) -> None:
    for metric in (serving.POWER, serving.UNAIDED, serving.ENERGY):
        assert 72.0 < card.by_metric[metric].band_coverage < 90.0


def test_every_reason_is_said(card: Scorecard) -> None:
    assert {one.reason for one in card.unsupported} == {
        "chips are held below their limit (MaxQ), at what is not stated",
        'the model is not in the catalogue: "nvidia/NVIDIA-Nemotron-Nano-12B-v2"',
        "the benchmark is no language model",
        'what ran is not stated: "training 3B"',
    }


def test_a_step_lasts_as_the_stated_rate_says() -> None:
    row = first(POINTS, accelerator="H100", system="Qwen3-14B", workload="lm-arena-chat")
    point = serving.understood(row)
    assert point.stated_step_s == pytest.approx(8 / 627.4)
    slow = serving.understood(changed(row, output_tok_s="62.74"))
    assert slow.activity.memory_fraction == pytest.approx(point.work.activity.over(
        slow.stated_step_s / point.work.time_s
    ).memory_fraction)  # fmt: skip
    drawn = [next(iter(predicted(POINTS, changed(row, output_tok_s=rate)))) for rate in ("62.74", "627.4")]
    assert all(isinstance(one, Prediction) for one in drawn)
    assert drawn[0].predicted < drawn[1].predicted - 50  # type: ignore[union-attr]


def test_the_rate_has_no_say_in_what_is_predicted_without_it() -> None:
    row = first(POINTS, accelerator="H100", system="Qwen3-14B", workload="lm-arena-chat")
    alone = [figures(POINTS, changed(row, output_tok_s=rate))[1:] for rate in ("62.74", "627.4")]
    assert alone[0] == alone[1]
    assert len(alone[0]) == 2


def figures(path: Path, row: Row) -> list[float]:
    return [one.predicted for one in predicted(path, row) if isinstance(one, Prediction)]


def test_measured_power_has_no_say_in_what_is_predicted() -> None:
    rows = (
        (POINTS, first(POINTS, accelerator="B200", system="gpt-oss-120b"), "power_w_per_accel"),
        (NODES, first(NODES, system="1xSMC"), "mean_node_W"),
    )
    for path, row, column in rows:
        low, high = (figures(path, changed(row, **{column: watts})) for watts in ("100", "900"))
        assert low == high != []


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"system": "vLLM nobody/Nothing-7B"}, "not in the catalogue"),
        ({"system": "SGLang x"}, "names no engine and model"),
        ({"accelerator": "Z9000"}, "chip"),
        ({"workload": "chess"}, "lengths"),
        ({"note": ""}, "split"),
        ({"note": "bfloat16; TP1 EP1 DP3"}, "do not divide"),
        ({"note": "bfloat16; TP1 EP1 DP0"}, "do not divide"),
        ({"note": "bfloat16; TP3 EP1 DP1", "n_accelerators": "3"}, "divide by tp"),
        ({"n_accelerators": "0"}, "n_accelerators"),
        ({"batch_or_concurrency": ""}, "batch_or_concurrency"),
        ({"output_tok_s": "nan"}, "output_tok_s"),
        ({"power_w_per_accel": "-4"}, "power_w_per_accel"),
        ({"scope": "moon base"}, "no load is stated"),
        ({"scope": ""}, "no scope"),
    ],
)
def test_a_row_that_cannot_be_read_is_counted_with_its_reason(cells: dict[str, str], reason: str) -> None:
    row = changed(first(POINTS, accelerator="H100", system="Qwen3-14B"), **cells)
    (found,) = predicted(POINTS, row)
    assert isinstance(found, Unsupported)
    assert reason in found.reason


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"system": "HAL-9000"}, "chip"),
        ({"benchmark": "chess"}, 'no layout of the benchmark "chess"'),
        ({"n_nodes": "3", "benchmark": "gpt3"}, "not known to us"),
        ({"n_nodes": "0"}, "n_nodes"),
        ({"duration_s": ""}, "duration_s"),
        ({"mean_node_W": "0"}, "mean_node_W"),
    ],
)
def test_a_node_that_cannot_be_read_is_counted_with_its_reason(cells: dict[str, str], reason: str) -> None:
    row = changed(first(NODES, system="8xSMC"), **cells)
    (found,) = predicted(NODES, row)
    assert isinstance(found, Unsupported)
    assert reason in found.reason


@pytest.mark.parametrize(
    ("system", "chip"),
    [
        ("1xSMC-H100-SXM-80GB", "h100-sxm"), ("8xXE9680x8H100-SXM-80GB-POWER", "h100-sxm"),
        ("SR780aV3-8xB200_SXM_180GB", "b200-sxm"), ("XE7740x8H200-NVL-141GB", "h200-nvl"),
        ("18xBM.GPU.GB200.4", "gb200"), ("8xMI325X_2xEPYC_9575F", "mi325x"), ("a100_n8_ngc24.1", "a100-sxm-80gb"),
    ],
)  # fmt: skip
def test_chips_are_found_in_the_names_of_systems(system: str, chip: str) -> None:
    assert nodes.chip_in(system).name == chip


@pytest.mark.parametrize(
    ("chip", "num", "ways"),
    [
        ("h100-sxm", 8, (4, 1, 2, 8)), ("h100-sxm", 64, (4, 2, 8, 8)), ("h100-sxm", 512, (4, 2, 64, 64)),
        ("h200-sxm", 8, (2, 1, 4, 8)), ("b200-sxm", 8, (1, 1, 8, 8)), ("b200-sxm", 16, (1, 2, 8, 8)),
    ],
)  # fmt: skip
def test_adapters_are_laid_out_as_submissions_are(chip: str, num: int, ways: tuple[int, ...]) -> None:
    """tp, cp, dp and the global batch, as the names of their configurations state them."""
    job, layout = nodes._adapters(load().chip(chip), num)
    assert (layout.tp, layout.cp, layout.dp, job.global_batch) == ways


def test_short_runs_draw_less_and_the_supplies_more() -> None:
    node = nodes.understood(first(NODES, system="8xSMC", measurement_point="AC"))
    start_s = constants().server.start_s
    short, long = (
        nodes.mean_chip_w(msgspec.structs.replace(node, duration_s=time_s), start_s)
        for time_s in (60.0, 6000.0)
    )
    assert 110.0 < short < long < 700.0
    assert nodes.mean_chip_w(msgspec.structs.replace(node, duration_s=1.0), start_s) == pytest.approx(110.0)
    sides = [
        one.predicted
        for point in ("AC (wall)", "DC")
        for one in predicted(NODES, changed(node.row, measurement_point=point, fitted=""))
        if isinstance(one, Prediction)
    ]
    assert sides[0] * constants().server.supply_efficiency == pytest.approx(sides[1])


def test_a_phase_that_is_not_named_is_refused() -> None:
    chip = load().chip("h200-sxm")
    assert activity_of("GEMM 8192 bf16", chip).tensor_fraction > 0.5
    assert activity_of("decode Llama-3-8B batch 32 (graph)", chip).memory_fraction > 0.5
    with pytest.raises(ValueError, match="not stated"):
        activity_of("training 3B", chip)


ODD = st.sampled_from(
    ["", "0", "-1", "1e9", "1e13", "nan", "3.7", "abc", "A100", "MI300X", "gpqa", "fp8; TP2 EP2 DP2", "vLLM x",
     "mxfp4; TP1 EP8 DP8", "vLLM deepseek-ai/DeepSeek-R1", "server wall (PTDaemon, 1 Hz)", "7", "4096", "é"]
)  # fmt: skip
EVERY = [(path, row) for path in SHIPPED for row in read_rows(path)[1][::7]]


@settings(deadline=None)
@given(st.sampled_from(EVERY), st.data())
def test_no_row_stops_the_ledger(one: tuple[Path, Row], data: st.DataObject) -> None:
    path, row = one
    names = data.draw(st.lists(st.sampled_from(sorted(row.cells)), min_size=1, max_size=3, unique=True))
    for found in predicted(path, changed(row, **{name: data.draw(ODD) for name in names})):
        assert isinstance(found, Unsupported) or (isfinite(found.predicted) and found.predicted > 0)


def test_files_of_the_same_columns_are_scored(tmp_path: Path) -> None:
    columns, rows = read_rows(NODES)
    names = [name for name in columns if name != "fitted"]
    path = tmp_path / "mine.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(row.cells for row in rows[:3])
    found = [one for one in outcomes(path, FORMATS) if isinstance(one, Prediction)]
    assert len(found) == 3
    assert validate("power", path).by_metric[nodes.NODE_POWER].rows == 3

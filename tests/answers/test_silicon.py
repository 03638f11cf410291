"""What `show roofline` and `show hierarchy` say; whether it is true is the ledger's business."""

from pathlib import Path

import pytest
from tests.results import number

from datahall import show_hierarchy, show_roofline
from datahall.answer import LineChart, RooflineChart
from datahall.breakdown import false_nodes
from datahall.catalog import Catalog
from datahall.errors import InfeasibleError, ScenarioError, UnsupportedError
from datahall.report import FORMATS, render
from datahall.units import fmt

DECODE = {"model": "llama-3.1-8b", "phase": "decode", "batch": 32, "context": 4096}


def test_the_pass_is_the_sum_of_its_operators(shelf: Catalog) -> None:
    answer = show_roofline("h200", **DECODE, catalog=shelf)  # type: ignore[arg-type]
    rows = answer.tables[0].records()
    total = answer.results["pass_s"]
    assert sum(float(row["time_s"]) for row in rows) == pytest.approx(total)  # type: ignore[arg-type]
    assert sum(float(row["share_fraction"]) for row in rows) == pytest.approx(1)  # type: ignore[arg-type]
    assert answer.figure is not None
    assert answer.figure.value == total
    assert false_nodes(answer.figure) == []
    assert sum(part.value for part in answer.figure.parts) == pytest.approx(total)
    assert answer.figure.citations()


def test_the_marked_row_is_the_largest(shelf: Catalog) -> None:
    table = show_roofline("h200", **DECODE, catalog=shelf).tables[0]  # type: ignore[arg-type]
    times = [float(record["time_s"]) for record in table.records()]  # type: ignore[arg-type]
    assert table.marked == times.index(max(times))


def test_the_chart_has_a_point_per_operator_with_arithmetic(shelf: Catalog) -> None:
    answer = show_roofline("h200", **DECODE, catalog=shelf)  # type: ignore[arg-type]
    chart = answer.charts[0]
    assert isinstance(chart, RooflineChart)
    counted = {row["operator"] for row in answer.tables[0].records() if row["intensity_flop_per_byte"]}
    assert {point.label for point in chart.points} == counted
    assert set(chart.slopes) == {"HBM3e", "L2"}


def test_decode_waits_for_memory_and_prefill_for_arithmetic(shelf: Catalog) -> None:
    prefill = show_roofline("h200", model="llama-3.1-8b", phase="prefill", context=4096, catalog=shelf)
    decode = show_roofline("h200", **DECODE, catalog=shelf)  # type: ignore[arg-type]
    assert prefill.binding.startswith("Arithmetic binds")
    assert decode.binding.startswith("Memory bandwidth binds")


def test_the_level_is_said(shelf: Catalog) -> None:
    assert show_roofline("h200", model="llama-3.1-8b", catalog=shelf).results["level"] == "measured"
    assert (
        show_roofline("h200", model="llama-3.1-8b", level="datasheet", catalog=shelf).results["level"]
        == "datasheet only"
    )


@pytest.mark.parametrize(
    ("chip", "model"),
    [("h100-sxm", "llama-3.1-70b"), ("groq-lpu", "llama-3.1-8b"), ("h200", "llama-3.1-405b")],
)
def test_what_does_not_fit_has_no_speed(shelf: Catalog, chip: str, model: str) -> None:
    answer = show_roofline(chip, model=model, catalog=shelf)
    assert answer.verdict == "no"
    assert "does not fit" in answer.headline
    assert "tokens/s" not in answer.headline + answer.binding
    assert "tokens_per_s" not in answer.results
    missing = answer.results["missing_bytes"]
    assert isinstance(missing, float)
    assert fmt(missing, "bytes") in answer.headline
    assert answer.figure is not None
    assert answer.figure.value == missing > 0
    assert false_nodes(answer.figure) == []


def test_just_enough_chips_make_it_fit(shelf: Catalog) -> None:
    assert show_roofline("h200", model="llama-3.1-405b", tp=4, catalog=shelf).verdict == "no"
    assert show_roofline("h200", model="llama-3.1-405b", tp=8, catalog=shelf).verdict == "yes"


def test_block_scaled_weights_run_kernels_of_their_own(shelf: Catalog) -> None:
    qwen = show_roofline("h200", model="qwen3-8b", precision="fp8", catalog=shelf)
    llama = show_roofline("h200", model="llama-3.1-8b", precision="fp8", catalog=shelf)
    assert any("scale per block" in note for note in qwen.notes)
    assert not any("scale per block" in note for note in llama.notes)


def test_a_launch_from_the_host_is_in_the_chain(shelf: Catalog) -> None:
    answer = show_roofline("h200", model="llama-3.1-8b", eager=True, catalog=shelf)
    assert answer.figure is not None
    assert false_nodes(answer.figure) == []
    assert any(node.name == "launch from the host" for _, node in answer.figure.walk())


@pytest.mark.parametrize(
    "asked",
    [
        {"batch": 0},
        {"batch": -4},
        {"context": 0},
        {"tp": 3},
        {"tp": 0},
        {"phase": "think"},
        {"level": "guess"},
    ],
)
def test_bad_questions(shelf: Catalog, asked: dict[str, object]) -> None:
    with pytest.raises(ScenarioError):
        show_roofline("h200", model="llama-3.1-8b", catalog=shelf, **asked)  # type: ignore[arg-type]


def test_a_precision_the_chip_lacks_is_refused(shelf: Catalog) -> None:
    with pytest.raises(UnsupportedError, match="has no FP8"):
        show_roofline("a100-sxm-80gb", model="llama-3.1-8b", precision="fp8", catalog=shelf)


def test_the_cliff_of_every_chip_that_has_one(shelf: Catalog) -> None:
    for chip in shelf.chips():
        try:
            answer = show_hierarchy(chip.name, catalog=shelf)
        except UnsupportedError:
            continue
        for form in FORMATS:
            assert "nan" not in render(answer, form)


def test_bandwidth_never_rises_with_the_working_set(shelf: Catalog) -> None:
    chart = show_hierarchy("h100-sxm", offload="host", catalog=shelf).charts[0]
    assert isinstance(chart, LineChart)
    for series in chart.series:
        assert all(later <= earlier * 1.0001 for earlier, later in zip(series.y, series.y[1:], strict=False))


def test_prefetch_is_never_slower(shelf: Catalog) -> None:
    plain = show_hierarchy("h100-sxm", working_set="120 GB", offload="host", catalog=shelf)
    ahead = show_hierarchy("h100-sxm", working_set="120 GB", offload="host", prefetch=True, catalog=shelf)
    assert number(ahead, "read_bytes_per_s") > number(plain, "read_bytes_per_s")


def test_what_is_offloaded_is_kept_where_it_was_asked_to_be(shelf: Catalog) -> None:
    """54.48 GB of 140 do not fit in the 85.52 GB of an H100; a drive reads 6.9 GB/s."""
    answer = show_hierarchy("h100-sxm", working_set="140 GB", offload="nvme", prefetch=True, catalog=shelf)
    assert answer.results["level"] == "nvme"
    assert number(answer, "scan_s") == pytest.approx(54.48e9 / 6.9e9, rel=1e-3)
    assert not any("do nothing here" in note or "does nothing here" in note for note in answer.notes)


@pytest.mark.parametrize(
    ("size", "note"),
    [
        ("10 MB", "offload and prefetch do nothing here: the working set fits in shared memory"),
        ("1 GB", "offload does nothing here: the working set fits in main memory"),
    ],
)
def test_offloading_what_fits_on_the_chip_is_said_to_do_nothing(shelf: Catalog, size: str, note: str) -> None:
    answer = show_hierarchy("h100-sxm", working_set=size, offload="nvme", prefetch=True, catalog=shelf)
    assert note in answer.notes


def test_no_place_is_suggested_that_is_too_small_too(shelf: Catalog) -> None:
    with pytest.raises(InfeasibleError, match='offload="nvme"'):
        show_hierarchy("h100-sxm", working_set="3 TB", offload="host", catalog=shelf)
    with pytest.raises(InfeasibleError) as refused:
        show_hierarchy("h100-sxm", working_set="30 TB", offload="host", catalog=shelf)
    assert "offload" not in refused.value.hint


def test_a_set_that_fits_nowhere_is_a_no_with_a_way_out(shelf: Catalog) -> None:
    with pytest.raises(InfeasibleError, match=r'(?s)1.87 times .*offload="host"'):
        show_hierarchy("h100-sxm", working_set="160 GB", catalog=shelf)


@pytest.mark.parametrize("prefetch", [False, True])
@pytest.mark.parametrize("size", ["1 MB", "40 MB", "2 GB", "120 GB"])
def test_the_scan_is_the_figure(shelf: Catalog, size: str, prefetch: bool) -> None:
    answer = show_hierarchy("h100-sxm", working_set=size, offload="host", prefetch=prefetch, catalog=shelf)
    assert answer.figure is not None
    assert false_nodes(answer.figure) == []
    assert answer.figure.value == answer.results["scan_s"]
    assert fmt(answer.figure.value, "s") in answer.headline


def test_prefetching_says_nothing_without_a_working_set(shelf: Catalog) -> None:
    with pytest.raises(ScenarioError, match="does nothing here: it needs working_set"):
        show_hierarchy("h100-sxm", prefetch=True, catalog=shelf)


@pytest.mark.parametrize("size", ["0", "-2 GB", "2 apples", "2", float("nan")])
def test_bad_working_sets(shelf: Catalog, size: str | float) -> None:
    with pytest.raises(ScenarioError, match="working_set"):
        show_hierarchy("h100-sxm", working_set=size, catalog=shelf)


def test_an_operator_of_two_kinds_of_layer_is_one_row(shelf: Catalog) -> None:
    answer = show_roofline("h200", model="deepseek-v3", precision="fp8", tp=8, batch=64, catalog=shelf)
    rows = [record["operator"] for record in answer.tables[0].records()]
    assert len(rows) == len(set(rows))
    runs = {record["operator"]: record["num_runs"] for record in answer.tables[0].records()}
    assert runs["attention"] == 61


def test_a_config_gives_one_answer_whatever_its_folder_is_called(shelf: Catalog, tmp_path: Path) -> None:
    text = (Path(__file__).parents[1] / "catalog" / "configs" / "deepseek-v3.json").read_text()
    answers = []
    for name in ("deepseek-v3", "dsv3"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(text)
        path = str(tmp_path / name / "config.json")
        answers.append(show_roofline("h200", model=path, precision="fp8", tp=8, batch=8, catalog=shelf))
    one, other = answers
    assert (one.headline, one.results, one.tables, one.figure) == (
        other.headline, other.results, other.tables, other.figure,
    )  # fmt: skip
    named = show_roofline("h200", model="deepseek-v3", precision="fp8", tp=8, batch=8, catalog=shelf)
    assert named.results == one.results
    assert str(tmp_path / "dsv3" / "config.json") in " ".join(other.next_commands)

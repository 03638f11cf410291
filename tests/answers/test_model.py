"""What `show model` says, and what fits."""

from pathlib import Path
from typing import cast

import pytest

from datahall import show_fit, show_model, show_roofline
from datahall.answer import Answer, RooflineChart, StackChart
from datahall.breakdown import false_nodes
from datahall.catalog import Catalog
from datahall.errors import ScenarioError, UnknownNameError
from datahall.inference.memory.fit import legal_groups, smallest_fit
from datahall.inference.memory.kv_pool import runtime_bytes
from datahall.report import render
from datahall.units import fmt

CONFIG = Path(__file__).parents[1] / "catalog" / "configs" / "llama-3.1-70b.json"


def rows(answer: Answer, title: str) -> list[dict[str, object]]:
    table = next(table for table in answer.tables if table.title.startswith(title))
    return [dict(record) for record in table.records()]


def test_llama_70b(shelf: Catalog) -> None:
    results = show_model("llama-3.1-70b", context=8192, catalog=shelf).results
    assert results["num_parameters"] == 70_553_706_496
    assert results["kv_bytes_per_token"] == 2 * 8 * 128 * 80 * 2
    assert results["weight_bytes"] == pytest.approx(2 * 70_553_706_496)
    assert results["training_flop_per_token"] == pytest.approx(3 * results["forward_flop_per_token"])  # type: ignore[operator]


def test_a_config_file_gives_the_same_numbers_as_the_catalogue(shelf: Catalog) -> None:
    named, read = show_model("llama-3.1-70b", catalog=shelf), show_model(str(CONFIG), catalog=shelf)
    assert named.results == read.results
    assert rows(named, "what it fits on") == rows(read, "what it fits on")


def test_parts_add_up(shelf: Catalog) -> None:
    *parts, whole = rows(show_model("deepseek-v3", catalog=shelf), "parameters by part")
    assert sum(int(part["num_parameters"]) for part in parts) == whole["num_parameters"]  # type: ignore[call-overload]


def test_the_figure_adds_up(shelf: Catalog) -> None:
    figure = show_model("llama-3.1-8b", context=4096, batch=16, catalog=shelf).figure
    assert figure is not None
    assert figure.value == pytest.approx(sum(part.value for part in figure.parts))
    assert figure.at("KV cache").value == pytest.approx(16 * figure.at("KV cache").parts[0].value)


@pytest.mark.parametrize(
    "name", ["llama-3.1-8b", "deepseek-v3", "gemma-3-4b", "nemotron-h-8b", "gpt-oss-120b"]
)
@pytest.mark.parametrize("precision", ["bf16", "fp8-kv8"])
def test_the_chain_holds_and_is_what_the_headline_says(shelf: Catalog, name: str, precision: str) -> None:
    answer = show_model(name, context=4096, batch=3, precision=precision, catalog=shelf)
    assert answer.figure is not None
    assert false_nodes(answer.figure) == []
    assert answer.figure.value == answer.results["memory_bytes"]
    assert fmt(answer.figure.at("weights").value, "bytes") in answer.headline
    assert fmt(answer.figure.at("KV cache").value, "bytes") in answer.headline


def test_the_published_format_is_said(shelf: Catalog) -> None:
    notes = show_model("gpt-oss-120b", catalog=shelf).notes
    assert any("published in mxfp4" in note for note in notes)
    assert any("128 × 128" in note for note in show_model("deepseek-v3", catalog=shelf).notes)


def test_more_sequences_never_need_fewer_chips(shelf: Catalog) -> None:
    needed = [
        rows(show_model("llama-3.1-70b", batch=batch, chips=["h100-sxm"], catalog=shelf), "what")[0][
            "num_chips"
        ]
        for batch in (1, 16, 64)
    ]
    assert needed == sorted(needed)  # type: ignore[type-var]
    assert needed[0] == 2


def test_a_group_holds_what_it_says(shelf: Catalog) -> None:
    model, chip = shelf.model("llama-3.1-70b"), shelf.chip("h200-sxm")
    found = smallest_fit(model, chip, context=8192, num_sequences=1, precision="bf16", catalog=shelf)
    assert found.weight_bytes + found.num_sequences * found.sequence_bytes <= found.usable_bytes
    assert found.weight_bytes + (found.num_sequences + 1) * found.sequence_bytes > found.usable_bytes


def test_a_precision_the_chip_lacks_is_not_fitted(shelf: Catalog) -> None:
    row = rows(show_model("llama-3.1-8b", precision="fp8", chips=["a100-sxm-80gb"], catalog=shelf), "what")[0]
    assert row["num_chips"] is None
    assert row["remark"] == "has no FP8"


def test_what_fits_nowhere_says_so(shelf: Catalog) -> None:
    answer = show_model("kimi-k2", chips=["t4"], precision="fp16", catalog=shelf)
    assert answer.binding.startswith("No group of up to 64")


def test_groups_divide_the_heads(shelf: Catalog) -> None:
    assert legal_groups(shelf.model("llama-3.1-70b")) == [1, 2, 4, 8, 16, 32, 64]
    assert legal_groups(shelf.model("phi-3-mini")) == [1, 2, 4, 8, 16, 32]


def test_beyond_the_longest_context_is_noted(shelf: Catalog) -> None:
    assert any("beyond" in note for note in show_model("gpt2-xl", context=4096, catalog=shelf).notes)


@pytest.mark.parametrize("value", [0, -1, 1.5, "many", "", 2**50, float("nan")])
def test_bad_lengths(shelf: Catalog, value: object) -> None:
    with pytest.raises(ScenarioError, match="context"):
        show_model("llama-3.1-8b", context=value, catalog=shelf)  # type: ignore[arg-type]


def test_unknown_names(shelf: Catalog) -> None:
    with pytest.raises(UnknownNameError, match=r"llama-3.1-8b"):
        show_model("lama-3.1-8b", catalog=shelf)
    with pytest.raises(UnknownNameError, match="precisions:"):
        show_model("llama-3.1-8b", precision="fp7", catalog=shelf)


def test_every_model_can_be_shown(shelf: Catalog) -> None:
    for model in shelf.models():
        text = render(show_model(model.name, context=2048, chips=["h100-sxm"], catalog=shelf), "table")
        assert model.title in text
        assert "nan" not in text.split("\n", 1)[0].replace(model.title, "")


@pytest.mark.parametrize("tp", [1, 2])
@pytest.mark.parametrize(("model", "chip"), [("llama-3.1-70b", "h200-sxm"), ("llama-3.1-8b", "l40s")])
@pytest.mark.parametrize("batch", [1, 7, 60, 100_000])
def test_a_pass_is_timed_where_the_model_fits(
    shelf: Catalog, model: str, chip: str, tp: int, batch: int
) -> None:
    """One rule says what fits: the division of the memory that the engine makes at start."""
    asked = {"chip": chip, "tp": tp, "batch": batch, "context": 4096, "catalog": shelf}
    fit = show_fit(model, **asked)  # type: ignore[arg-type]
    timed = show_roofline(model=model, **asked)  # type: ignore[arg-type]
    assert timed.verdict == fit.verdict
    if timed.verdict == "no":
        missing = timed.results["missing_bytes"]
        assert isinstance(missing, float)
        assert fmt(missing, "bytes") in timed.headline
        assert fmt(missing, "bytes") in fit.headline
        assert timed.results["weight_bytes"] == fit.results["weight_bytes"]


def test_the_shares_of_a_pass_are_of_its_time(shelf: Catalog) -> None:
    answer = show_roofline("h200", model="llama-3.1-8b", batch=32, context=4096, catalog=shelf)
    table, results = answer.tables[0], answer.results
    times, shares = ([cast(float, row[place]) for row in table.rows] for place in (2, 3))
    whole = cast(float, results["pass_s"])
    assert sum(times) == pytest.approx(whole)
    assert sum(shares) == pytest.approx(1.0)
    assert shares == pytest.approx([time / whole for time in times])
    assert results["tokens_per_s"] == pytest.approx(32 / whole)  # a decode step adds a token to each
    prefill = show_roofline(
        "h200", model="llama-3.1-8b", phase="prefill", batch=2, context=512, catalog=shelf
    )
    assert prefill.results["tokens_per_s"] == pytest.approx(2 * 512 / cast(float, prefill.results["pass_s"]))


def test_the_memory_of_a_chart_is_all_that_a_program_sees(shelf: Catalog) -> None:
    (chart,) = show_model("llama-3.1-8b", batch=4, chips=["h100-sxm", "l40s"], catalog=shelf).charts
    assert isinstance(chart, StackChart)
    for place, name in enumerate(("h100-sxm", "l40s")):
        assert sum(part[place] for part in chart.parts.values()) == pytest.approx(
            runtime_bytes(shelf.chip(name))
        )


def test_the_points_of_a_roofline_are_below_their_roofs(shelf: Catalog) -> None:
    answer = show_roofline("h200", model="llama-3.1-8b", phase="prefill", context=4096, catalog=shelf)
    (chart,), chip = answer.charts, shelf.chip("h200")
    assert isinstance(chart, RooflineChart)
    rates = {point.label: point.y for point in chart.points}
    assert all(0 < rate <= chip.peak("bf16") for rate in rates.values())
    assert max(rates.values()) > 0.4 * chip.peak("bf16")  # of one run, not of all
    drawn = sum(point.weight for point in chart.points)
    assert 0 < 1 - drawn < 0.3
    assert f"take {100 * (1 - drawn):.1f} % and are not drawn" in chart.note
    least, whole = (cast(float, answer.results[name]) for name in ("roofline_s", "pass_s"))
    assert f"an efficiency of {100 * least / whole:.0f} %" in answer.binding


@pytest.mark.parametrize("context", [512, 4096])
def test_no_operator_is_more_than_efficient(shelf: Catalog, context: int) -> None:
    """Bytes that the kernel before left in L2 are bounded by L2, in the table as in the chain."""
    answer = show_roofline("h100", model="llama-3.1-8b", phase="prefill", context=context, catalog=shelf)
    (table,) = [one for one in answer.tables if one.title.startswith("operators")]
    assert all(0 < cast(float, row["efficiency_fraction"]) <= 1 for row in table.records())

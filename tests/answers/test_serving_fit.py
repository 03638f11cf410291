"""What `show fit` says: yes or no first, sequences by precision and chips, and what would fit."""

import pytest

import datahall as dh
from datahall.answer import Answer
from datahall.catalog import Catalog
from datahall.errors import ScenarioError, UnknownNameError

show_fit = dh.show_fit


def by_precision(answer: Answer) -> dict[str, dict[str, object]]:
    return {str(row["precision"]): dict(row) for row in answer.tables[0].records()}


def test_it_names_the_smallest_group_and_what_it_holds(shelf: Catalog) -> None:
    answer = show_fit("llama-3.1-70b", chip="h100-sxm", context="32k", catalog=shelf)
    assert answer.verdict == "yes"
    assert answer.headline.startswith("Yes: Llama 3.1 70B in bf16 fits on 4 × h100-sxm")
    held = by_precision(answer)["bf16"]
    assert held["num_sequences_tp2"] == 0
    assert held["num_sequences_tp4"] == answer.results["num_sequences"]
    assert answer.figure is not None
    assert answer.figure.value == answer.results["num_sequences"]


def test_narrower_formats_and_more_chips_hold_more(shelf: Catalog) -> None:
    rows = by_precision(show_fit("llama-3.1-70b", chip="h100-sxm", context=8192, catalog=shelf))
    for tp in (4, 8):
        key = f"num_sequences_tp{tp}"
        assert rows["bf16"][key] < rows["fp8"][key] < rows["fp8-kv8"][key]  # type: ignore[operator]
    assert rows["bf16"]["num_sequences_tp4"] < rows["bf16"]["num_sequences_tp8"]  # type: ignore[operator]
    assert rows["nvfp4"]["num_sequences_tp8"] is None  # no FP4 on Hopper


def test_no_says_by_how_much_and_what_is_enough(shelf: Catalog) -> None:
    answer = show_fit("llama-3.1-70b", chip="h100-sxm", context=128_000, tp=2, catalog=shelf)
    assert answer.verdict == "no"
    assert "lacks" in answer.headline
    assert 'precision="fp8"' in answer.binding
    assert "tp=4" in answer.binding
    assert show_fit("llama-3.1-70b", chip="h100-sxm", context=128_000, tp=4, catalog=shelf).verdict == "yes"
    assert show_fit("llama-3.1-70b", context=128_000, tp=2, precision="fp8", catalog=shelf).verdict == "yes"


@pytest.mark.parametrize(("model", "batch"), [("llama-3.1-8b", 1), ("llama-3.1-70b", 3)])
def test_without_a_group_what_is_enough_is_that_of_the_group_that_holds_most(
    model: str, batch: int, shelf: Catalog
) -> None:
    """One chip holds a tenth of what eight hold: its longest context is not the answer where any group may serve."""
    answer = show_fit(model, context=10_000_000, batch=batch, catalog=shelf)
    assert answer.verdict == "no"
    longest = int(answer.binding.split("context=")[1].split(" ")[0].rstrip(",."))
    assert show_fit(model, context=longest, batch=batch, catalog=shelf).verdict == "yes"
    assert show_fit(model, context=longest + 512, batch=batch, catalog=shelf).verdict == "no"


@pytest.mark.parametrize(("model", "chip"), [("gpt-3-175b", "rtx-4090"), ("llama-3.1-70b", "l4")])
def test_what_does_not_fit_leaves_no_cache_and_none_below_zero(model: str, chip: str, shelf: Catalog) -> None:
    answer = show_fit(model, chip=chip, tp=1, context=32_768, catalog=shelf)
    assert answer.verdict == "no"
    assert answer.results["cache_bytes"] == answer.results["cache_tokens"] == 0
    assert ["cache", 0.0] in [list(row[:2]) for row in answer.tables[1].rows]


def test_a_remedy_holds_as_many_as_were_asked_for(shelf: Catalog) -> None:
    asked: dict[str, object] = {"chip": "h100-sxm", "tp": 4, "batch": 40, "catalog": shelf}
    answer = show_fit("llama-3.1-70b", context=32_000, **asked)
    assert answer.verdict == "no"
    longest = int(answer.binding.split("context=")[1].split(" ")[0].rstrip(",."))
    assert show_fit("llama-3.1-70b", context=longest, **asked).verdict == "yes"
    assert show_fit("llama-3.1-70b", context=longest + 512, **asked).verdict == "no"


def test_a_format_the_chip_lacks_is_no_and_another_is_offered(shelf: Catalog) -> None:
    answer = show_fit("llama-3.1-8b", chip="a100-sxm-80gb", precision="fp8", catalog=shelf)
    assert answer.headline.startswith("No: NVIDIA A100 SXM 80 GB has no FP8")
    assert answer.binding == 'Enough: precision="bf16".'


def test_engines_differ(shelf: Catalog) -> None:
    held = {
        name: show_fit("llama-3.1-8b", engine=name, catalog=shelf).results["cache_tokens"]
        for name in ("vllm", "sglang", "trtllm")
    }
    assert len(set(held.values())) == 3


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"engine": "vlm"}, UnknownNameError),
        ({"context": "0"}, ScenarioError),
        ({"precision": "fp9"}, UnknownNameError),
    ],
)
def test_what_cannot_be_read_is_refused(
    shelf: Catalog, options: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        show_fit("llama-3.1-8b", catalog=shelf, **options)

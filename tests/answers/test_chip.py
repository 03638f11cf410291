"""What `show chip` says, and its verdict on claims."""

import pytest

from datahall import show_chip
from datahall.answer import Quantity
from datahall.breakdown import false_nodes
from datahall.catalog import Catalog
from datahall.errors import ScenarioError, UnknownNameError
from datahall.report import FORMATS, render


def test_every_value_has_unit_kind_date_and_source(shelf: Catalog) -> None:
    answer = show_chip("h100-sxm", catalog=shelf)
    for table in answer.tables:
        for name, value, kind, date, source, _ in table.rows:
            assert isinstance(value, Quantity), name
            assert value.unit
            assert kind in {"datasheet", "measured", "derived", "estimate"}
            assert str(date)[:2] == "20"
            assert answer.citations()[int(source) - 1].date == date  # type: ignore[arg-type]


def test_every_fact_of_the_chip_is_shown(shelf: Catalog) -> None:
    chip = shelf.chip("h100-sxm")
    labels = {row[0] for table in show_chip("h100-sxm", catalog=shelf).tables for row in table.rows}
    assert {fact.label for fact in chip.facts.values()} <= labels


def test_every_chip_can_be_shown_in_every_format(shelf: Catalog) -> None:
    for chip in shelf.chips():
        answer = show_chip(chip.name, catalog=shelf)
        assert answer.headline.startswith(chip.title)
        assert answer.figure is None or false_nodes(answer.figure) == []
        for form in FORMATS:
            assert "nan" not in render(answer, form).lower().replace("nanometre", "")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("h100-sxm", {"the hardware has no FP6, FP4", "2:4 sparsity", "links are one way"}),
        ("h20", {"the hardware has no FP6, FP4", "links are one way"}),
        ("rubin", {"announced, not shipping", "links are one way"}),
        ("tpu-v2", {"the hardware has no FP16, FP8"}),
        ("tpu-8t", {"announced, not shipping"}),
    ],
)
def test_notes_say_what_there_is_to_note_and_no_more(shelf: Catalog, name: str, said: set[str]) -> None:
    notes = show_chip(name, catalog=shelf).notes
    every = ("the hardware has no", "2:4 sparsity", "links are one way", "announced, not shipping")
    assert all(any(words in note for note in notes) for words in said)
    assert sum(any(words in note for note in notes) for words in every) == len(said)


@pytest.mark.parametrize(
    ("name", "claim", "verdict", "words"),
    [
        ("h100-sxm", "peak.fp8=3958 TFLOP/s", "no", "2:4 sparsity"),
        ("h100-sxm", "peak.fp8=1979 TFLOP/s", "yes", "1,979 TFLOP/s"),
        ("a100-sxm-80gb", "peak.fp8=624 TFLOP/s", "no", "has no FP8"),
        ("h100-sxm", "memory=80 GB", "yes", "80 GB"),
        ("h100-sxm", "fits.l2=2 GB", "no", "times"),
    ],
)
def test_claims(shelf: Catalog, name: str, claim: str, verdict: str, words: str) -> None:
    answer = show_chip(name, claim=claim, catalog=shelf)
    assert (answer.kind, answer.verdict) == ("claim", verdict)
    assert words in answer.headline


@pytest.mark.parametrize("claim", ["peak.fp8", "peak.fp8=", "="])
def test_a_claim_needs_both_sides(shelf: Catalog, claim: str) -> None:
    with pytest.raises((ScenarioError, UnknownNameError), match=r"claim|peak"):
        show_chip("h100-sxm", claim=claim, catalog=shelf)


def test_what_is_known_of_a_chip_is_listed_in_order(shelf: Catalog) -> None:
    with pytest.raises(UnknownNameError) as caught:
        show_chip("h100-sxm", claim="bogus=80GB", catalog=shelf)
    names = caught.value.hint.partition(" has ")[2].split(", ")
    assert len(names) > 1
    assert names == sorted(names)

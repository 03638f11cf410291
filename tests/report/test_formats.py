"""Every format says the same thing, because it is drawn from the same answer."""

import csv
import io
import re

import msgspec
import pytest

from datahall.answer import Answer, Cell, Column, Quantity, Table
from datahall.errors import ScenarioError
from datahall.report import FORMATS, render
from datahall.report.cell import asked, shown

ESC = "\x1b"


@pytest.mark.parametrize("form", [*FORMATS, "explain"])
def test_every_format_holds_the_names(answer: Answer, form: str) -> None:
    text = render(answer, form)
    assert "step" in text or form == "csv"
    assert text.endswith("\n")


def test_an_unknown_format_names_the_known(answer: Answer) -> None:
    with pytest.raises(ScenarioError, match="did you mean html"):
        render(answer, "htm")


def test_table_is_in_the_order_of_an_answer(answer: Answer) -> None:
    text = render(answer, "table")
    places = [
        text.index(part)
        for part in ("A step takes", "Memory binds", "chips", "how it adds up", "sources", "next")
    ]
    assert places == sorted(places)
    assert "▸ two" in text
    assert "5.5 TB/s (5.5–10 TB/s)" in text
    assert "· one: a remark" in text


def test_nought_and_no_are_values_of_an_input(answer: Answer) -> None:
    """A seed of 0 acts as any other; only what is empty says nothing."""
    inputs: dict[str, Cell] = {"seed": 0, "zero": 0, "eager": False, "level": None, "name": ""}
    some = msgspec.structs.replace(answer, inputs=inputs, defaults=("seed", "name"))
    assert asked(some, by_default=True) == [("seed", "0")]
    assert asked(some) == [("zero", "0"), ("eager", "no")]
    assert "By default: seed = 0\n" in render(some, "explain")


def test_quiet_leaves_out_what_to_do_next(answer: Answer) -> None:
    assert "datahall show chip" not in render(answer, "table", quiet=True)


@pytest.mark.parametrize("form", ["table", "tree", "explain"])
def test_nothing_is_wider_than_the_screen(answer: Answer, form: str) -> None:
    assert max(map(len, render(answer, form, width=60).splitlines())) <= 60


def test_colour_only_when_asked(answer: Answer) -> None:
    assert ESC not in render(answer, "table")
    assert ESC in render(answer, "table", color=True)


def test_tree_has_value_formula_band_and_source(answer: Answer) -> None:
    text = render(answer, "tree")
    assert "step 3.346 ms [3.01 ms – 4.02 ms]  = weights / bandwidth" in text
    assert "datasheet bandwidth 6 TB/s  datasheet [1]" in text
    assert "[2] Somebody's benchmark, 2025-01, measured" in text


def test_every_leaf_of_the_tree_says_what_it_is(answer: Answer) -> None:
    for form in ("tree", "html"):
        text = " ".join(render(answer, form, width=200).split())
        for words in ("input", "assumption", "fitted on 41 points", "bf16 has two", "weights / bandwidth"):
            assert words in text, (form, words)


def test_explain_writes_inputs_as_a_person_would() -> None:
    inputs: dict[str, Cell] = {
        "host_sequence_s": 5e-6,
        "nic_bytes_per_s": 25e9,
        "rate_per_s": 4.0,
        "eager": True,
    }
    text = render(Answer(kind="example", headline="It does.", inputs=inputs), "explain")
    assert "host sequence = 5 µs, nic = 25 GB/s, rate = 4/s, eager = yes" in text


def test_explain_says_what_was_asked_and_what_the_band_rests_on(answer: Answer) -> None:
    text = render(answer, "explain")
    assert "batch sequences = 32" in text
    assert "41 points" in text


def test_csv_has_si_numbers_and_units_in_its_head(answer: Answer) -> None:
    rows = list(csv.DictReader(io.StringIO(render(answer, "csv"))))
    assert rows[0] == {
        "chip": "one",
        "memory_bytes": "80000000000.0",
        "value": "52428800.0",
        "value_unit": "bytes",
        "source": "1",
        "note": "a remark | with a bar",
    }
    assert rows[1]["memory_bytes"] == ""


def test_csv_without_a_table_has_the_results(answer: Answer) -> None:
    text = render(msgspec.structs.replace(answer, tables=()), "csv")
    assert text.splitlines() == ["step_s,level,unknown_bytes", "0.003346,measured,"]


def test_markdown_escapes_what_would_break_a_table(answer: Answer) -> None:
    text = render(answer, "md")
    assert "a remark \\| with a bar" in text
    assert "| **▸ two** |" in text


@pytest.mark.parametrize(
    ("cell", "unit", "text"),
    [
        (None, "bytes", "–"),
        (True, "", "yes"),
        (0.0, "s", "0 s"),
        (float("nan"), "bytes", "–"),
        (float("inf"), "bytes", "∞"),
        (131072, "count", "131,072"),
        (1e-9, "fraction", "< 0.01 %"),
        (Quantity(262144, "bytes"), "", "256 KiB"),
        (Quantity(33600, "usd", 22000, 33600), "", "$33,600 ($22,000–$33,600)"),
    ],
)
def test_cells(cell: Cell, unit: str, text: str) -> None:
    assert shown(cell, unit) == text


def test_a_row_of_the_wrong_length_is_our_bug() -> None:
    table = Table(title="x", columns=(Column("a"), Column("b")), rows=(("only one",),))
    with pytest.raises(ValueError, match="zip"):
        table.records()


@pytest.mark.parametrize("width", [40, 60, 100])
def test_a_number_is_never_cut_short(width: int) -> None:
    columns = (Column("a long head of a column"), *(Column(f"quantity {n}", "count") for n in range(6)))
    rows = (("some text that may be wrapped over lines", *(123_456_789 + n for n in range(6))),)
    table = Table(title="t", columns=columns, rows=rows, marked=0)
    text = render(Answer(kind="x", inputs={}, headline="x", tables=(table,)), width=width)
    assert all(f"123,456,79{n}" in text for n in range(5))


LAYOUTS = Table(
    title="layouts",
    columns=(
        Column("layout"), Column("step", "s"), Column("time", "s"), Column("free", "bytes"), Column("why it lost"),
    ),
    rows=(
        ("tp 2, dp 1024, zero 3 in groups of 256, mb 1", 3.492, 72.28 * 86400, 42e9, ""),
        ("cp 4, dp 512", 3.547, 73.41 * 86400, 30.49e9, "1.57 % slower: 151 ms more tensor-parallel exchange"),
    ),
    marked=1,
)  # fmt: skip


def lines_of(table: Table, width: int) -> list[str]:
    return render(
        Answer(kind="example", headline="It does.", tables=(table,)), "table", width=width
    ).splitlines()


@pytest.mark.parametrize("width", [64, 72, 80, 100, 200])
def test_a_table_keeps_to_the_screen_while_its_words_can_be_broken_apart(width: int) -> None:
    lines = lines_of(LAYOUTS, width)
    assert max(map(len, lines)) <= width
    text = " ".join(lines)
    for cell in ("3.492 s", "72.28 days", "30.49 GB", "tensor-parallel"):
        assert cell in text


def test_what_is_broken_in_a_marked_table_goes_on_under_its_own_text() -> None:
    lines = lines_of(LAYOUTS, 70)
    start = next(place for place, line in enumerate(lines) if line.startswith("  tp 2"))
    end = next(place for place, line in enumerate(lines) if line.startswith("▸ cp 4"))
    assert end > start + 1, "it is broken"
    assert all(line.startswith("  ") for line in lines[start:end])


def test_words_that_fit_are_not_broken() -> None:
    assert any("tp 2, dp 1024, zero 3 in groups of 256, mb 1" in line for line in lines_of(LAYOUTS, 160))


def test_markdown_says_of_every_leaf_what_it_rests_on(answer: Answer) -> None:
    text = render(answer, "md")
    numbers = {source: number for number, source in enumerate(answer.citations(), start=1)}
    assert answer.figure is not None
    for _, leaf in answer.figure.walk():
        (line,) = (one for one in text.splitlines() if one.lstrip().startswith(f"- {leaf.name}: "))
        assert all(f"[{numbers[source]}]" in line for source in leaf.sources)
        assert leaf.formula in line
        assert leaf.parts or line.endswith(")"), "an input, an assumption, or a source"


def test_markdown_holds_no_tag(answer: Answer) -> None:
    assert not re.search(r"(?<!\\)<[A-Za-z/!]", render(answer, "md"))


def test_explain_lists_what_was_asked_once() -> None:
    """Tables too; the kind of answer is said where the first input does not say it."""
    asked = {"collective": "all-reduce", "draft": "ngram", "num_draft": 3, "failure": "switches 3; nics 1"}
    for kind, began in (("collective", "Asked: collective = all-reduce, "), ("example", "Asked: example, ")):
        some = Answer(kind=kind, headline="It does.", inputs=asked, question={"failure": {"switches": "3"}})
        said = " ".join(render(some, "explain").partition("Asked: ")[1:][1].split())
        assert f"Asked: {said}".startswith(began)
        assert "draft = ngram, num draft = 3" in said
        assert said.count("failure") == 1

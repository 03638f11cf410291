"""The reference pages list what the program has, no more and no less."""

import re
from pathlib import Path

import pytest

import datahall as dh
from datahall import errors
from datahall.answer import Answer
from datahall.answers.term.term import terms

DOCS = Path(__file__).parents[2] / "docs"

# headings that need no definition; any other must be a term
PLAIN = {
    "active per token", "arithmetic", "bandwidth", "bias", "cache at 8,192", "cache in", "cache per token",
    "capacity", "chip", "chips", "date", "error", "free per chip", "hardware", "in band", "kind", "latency",
    "mean", "measured", "median", "memory", "model", "next is slower by", "note", "operator", "P90",
    "parameters", "part", "pass", "precision", "predicted", "quantity", "reason", "remark", "row", "rows",
    "runs", "sequences", "share", "source", "spread", "time", "value", "weights", "weights in",
    "weights per chip", "what counts", "where",
}  # fmt: skip
NAMED_IN_THE_DESIGN = (
    "TTFT", "TPOT", "ITL", "E2E", "goodput", "MFU", "HFU", "algbw", "busbw", "ETTR", "PUE",
)  # fmt: skip


def codes() -> dict[str, str]:
    """Every class of errors.py with a code of its own."""
    classes = [one for one in vars(errors).values() if isinstance(one, type)]
    named = [one for one in classes if issubclass(one, errors.DatahallError) and "code" in vars(one)]
    return {one.code: one.__name__ for one in named if one is not errors.DatahallError}


def test_every_error_code_has_a_section_and_an_example() -> None:
    text = (DOCS / "errors.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## `([\w-]+)`\n\n`(\w+)`", text, re.M))
    assert sections == codes()
    for code in sections:
        assert f"error[{code}]: " in text


def test_the_tree_in_errors_py_is_the_tree() -> None:
    drawn = re.findall(r"─ (\w+)", errors.__doc__ or "")
    assert sorted(drawn) == sorted(codes().values())


def test_every_term_stands_in_the_nomenclature_with_its_unit() -> None:
    text = (DOCS / "nomenclature.md").read_text(encoding="utf-8")
    for key, term in terms().items():
        assert re.search(rf"^### {re.escape(key)}( — |$)", text, re.M), key
        assert term.meaning in text
    assert len(re.findall(r"^Unit: ", text, re.M)) == len(terms())


@pytest.mark.parametrize("term", NAMED_IN_THE_DESIGN)
def test_the_terms_that_the_design_names_are_there(term: str) -> None:
    assert terms()[term].meaning


def answers() -> list[Answer]:
    return [
        dh.show_chip("h200"),
        dh.show_model("llama-3.1-8b"),
        dh.show_roofline("h200", model="llama-3.1-8b"),
        dh.show_hierarchy("h200"),
        dh.validate("kernels"),
    ]


def test_a_heading_is_plain_or_a_term() -> None:
    headings = {column.name for answer in answers() for table in answer.tables for column in table.columns}
    known = PLAIN | set(terms())
    assert headings <= known, headings - known


def test_the_levels_and_bounds_that_are_printed_are_explained() -> None:
    for level in ("measured", "family-calibrated", "datasheet only"):
        assert level in terms()["level"].meaning
    for bound in ("compute", "memory", "launch"):
        assert bound in terms()["bound"].meaning

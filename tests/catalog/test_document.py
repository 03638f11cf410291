"""A catalogue file with mistakes: all of them at once, each with its line and what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from datahall.catalog import Catalog, json_document
from datahall.catalog.document import line_index, parse, read
from datahall.errors import DocumentError

BAD = """\
[source.mine]
title = "my own bench"
date = "2026-10"

[chip.x1]
source = "mine"
title = "X1"
vendor = "Me"
family = "hoper"
memory = "80 GB/s"
memory_bandwith = "3 TB/s"
power_limit = "-700 W"
scale_up = "nvlnk-4"
clock = { value = "1.8 GHz", source = "yours" }
sms = 131.5

[chip.x1.peak]
bf16 = "989"
fp7 = "1 TFLOP/s"

[chip.x2]
title = "X2"
vendor = "Me"
family = "hopper"
memory = "80 GB"

[[chip.x2.level]]
name = "l2"
capacity = "50 TFLOP/s"
"""


@pytest.fixture
def problems(catalog: Catalog, tmp_path: Path) -> dict[str, str]:
    """The problems of BAD, as what stands at each line."""
    path = tmp_path / "bad.toml"
    path.write_text(BAD)
    with pytest.raises(DocumentError) as caught:
        catalog.check(path)
    assert all(problem.where.startswith(f"{path}:") for problem in caught.value.problems)
    lines: dict[str, str] = {}
    for problem in caught.value.problems:
        lines[problem.where.rpartition(":")[2]] = f"{problem.message}; {problem.hint}"
    return lines


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("9", 'did you mean "hopper"?'),
        ("10", "is not a unit of bytes"),
        ("11", 'unknown key "memory_bandwith"; did you mean "memory_bandwidth"?'),
        ("12", "must be above 0"),
        ("13", '"nvlnk-4" is not a link; did you mean "nvlink-4"?'),
        ("14", 'unknown source "yours"'),
        ("15", "must be a whole number"),
        ("18", 'has no unit; e.g. "989 TFLOP/s"'),
        ("19", 'unknown key "fp7"'),
        ("25", '"memory" has no source'),
        ("29", "is not a unit of bytes"),
    ],
)
def test_each_mistake_has_its_line_and_a_hint(problems: dict[str, str], line: str, message: str) -> None:
    assert message in problems[line]


def test_a_missing_key_is_named_with_an_example(catalog: Catalog, tmp_path: Path) -> None:
    path = tmp_path / "short.toml"
    path.write_text('[chip.y]\nsource = { title = "t", date = "2026" }\ntitle = "Y"\nvendor = "Me"\n')
    with pytest.raises(DocumentError) as caught:
        catalog.check(path)
    text = str(caught.value)
    assert f'{path}:1: "memory" is missing (memory); memory = "80 GB" or "80 GiB"' in text
    assert '"family" is missing' in text


def test_an_unknown_kind_of_table_is_a_problem(catalog: Catalog, tmp_path: Path) -> None:
    path = tmp_path / "kind.toml"
    path.write_text('[chips.y]\ntitle = "Y"\n')
    with pytest.raises(DocumentError, match=r'unknown table "chips"; did you mean "\[chip.NAME\]"'):
        catalog.check(path)


def test_a_file_without_entries_is_a_problem(catalog: Catalog, tmp_path: Path) -> None:
    path = tmp_path / "empty.toml"
    path.write_text("")
    with pytest.raises(DocumentError, match="holds no entries"):
        catalog.check(path)


def test_broken_toml_gives_the_line_of_the_break() -> None:
    with pytest.raises(DocumentError) as caught:
        parse('[chip.x]\ntitle = "X\n', "x.toml")
    assert caught.value.problems[0].where == "x.toml:2"


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="cannot be read"):
        read(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(DocumentError, match="not UTF-8"):
        read(tmp_path / "binary.toml")


def test_a_source_needs_title_date_and_a_known_kind(catalog: Catalog, tmp_path: Path) -> None:
    path = tmp_path / "sources.toml"
    path.write_text(
        '[source.a]\ntitle = "A"\n[source.b]\ndate = "2026"\n'
        '[source.c]\ntitle = "C"\ndate = "2026"\nkind = "guess"\n'
        '[link.l]\nsource = "a"\ntitle = "L"\nkind = "host"\nbandwidth = "1 GB/s"\n'
    )
    with pytest.raises(DocumentError) as caught:
        catalog.check(path)
    text = str(caught.value)
    for message in (
        "a source needs a date",
        "a source needs a title",
        'unknown kind "guess"',
        'unknown source "a"',
    ):
        assert message in text


@pytest.mark.parametrize(
    "value", ["2026-01-01", "true", "[1]", "inf", "nan", '"∞ GB"', "{ worth = 1 }", '""']
)
def test_a_value_of_the_wrong_sort_is_a_problem_and_no_crash(
    catalog: Catalog, tmp_path: Path, value: str
) -> None:
    path = tmp_path / "sort.toml"
    for key in ("memory", "year", "sms", "aliases", "peak", "level", "lacks"):
        path.write_text(f'[chip.y]\nsource = "pcie"\nvendor = "Me"\nfamily = "hopper"\n{key} = {value}\n')
        with pytest.raises(DocumentError) as caught:
            catalog.check(path)
        assert f"{path}:5" in {problem.where for problem in caught.value.problems}, key


def test_an_entry_that_is_not_a_table(catalog: Catalog, tmp_path: Path) -> None:
    path = tmp_path / "flat.toml"
    path.write_text("chip = 7\n")
    with pytest.raises(DocumentError, match=r'"chip" must hold tables; \[chip.NAME\]'):
        catalog.check(path)


def test_lines_of_items_in_arrays_of_tables() -> None:
    lines = line_index(
        "[[chip.x.level]]\nname = 'a'\n[[chip.x.level]]\nname = 'b'\n[chip.x.level.more]\nkey = 1\n"
    )
    assert lines["chip", "x", "level", "1", "name"] == 4
    assert lines["chip", "x", "level", "1", "more", "key"] == 6


def test_a_key_of_json_that_stands_twice_is_refused_with_its_line() -> None:
    from datahall.catalog import json_document

    text = '{"a": {"b": 1,\n "b": 2},\n "list": [{"c": 1}, {"c": 2}]}'
    with pytest.raises(DocumentError) as caught:
        json_document.parse(text, "q.json")
    assert [repr(problem) for problem in caught.value.problems] == [
        'q.json:2: "a.b" stands twice; say it once'
    ]


@pytest.mark.parametrize(
    ("text", "why"), [("a=" + "[" * 100_000, "nested too deeply"), ("a=" + "9" * 5000, "digits")]
)
def test_a_file_that_no_reader_can_hold_is_refused(text: str, why: str) -> None:
    with pytest.raises(DocumentError, match=why):
        parse(text, "deep.toml")
    with pytest.raises(DocumentError, match=why):
        json_document.parse('{"a":' + text.removeprefix("a=") + "}", "deep.json")


def test_the_mark_that_windows_editors_write_is_no_part_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "bom.toml"
    file.write_bytes(b"\xef\xbb\xbfversion = 1\n")
    assert read(file).content == {"version": 1}

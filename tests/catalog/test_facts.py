"""How one value of an entry is read: its quantity, its bounds, its range and its source."""

from __future__ import annotations

import pytest

from datahall.breakdown import Source
from datahall.catalog.document import parse
from datahall.catalog.fact import Entry, Fact, Field, read_fields

SHEET = Source("sheet", "2024-05", "datasheet")
FIELDS = (
    Field("memory", "memory_bytes", "memory"),
    Field("chips", "num_chips", "chips", form="count"),
    Field("spare", "num_spare", "spare chips", form="count", at_least=0),
    Field("year", "year", "year"),
    Field("power", "idle_w", "idle power", at_least=0.0),
    Field("kind", "kind", "kind", form="text", choices=("server", "rack")),
    Field("open", "open", "open", form="flag"),
    Field("names", "names", "names", form="texts"),
)


def read(text: str, fields: tuple[Field, ...] = FIELDS) -> tuple[Entry, list[str]]:
    document = parse(f"[thing.x]\n{text}\n", "test.toml")
    entry = Entry(document, ("thing", "x"), {"sheet": SHEET}, {}, {}, [])
    read_fields(entry, document.content["thing"]["x"], fields)  # type: ignore[index,call-overload]
    return entry, [repr(problem) for problem in entry.problems]


def test_a_quantity_takes_the_source_of_its_entry_or_its_own() -> None:
    entry, problems = read('source = "sheet"\nmemory = "80 GB"')
    assert problems == []
    assert entry.values == {"memory_bytes": 80e9}
    assert entry.facts["memory_bytes"] == Fact("memory", 80e9, "bytes", SHEET)
    own = '{ value = "80 GB", source = { title = "a talk", date = 2026, kind = "estimate" }, note = "about" }'
    entry, problems = read(f'source = "sheet"\nmemory = {own}')
    assert problems == []
    found = entry.facts["memory_bytes"]
    assert found.source == Source("a talk", "2026", "estimate")
    assert (found.note, found.low, found.high) == ("about", None, None)
    entry, _ = read('source = "sheet"\nmemory = { value = "80 GB", kind = "measured" }')
    assert entry.facts["memory_bytes"].source == Source("sheet", "2024-05", "measured")


@pytest.mark.parametrize(("low", "high"), [("70 GB", "90 GB"), ("80 GB", "80 GB")])
def test_a_range_rises_or_is_one_value(low: str, high: str) -> None:
    entry, problems = read(f'source = "sheet"\nmemory = {{ value = "80 GB", range = ["{low}", "{high}"] }}')
    assert problems == []
    found = entry.facts["memory_bytes"]
    assert (found.low, found.high) == (float(low.split()[0]) * 1e9, float(high.split()[0]) * 1e9)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('memory = { value = "80 GB", range = ["90 GB", "70 GB"] }', "runs from '90 GB' down to '70 GB'"),
        ('memory = { value = "80 GB", range = ["90 GB"] }', "a list of two quantities"),
        ('memory = { value = "80 GB", range = "90 GB" }', "a list of two quantities"),
        ('memory = { value = "80 GB", range = ["x", "90 GB"] }', '"memory"'),
        ('memory = { source = "sheet" }', "must be a quantity or"),
        ('memory = { value = "80 GB", colour = 1 }', "must be a quantity or"),
        ('memory = { value = "80 GB", kind = "rumour" }', 'unknown kind "rumour"'),
        ('memory = { value = "80 GB", source = "sheeet" }', 'unknown source "sheeet"'),
        ('memory = { value = "80 GB", source = { title = " ", date = 2026 } }', "a source needs a title"),
        ('memory = { value = "80 GB", source = { title = "x", date = "May" } }', "a source needs a date"),
        (
            'memory = { value = "80 GB", source = { title = "x", date = 2026, kind = "z" } }',
            'unknown kind "z"',
        ),
        ("memory = true", "must be a quantity, not true or false"),
        ('memory = ["1 GB"]', "must be a quantity, not a list"),
        ('memory = "0 GB"', "must be above 0"),
        ('memory = "-1 GB"', "must be above 0"),
        ('power = "-1 W"', "must be at least 0"),
        ("year = 2024.5", "must be a whole number"),
        ("chips = 0", "a whole number of at least 1"),
        ("chips = 1.5", "a whole number of at least 1"),
        ("chips = true", "a whole number of at least 1"),
        ("spare = -1", "a whole number of at least 0"),
        ('kind = "rck"', 'did you mean "rack"?'),
        ("kind = 1", "must be a text, not a number"),
        ("open = 1", "must be true or false, not a number"),
        ('names = "a"', "must be a list of texts"),
        ('names = ["a", 1]', "must be a list of texts"),
        ('memry = "1 GB"', 'did you mean "memory"?'),
    ],
)
def test_what_cannot_be_meant_is_said_at_its_line(line: str, said: str) -> None:
    _, problems = read(f'source = "sheet"\n{line}')
    (problem,) = problems
    assert said in problem
    assert "test.toml:3" in problem


def test_the_least_that_is_allowed_is_allowed() -> None:
    entry, problems = read(
        'source = "sheet"\npower = "0 W"\nchips = 1\nspare = 0\nkind = "rack"\nopen = false\nnames = []'
    )
    assert problems == []
    assert entry.values == {
        "idle_w": 0.0, "num_chips": 1, "num_spare": 0, "kind": "rack", "open": False, "names": (),
    }  # fmt: skip
    assert entry.facts["num_chips"] == Fact("chips", 1.0, "count", SHEET)


def test_a_number_without_a_source_is_a_problem_and_a_missing_key_is_named() -> None:
    assert '"memory" has no source' in read('memory = "80 GB"')[1][0]
    _, problems = read('source = "sheet"', (Field("memory", "memory_bytes", "memory", required=True),))
    assert '"memory" is missing (memory)' in problems[0]
    _, problems = read('source = "nothing"\nmemory = "80 GB"')
    assert len(problems) == 1


@pytest.mark.parametrize(
    ("num_bytes", "shown"),
    [(2**10, "1 KiB"), (256 * 2**10, "256 KiB"), (2**20, "1 MiB"), (50 * 2**20, "50 MiB"), (3 * 2**30, "3 GiB"),
     (80e9, "80 GB")],
)  # fmt: skip
def test_whole_powers_of_1024_are_shown_as_such(num_bytes: float, shown: str) -> None:
    assert Fact("x", float(num_bytes), "bytes", SHEET).shown == shown

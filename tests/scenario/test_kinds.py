"""Every kind of value reads what it writes, keeps its bounds, and says what is wrong."""

from __future__ import annotations

import re
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.catalog import Catalog
from datahall.errors import DatahallError, ScenarioError, UnknownNameError
from datahall.scenario.field import CONCEPTS, Field, fields
from datahall.scenario.kinds import (
    LARGEST_OF,
    Choice,
    Count,
    File,
    Flag,
    Kind,
    Listed,
    Mapped,
    Name,
    Numbers,
    Percentile,
    Quantity,
    Rate,
    Reading,
    Share,
    Stock,
    Text,
    exact,
)
from datahall.scenario.kinds.changes import axis
from datahall.scenario.kinds.formats import precision_kind
from datahall.scenario.kinds.lists import inline_table
from datahall.scenario.sections.lengths import LengthsKind
from datahall.scenario.sections.traffic import PresetName, Regions
from datahall.units import parse
from datahall.workload.traffic.lengths import Empirical, Fixed, Lognormal, Quantiles, Uniform

SHELF = Catalog(user=False)
FILE = Reading(catalog=SHELF)  # flags and files: a number needs its unit
BARE = Reading(catalog=SHELF, bare=True)  # Python: numbers are SI


def positive(unit: str) -> st.SearchStrategy[float]:
    return st.floats(1e-15, LARGEST_OF[unit])


LENGTHS = st.one_of(
    st.integers(1, 10**6).map(Fixed),
    st.tuples(st.integers(1, 100), st.integers(100, 10**5)).map(lambda pair: Uniform(*pair)),
    st.tuples(st.floats(1, 1e5), st.floats(0, 20)).map(lambda pair: Lognormal(*pair)),
    st.lists(st.integers(1, 10**5), min_size=1, max_size=5).map(lambda seen: Empirical(tuple(seen))),
    st.tuples(st.floats(0.01, 0.99), st.floats(1, 10), st.floats(10, 100)).map(
        lambda three: Quantiles(((0.0, 1.0), (three[0], three[1] + 1.0), (1.0, three[2] + 10.0)))
    ),
)
ROUND_TRIPS: list[tuple[Kind, st.SearchStrategy[object]]] = [
    (Count(""), st.integers(1, 2**40)),
    (Count("", unit="tokens", least=0), st.integers(0, 2**40)),
    *((Quantity("", unit=unit), positive(unit)) for unit in ("s", "bytes", "bytes_per_s", "ratio", "tokens")),
    (Rate("", endless="requests"), st.one_of(positive("count"), st.just(inf))),
    (Share(""), st.floats(0, 1)),
    (Percentile(""), st.floats(0.001, 0.9999)),
    (Choice("", options=("ring", "all-to-all")), st.sampled_from(["ring", "all-to-all"])),
    (Text(""), st.from_regex(r"[a-z0-9=.,]+", fullmatch=True)),
    (Flag(""), st.booleans()),
    (Name("", of="chip"), st.sampled_from(["h100-sxm", "l40s", "tpu-v6e"])),
    (Name("", of="model"), st.sampled_from(["llama-3.1-8b", "deepseek-v3"])),
    (precision_kind(""), st.sampled_from(["bf16", "fp8-kv8", "w4a16"])),
    (PresetName(""), st.sampled_from(["rag", "lmsys-chat"])),
    (Listed("", of=Count(""), repeats=True), st.lists(st.integers(1, 99), min_size=1).map(tuple)),
    (Listed("", of=Name("", of="chip")), st.permutations(["h100-sxm", "l40s", "a10g"]).map(tuple)),
    (Numbers(""), st.lists(st.integers(0, 500), unique=True, min_size=1).map(tuple)),
    (Numbers("", ranks=True), st.lists(st.integers(0, 500), unique=True, min_size=1).map(tuple)),
    (Mapped("", of=Quantity("", unit="s")), st.dictionaries(st.from_regex(r"[a-z]+", fullmatch=True), positive("s"))),
    (Stock(""), st.dictionaries(st.sampled_from(["h100-sxm", "l40s", "tpu-v6e"]), st.integers(1, 2**20), min_size=1)
     .map(lambda counts: tuple(counts.items()))),
    (Regions(""), st.floats(0, 1).map(lambda share: {"eu": share, "us": 1.0 - share})),
    (LengthsKind(""), LENGTHS),
]  # fmt: skip


@pytest.mark.parametrize("at", [FILE, BARE], ids=["file", "python"])
@pytest.mark.parametrize(("kind", "values"), ROUND_TRIPS, ids=[type(row[0]).__name__ for row in ROUND_TRIPS])
def test_what_is_written_is_read_back(kind: Kind, values: st.SearchStrategy[object], at: Reading) -> None:
    @settings(max_examples=60, deadline=None)
    @given(values)
    def holds(value: object) -> None:
        assert kind.read(kind.write(value), at) == value  # type: ignore[arg-type]

    holds()


@given(st.floats(1e-300, 1e300), st.sampled_from(["s", "bytes", "bytes_per_s", "fraction", "ratio"]))
def test_exact_is_read_back_to_the_last_bit(value: float, unit: str) -> None:
    assert parse(exact(value, unit), unit) == value  # type: ignore[arg-type]


def test_exact_is_as_short_as_a_person_would_write_it() -> None:
    assert [exact(*pair) for pair in ((0.05, "s"), (5e10, "bytes_per_s"), (0.95, "fraction"), (8e9, "bytes"))] == [
        "50ms", "50GB/s", "95%", "8GB",
    ]  # fmt: skip


@pytest.mark.parametrize("section", CONCEPTS)
def test_every_default_is_what_its_own_kind_reads_back(section: str) -> None:
    for field in fields(section):
        if field.default not in (None, "", (), {}):
            assert field.kind.read(field.kind.write(field.default), FILE) == field.default, field.path


@pytest.mark.parametrize("section", CONCEPTS)
def test_every_input_says_what_it_is_and_what_stands_for_it(section: str) -> None:
    for field in fields(section):
        assert len(field.kind.help) > 4, field.path
        assert field.kind.help.endswith((".", ")", "…")), field.path
        assert field.placeholder.strip(), field.path
        assert field.kind.schema(), field.path


PYTHON_TYPES = {
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "Sequence",
    "object": "Mapping",
}


def schema_types(schema: object) -> set[str]:
    """The types that a schema allows at its top."""
    found = schema if isinstance(schema, dict) else {}
    return {str(found.get("type", ""))} | {
        name for one in found.get("anyOf", ()) for name in schema_types(one)
    }


@pytest.mark.parametrize("section", CONCEPTS)
def test_the_type_of_a_keyword_has_all_that_its_kind_reads(section: str) -> None:
    """What JSON may say, Python may; and a value as it is written back."""
    for field in fields(section):
        told = field.kind.annotation()
        for name in schema_types(field.kind.schema()) & PYTHON_TYPES.keys():
            assert PYTHON_TYPES[name] in told or (name == "integer" and "float" in told), field.path
        if field.default not in (None, "", (), {}):
            written = field.kind.write(field.default)
            kind = {list: "Sequence", dict: "Mapping"}.get(type(written), type(written).__name__)
            assert kind in told or isinstance(written, str | int | float), field.path


def test_a_rule_names_inputs_and_tables_that_there_are() -> None:
    """What an input needs may stand in another section, or be one value of another input."""
    everywhere = {field.name: field for section in CONCEPTS for field in fields(section)}
    for section in CONCEPTS:
        names = {field.name: field for field in fields(section)}
        for field in fields(section):
            assert set(field.kind.against) <= set(names), field.path
            for need in field.kind.needs:
                name, _, value = need.partition("=")
                assert name in everywhere or CONCEPTS[name].inline, field.path
                if value:
                    assert names[name].kind.read(value, FILE) == value, field.path


def input_of(section: str, name: str) -> Field:
    return next(field for field in fields(section) if field.name == name)


WRONG: list[tuple[Kind, object, str]] = [
    (Count(""), 0, "too small; it must be at least 1"),
    (Count("", most=8), "9", "too large; it must be at most 8"),
    (Count(""), 1.5, "not a whole number"),
    (Count(""), True, "cannot be read"),
    (Count(""), [3], "cannot be read"),
    (Count(""), "many", '"many" is not a number'),
    (Count(""), "2^9999", "too large"),
    (Quantity("", unit="s"), 5, "5 has no unit"),
    (Quantity("", unit="s"), "5", "has no unit"),
    (Quantity("", unit="s"), "5 GB", "GB"),
    (Quantity("", unit="bytes"), 1e9, "has no unit"),
    (Quantity("", unit="s", above=True), "0 s", "must be above 0"),
    (Quantity("", unit="s"), "-1 s", "must be at least 0"),
    (Quantity("", unit="s"), None, "cannot be read"),
    (Rate(""), 0, "must be above 0"),
    (Rate(""), "inf", "all at once is no rate"),
    (Quantity("", unit="bytes"), "1e305 GB", "not a finite number"),
    (Quantity("", unit="ratio"), 1e7, "it must be at most 1,000,000"),
    (Rate(""), "fast", '"fast" is not a number'),
    (Share(""), "150 %", "150 % is out of bounds"),
    (Share(""), 1.5, "out of bounds"),
    (Share(""), -0.1, "out of bounds"),
    (Share("", below=True), 1, "out of bounds"),
    (Share("", above=True), 0, "out of bounds"),
    (Percentile(""), 100, "100 is out of bounds"),
    (Percentile(""), "0", "0 is out of bounds"),
    (Percentile(""), "P", "is not a quantity"),
    (Percentile(""), 1, "1 may be one in a hundred or all"),
    (Percentile(""), "1.0", "1.0 may be one in a hundred or all"),
    (Percentile(""), "P0.95", "P0.95 may be a percentile or a share"),
    (Choice("", options=("ring", "tree")), "rign", 'there is no "rign"'),
    (Choice("", options=("ring", "tree")), "", "nothing is said"),
    (Choice("", options=("ring", "tree")), 4, "there is no"),
    (Text(""), ["x"], "cannot be read"),
    (Flag(""), "yes", "cannot be read"),
    (Flag(""), 1, "cannot be read"),
    (Listed("", of=Count("")), "", "nothing is named"),
    (Listed("", of=Count("")), {"a": 1}, "is not a list"),
    (Quantity("", unit="ratio"), "1 2", '"1 2" is not a number'),
    (Numbers(""), "3-1", "is not a rising range"),
    (Numbers(""), "1,1", "twice"),
    (Numbers(""), "a-b", "cannot be read"),
    (Numbers(""), 1.5, "cannot be read"),
    (Numbers(""), "10000001", "is not a rising range"),  # beyond ten million
    (Numbers(""), "0-99999999999", "is not a rising range"),
    (Numbers(""), "0-8:0", "is not a rising range"),
    (File(""), "gone.csv", "gone.csv is not a file"),
    (File(""), "/tmp", "is a folder"),
    (Regions(""), {"eu": 0.5, "us": 0.4}, "add up to 0.9"),
    (LengthsKind(""), {"shape": "uniform", "low": 5}, "without high"),
    (LengthsKind(""), {"shape": "fixed", "tokens": 5, "high": 6}, 'no "high"'),
    (LengthsKind(""), {"tokens": 5}, "without a shape"),
    (LengthsKind(""), {"shape": "uniform", "low": 9, "high": 5}, "lengths of 9 to 5"),
]


@pytest.mark.parametrize(
    ("kind", "raw", "said"), WRONG, ids=[f"{type(row[0]).__name__} {row[1]!r}" for row in WRONG]
)
def test_what_cannot_be_is_refused_in_words(kind: Kind, raw: object, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        kind.read(raw, FILE)  # type: ignore[arg-type]
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("kind", "raw", "guess"),
    [
        (Name("", of="chip"), "h100-sx", "h100-sxm"),
        (Name("", of="model"), "lama-3.1-8b", "llama-3.1-8b"),
        (precision_kind(""), "fp7", "fp8"),
        (PresetName(""), "shargpt", "sharegpt"),
        (LengthsKind(""), {"shape": "lognorml"}, "lognormal"),
    ],
)
def test_an_unknown_name_gets_the_nearest(kind: Kind, raw: object, guess: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        kind.read(raw, FILE)  # type: ignore[arg-type]
    assert caught.value.nearest[0] == guess


def test_a_choice_that_is_nearly_right_gets_its_name() -> None:
    with pytest.raises(ScenarioError) as caught:
        Choice("", options=("round-robin", "session")).read("round", FILE)
    assert "did you mean round-robin?" in caught.value.hint


def test_a_share_that_is_a_percentage_is_asked_for_as_one() -> None:
    with pytest.raises(ScenarioError, match="out of bounds") as caught:
        Share("").read("95", FILE)
    assert 'did you mean "95 %"?' in caught.value.hint
    with pytest.raises(ScenarioError) as caught:  # as a percentage it would not do either
        Share("", below=True).read("100", FILE)
    assert "did you mean" not in caught.value.hint


@pytest.mark.parametrize("raw", [95, "95", "P95", "p95", "95 %", 0.95, "0.95"])
def test_a_percentile_is_read_as_people_write_it(raw: object) -> None:
    assert Percentile("").read(raw, FILE) == 0.95  # type: ignore[arg-type]


def test_python_may_give_numbers_in_si_and_everyone_text_with_a_unit() -> None:
    kind = Quantity("", unit="s")
    assert kind.read(0.5, BARE) == kind.read("500 ms", BARE) == kind.read("500 ms", FILE) == 0.5
    assert Quantity("", unit="ratio").read(2, FILE) == 2.0  # a ratio has no unit to forget
    assert kind.read(0, FILE) == 0.0  # nothing is nothing in every unit


@pytest.mark.parametrize(
    ("raw", "numbers"),
    [("0-3,7", (0, 1, 2, 3, 7)), ("0-16:8", (0, 8, 16)), ([1, "3-4"], (1, 3, 4)), (5, (5,)), ("", ())],
)
def test_numbers_have_ranges_and_strides(raw: object, numbers: tuple[int, ...]) -> None:
    assert Numbers("").read(raw, FILE) == numbers  # type: ignore[arg-type]


def test_the_largest_number_is_ten_million_and_it_may_be_given() -> None:
    assert Numbers("").read("9999999-10000000", FILE) == (9_999_999, 10_000_000)


def test_ranks_given_as_one_number_are_the_first_so_many() -> None:
    assert Numbers("", ranks=True).read("4", FILE) == Numbers("", ranks=True).read(4, FILE) == (0, 1, 2, 3)
    assert Numbers("", ranks=True).read([4], FILE) == (4,)


def test_lists_take_names_once_and_factors_as_often_as_they_come() -> None:
    assert Listed("", of=Name("", of="chip")).read("l40s, l40s,h100-sxm", FILE) == ("l40s", "h100-sxm")
    hourly = input_of("traffic", "hourly").kind
    assert hourly.read([1] * 23 + [3], FILE) == (1.0,) * 23 + (3.0,)


def test_names_are_the_catalogues_own() -> None:
    assert Name("", of="chip").read("H200", FILE) == "h200-sxm"


def test_errors_of_reading_are_those_a_user_can_put_right() -> None:
    for kind, raw, _ in WRONG:
        with pytest.raises(DatahallError) as caught:
            kind.read(raw, FILE)  # type: ignore[arg-type]
        assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("raw", "value"),
    [("true", True), (" TRUE ", True), ("false", False), ("False", False), (True, True), (False, False)],
)
def test_yes_and_no_as_a_person_writes_them(raw: str | bool, value: bool) -> None:
    assert Flag("").read(raw, FILE) is value


HINTS: list[tuple[Kind, object, str]] = [
    (Listed("", of=Quantity("", unit="ratio")), ["1 2"], "with commas between several: 1,2"),
    (Listed("", of=Count("")), "1 2 3", "with commas between several: 1,2,3"),
    (Share("", most=10.0), 40, 'did you mean "40 %"?'),
    (Quantity("", unit="ratio"), "much", "e.g. 1.5"),
]


@pytest.mark.parametrize(("kind", "raw", "said"), HINTS, ids=str)
def test_what_was_perhaps_meant_is_said(kind: Kind, raw: object, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        kind.read(raw, FILE)  # type: ignore[arg-type]
    assert said in caught.value.hint


def test_nobody_is_asked_whether_they_meant_more_than_all_of_it() -> None:
    with pytest.raises(ScenarioError) as caught:
        Share("", most=10.0).read(150, FILE)
    assert "did you mean" not in caught.value.hint


@pytest.mark.parametrize("wrong", ["[0", "a-b", "0-2 4-127", "1 2 3"])
@pytest.mark.parametrize("before", ["ranks", "chips"])
def test_numbers_that_are_offered_can_be_typed_in_a_table(wrong: str, before: str) -> None:
    """A flag gives a table whole, where a list of TOML would end at its first comma."""
    kind = Numbers("", ranks=before == "ranks")
    with pytest.raises(ScenarioError) as caught:
        kind.read(wrong, FILE)
    offers = re.findall(r'"([^"]+)"', caught.value.hint) or [caught.value.hint.rpartition(" ")[2]]
    assert "[" not in caught.value.hint
    for offer in offers:
        assert kind.read(inline_table(f"{before}={offer},start=1ms")[before], FILE)


def test_an_input_that_is_varied_needs_values() -> None:
    with pytest.raises(ScenarioError, match="tp has no values"):
        axis("tp", [])


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ("h200=1,h200-sxm=2", "h200-sxm is said twice"),
        ("h100-sxm=0", "h100-sxm: 0 is too small"),
        ("h100-sxm=1.5", "h100-sxm: 1.5 is not a whole number"),
        ("h100-sxm", '"h100-sxm" is not key=value'),
        ({}, "nothing is named"),
        ("h9000=4", "is not a chip in the catalogue"),
    ],
)
def test_how_many_chips_there_are_is_refused_with_the_kind_that_is_meant(raw: object, why: str) -> None:
    with pytest.raises(DatahallError, match=re.escape(why)):
        Stock("").read(raw, FILE)  # type: ignore[arg-type]


def test_a_kind_of_chip_is_kept_under_the_name_of_the_catalogue() -> None:
    assert Stock("").read({"H200": "2k", "h100": 8}, FILE) == (("h200-sxm", 2000), ("h100-sxm", 8))

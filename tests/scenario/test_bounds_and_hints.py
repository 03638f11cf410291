"""How far inputs go, at the bound and just past it, and what a hint says to somebody who went too far."""

from __future__ import annotations

import re

import numpy as np
import pytest

from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.catalog.document import parse
from datahall.errors import DatahallError, DocumentError, ScenarioError, option
from datahall.scenario.field import fields
from datahall.scenario.kinds import Raw, Reading
from datahall.scenario.kinds.numbers import Quantity
from datahall.scenario.read import read_document, read_names
from datahall.workload.traffic.conversation import Conversation, check_conversation
from datahall.workload.traffic.requests import CHUNK_ROWS
from datahall.workload.traffic.shapes import MOST_TURNS

SERVED: dict[str, Raw] = {"model": "llama-3.1-8b", "chip": "h200"}
WIRED: dict[str, Raw] = {"on": "fat-tree"}
AUTOSCALED: dict[str, Raw] = {**SERVED, "autoscale": "1..4"}
TALKING: dict[str, Raw] = {**SERVED, "traffic": "chat"}
# verb, what else is said, input, the last value that is taken, the first that is not
ENDS: list[tuple[str, dict[str, Raw], str, str, str]] = [
    ("simulate fabric", WIRED, "nic", "1 PB/s", "1.001 PB/s"),
    (
        "simulate fabric",
        WIRED,
        "nic",
        "400 Tb/s",
        "400 Pb/s",
    ),  # a thousand times a port's rate, and a million times
    ("simulate serve", AUTOSCALED, "interval", "100 ms", "99 ms"),
    ("simulate serve", TALKING, "turns", "1000", "1001"),
    ("simulate serve", TALKING, "turns", "1", "0.99"),
]


@pytest.mark.parametrize(("verb", "also", "name", "taken", "refused"), ENDS)
def test_the_bound_is_taken_and_what_lies_past_it_refused(
    shelf: Catalog, verb: str, also: dict[str, Raw], name: str, taken: str, refused: str
) -> None:
    read_names(form_of(verb), {**also, name: taken}, shelf)
    with pytest.raises(ScenarioError, match=r"too (large|small)") as caught:
        read_names(form_of(verb), {**also, name: refused}, shelf)
    assert caught.value.field == name


@pytest.mark.parametrize(
    ("table", "row", "key"),
    [
        ("job", {}, "start"),
        ("job", {"repeat": 2}, "pause"),
        ("job", {}, "overhead"),
        ("background", {}, "start"),
        ("background", {"pattern": "random"}, "until"),
        ("stall", {}, "start"),
    ],
)
def test_messages_are_sent_within_a_day(shelf: Catalog, table: str, row: dict[str, Raw], key: str) -> None:
    form = form_of("simulate fabric")
    read_names(form, {**WIRED, table: {**row, key: "86400 s"}}, shelf)
    with pytest.raises(ScenarioError, match=f"{key}: 86401 s is too large"):
        read_names(form, {**WIRED, table: {**row, key: "86401 s"}}, shelf)


@pytest.mark.parametrize("table", ["job", "background", "stall"])
def test_a_clock_that_starts_as_late_as_it_may_still_tells_tenths_of_a_nanosecond(table: str) -> None:
    (start,) = (field.kind for field in fields(table) if field.key == "start")
    assert isinstance(start, Quantity)
    assert np.spacing(start.largest) < 1e-10


def test_a_session_longer_than_a_chunk_never_comes() -> None:
    """Turns are geometric: (1 − 1/mean)^rows of all sessions are longer than so many rows."""
    longer_fraction = (1.0 - 1.0 / MOST_TURNS) ** CHUNK_ROWS
    assert longer_fraction * 1e12 < 1e-9  # of a million million sessions
    check_conversation(Conversation(num_turns=MOST_TURNS))
    with pytest.raises(ScenarioError, match="turns") as caught:
        check_conversation(Conversation(num_turns=MOST_TURNS + 1))
    assert caught.value.field == "turns"


@pytest.mark.parametrize(
    ("kind", "outside"),
    [
        (Quantity("", unit="s", most=1e-3), "2 ms"),  # a usual time, 50 ms, is too long
        (Quantity("", unit="s", least=1.0), "0.9 s"),  # and too short
        (Quantity("", unit="bytes", most=1e6), "2 MB"),
        (Quantity("", unit="bytes_per_s", most=1e9), "2 GB/s"),
        (Quantity("", unit="s", least=0.05, most=0.05), "51 ms"),
    ],
)
@pytest.mark.parametrize("raw", ["outside", "soon", True, 7])
def test_what_a_hint_proposes_would_be_taken(shelf: Catalog, kind: Quantity, outside: str, raw: Raw) -> None:
    at = Reading(catalog=shelf)
    with pytest.raises(DatahallError) as caught:
        kind.read(outside if raw == "outside" else raw, at)
    proposed = re.search(r"e\.g\. (.*)", caught.value.hint)
    assert proposed is not None, caught.value.hint
    for text in proposed[1].split(" or "):
        assert kind.least <= kind.read(text.strip('"'), at) <= kind.largest


def hints(error: DatahallError) -> list[str]:
    return [one.hint for one in error.problems] if isinstance(error, DocumentError) else [error.hint]


def test_a_key_near_one_of_its_table_that_stands_elsewhere_too_is_told_both(shelf: Catalog) -> None:
    form = form_of("show collective")  # a failure has `nics`, and `nic` is an input of [fabric]
    text = 'version = 1\n[[failure]]\nnic = "1"\n'
    with pytest.raises(DatahallError) as caught:
        read_document(form, parse(text, "s.toml"), shelf)
    assert "did you mean nics? it stands in [fabric]" in hints(caught.value)
    with pytest.raises(DatahallError) as caught:
        read_names(form, {"failure": {"nic": "1"}}, shelf)
    assert f"did you mean nics or {option('nic')}?" in hints(caught.value)


def test_a_key_of_another_section_that_is_near_nothing_is_only_sent_there(shelf: Catalog) -> None:
    text = 'version = 1\n[[failure]]\ncollective = "all-reduce"\n'
    with pytest.raises(DatahallError) as caught:
        read_document(form_of("show collective"), parse(text, "s.toml"), shelf)
    assert "it stands in [collective]" in hints(caught.value)

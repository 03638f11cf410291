"""Each note of a simulated service stands where there is something to note, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from datahall.answers.ask import ask
from datahall.answers.reply import answer_of
from datahall.catalog import Catalog
from datahall.errors import ScenarioError

Said = dict[str, Any]

PLAIN: Said = {"model": "llama-3.1-8b", "rate": 4, "requests": 300, "isl": 300, "osl": 40}
EU_AND_US: Said = {
    "region": [{"name": "eu", "to": {"us": "40 ms"}}, {"name": "us"}], "in_region": "us", "from_region": "us",
}  # fmt: skip
# what is asked beside it, and the beginnings or middles of the notes that this brings
NOTED: dict[str, tuple[Said, set[str]]] = {
    "plain": ({}, set()),
    "users": ({"rate": None, "users": 20}, {"users begin one after the other"}),
    "many adapters": (
        {"adapters": 64, "resident_adapters": 8}, {"adapters of rank", "wait for theirs to be fetched"},
    ),
    "few adapters": ({"adapters": 8}, {"adapters of rank"}),
    "one system prompt": ({"system": 200}, {"were found in caches"}),
    "cut short": ({"until": "20 s"}, {"had not ended when the run did"}),
    "too large": ({"isl": 600, "osl": 400, "spread": 0.8, "kv_blocks": 100}, {"larger than any cache"}),
    "too long": ({"isl": 6000, "spread": 0.8, "max_context": 8192}, {"were cut to fit the context"}),
    "regions": (EU_AND_US, {"distances are one way"}),
    "cached": ({"cache": {"process": 100}}, {"stands in front of the router", "counts as 0 s per token"}),
    "scaled": ({"autoscale": "1..3"}, set()),
    "scaled in part": (
        {"autoscale": "1..3", "disaggregated": "prefill=1,decode=1"}, {"only the first pool is scaled"},
    ),
    "a day": ({"swing": "50%"}, {"less than a day"}),
    "late": (
        {"replicas": 2, "failure": {"replicas": "0", "start": "10 d"}}, {"failure does nothing here: the last request"},
    ),
    "one of two late": (
        {"replicas": 2, "failure": [{"replicas": "0", "start": "1 s"}, {"replicas": "1", "start": "10 d"}]},
        {"a failure at 10 days does nothing here: the last request"},
    ),
    "lost": ({"replicas": 2, "failure": {"replicas": "0", "start": "1 s"}}, set()),
    "as long as is needed": ({"requests": None}, {"which is long beside the time that one takes"}),
}  # fmt: skip
EVERY = {words for _, said in NOTED.values() for words in said}


@pytest.mark.parametrize("case", NOTED)
def test_a_note_stands_where_there_is_something_to_note(case: str, shelf: Catalog) -> None:
    more, expected = NOTED[case]
    asked = {name: value for name, value in {**PLAIN, **more}.items() if value is not None}
    notes = answer_of(ask("simulate serve", asked, catalog=shelf)).notes
    assert {words for words in EVERY if any(words in note for note in notes)} == expected, notes


PLANNED: Said = {"model": "llama-3.1-8b", "rate": 4, "isl": 300, "osl": 40, "chips": ["h100-sxm"]}
READS, UNMEASURED = "reads one answer after the other", "no measured kernels of"
BESIDE_PLANS: dict[str, tuple[Said, set[str]]] = {
    "a rate": ({}, set()),
    "users": ({"rate": None, "users": 20}, {READS}),
    "a chip that nobody measured": ({"chips": ["gaudi3"]}, {UNMEASURED}),
    "one of two": ({"chips": ["h100-sxm", "gaudi3"]}, {UNMEASURED}),
}


@pytest.mark.parametrize("case", BESIDE_PLANS)
def test_what_is_said_beside_a_plan_has_a_reason(case: str, shelf: Catalog) -> None:
    more, expected = BESIDE_PLANS[case]
    asked = {name: value for name, value in {**PLANNED, **more}.items() if value is not None}
    notes = answer_of(ask("plan serve", asked, catalog=shelf)).notes
    assert {words for words in (READS, UNMEASURED) if any(words in note for note in notes)} == expected
    assert not any("h100-sxm" in note for note in notes if UNMEASURED in note)


def test_a_fabric_that_joins_all_replicas_is_not_taken_for_one_of_them(shelf: Catalog) -> None:
    plain, wired = (
        answer_of(ask("plan serve", {**PLANNED, **more}, catalog=shelf)).next_commands
        for more in ({}, {"on": "fat-tree"})
    )
    assert ["show techniques" in one for one in plain] == [False, True, False, False]
    assert not any("show techniques" in one for one in wired)


def test_a_fit_says_what_adapters_it_holds(shelf: Catalog) -> None:
    plain, adapted = (
        answer_of(ask("show fit", {"model": "llama-3.1-8b", **more}, catalog=shelf)).notes
        for more in ({}, {"adapters": 16, "resident_adapters": 8})
    )
    assert not any("adapters of rank" in note for note in plain)
    assert any(note.startswith("8 of 16 adapters of rank") for note in adapted)


CLOSED, WAITS = "closed form beside it", "how many wait how long"
WATCHED = {"queue and load over time", "caches over time"}
SCALING = ("autoscaling", "replicas over time", "load over time")
TABLED: dict[str, tuple[Said, set[str]]] = {
    "plain": ({}, {CLOSED}),
    "regions": (EU_AND_US, {"regions"}),
    "cached": ({"cache": {"process": 100}}, {"cache of answers"}),
    "scaled": ({"autoscale": "1..3"}, set(SCALING)),
    "failed": ({"replicas": 2, "failure": "replicas=0,start=1s,duration=2s"}, {"failures"}),
}


@pytest.mark.parametrize("case", TABLED)
def test_a_table_or_chart_stands_where_it_has_something_to_show(case: str, shelf: Catalog) -> None:
    """The closed form stands beside a run that it can tell of: replicas that are all there, and nothing before them."""
    more, expected = TABLED[case]
    answer = answer_of(ask("simulate serve", {**PLAIN, **more}, catalog=shelf))
    shown = {one.title for one in (*answer.tables, *answer.charts)}
    assert shown == {"latency", "replicas", WAITS} | WATCHED | expected


@pytest.mark.parametrize("duration", ["10 s", "1 h", "1000 d"])
def test_a_repair_after_the_last_request_is_no_time_of_the_run(duration: str, shelf: Catalog) -> None:
    """The rate that is served and the time it took are those of the requests, whenever the replica is back."""

    def run(row: Said) -> dict[str, Any]:
        asked = PLAIN | {"requests": 60, "replicas": 2, "failure": row}
        return answer_of(ask("simulate serve", asked, catalog=shelf)).results

    never = run({"replicas": "0", "start": "14 s"})  # near the end, so that a repair after 10 s comes past it
    back = run({"replicas": "0", "start": "14 s", "duration": duration})
    assert back["duration_s"] == never["duration_s"]
    assert back["sustained_per_s"] == never["sustained_per_s"]


RATED: Said = {"model": "llama-3.1-8b", "rate": 4, "isl": 300, "osl": 40}
FADES, SLOWS = "it fades as the batch grows", "slows every batch"


@pytest.mark.parametrize("acceptance", ["1 %", "20 %", "60 %", "100 %"])
@pytest.mark.parametrize("draft", ["ngram", "llama-3.2-1b"])
def test_speculation_is_spoken_of_as_its_table_shows(draft: str, acceptance: str, shelf: Catalog) -> None:
    asked = RATED | {"draft": draft, "acceptance": acceptance}
    answer = answer_of(ask("show techniques", asked, catalog=shelf))
    (table,) = (one for one in answer.tables if one.title == "as the batch grows")
    gains = [float(str(gain)) for _, gain, _ in table.rows]
    notes = "; ".join(answer.notes)
    assert (SLOWS in notes) == (max(gains) <= 1)
    assert (FADES in notes) == (max(gains) > 1 and gains[-1] < gains[0])


def test_how_much_is_drafted_and_kept_acts_where_nobody_says_what_drafts(shelf: Catalog) -> None:
    """The table drafts from the prompt unless something else is said; a plan that follows it drafts only if asked."""

    def table(**said: object) -> object:
        answer = answer_of(ask("show techniques", RATED | said, catalog=shelf))
        (command,) = answer.next_commands
        assert ("--acceptance" in command) == ("--draft" in command)
        assert "--num-draft" not in command or "--draft" in command
        return next(one for one in answer.tables if one.title == "as the batch grows").rows

    kept = {"acceptance": "90 %", "num_draft": 5}
    assert table(**kept) == table(**kept, draft="ngram")
    assert table(acceptance="90 %") != table() != table(num_draft=5)


def test_a_verb_that_drafts_only_if_asked_refuses_how_much_is_kept(shelf: Catalog) -> None:
    with pytest.raises(ScenarioError, match="it needs"):
        ask("plan serve", PLANNED | {"acceptance": "90 %"}, catalog=shelf)

"""The one rule for inputs that say nothing where they stand, and for pairs of which one would win."""

from __future__ import annotations

from pathlib import Path

import pytest

from datahall.answers.ask import form_of
from datahall.answers.verbs import VERBS
from datahall.catalog import Catalog
from datahall.errors import DatahallError, DocumentError, ScenarioError, option
from datahall.scenario.field import CONCEPTS, Field, fields
from datahall.scenario.form import Form
from datahall.scenario.form import form as make_form
from datahall.scenario.kinds import LARGEST, Raw, whole_or_float
from datahall.scenario.read import read_names
from datahall.scenario.rules import broken_rules
from datahall.scenario.scenario import Scenario
from datahall.scenario.takes import Takes

SHELF = Catalog(user=False)
EU: Raw = {"name": "eu"}
TRACE = Path(__file__).parents[1] / "answers" / "files" / "requests.jsonl"


def asked(shelf: Catalog, **given: Raw) -> Scenario:
    return read_names(form_of("simulate serve"), {"model": "llama-3.1-8b", **given}, shelf)


MET: list[dict[str, Raw]] = [
    {"rate": 1, "spill": 3, "region": EU},  # a table of another section
    {"rate": 1, "burstiness": 2},  # an input of the same section
    {"users": 2, "think": "1 s"},  # the first of several
    {"rate": 1, "turns": 2, "think": "1 s"},  # or the second
    {"rate": 1, "routing": "prefix-affinity", "affinity_load": 2},  # a value
    {"rate": 1, "autoscale": "1..2", "cold_start": "3 s"},
    {"rate": 1, "oversubscription": "2:1", "on": "fat-tree"},
    {"rate": 1, "cache": {"process": 5, "process_ttl": "1 s"}},  # inside a table
]
UNMET: list[tuple[dict[str, Raw], str]] = [
    ({"rate": 1, "spill": 3}, "spill does nothing here: it needs region"),
    ({"users": 2, "burstiness": 2}, "burstiness does nothing here: it needs rate"),
    ({"rate": 1, "think": "1 s"}, "think does nothing here: it needs users or turns or traffic"),
    ({"rate": 1, "affinity_load": 2}, 'affinity_load does nothing here: it needs routing="prefix-affinity"'),
    ({"rate": 1, "routing": "session", "affinity_load": 2}, "affinity_load does nothing here: it needs"),
    ({"rate": 1, "cold_start": "3 s"}, "cold_start does nothing here: it needs autoscale"),
    ({"rate": 1, "oversubscription": "2:1"}, "oversubscription does nothing here: it needs on"),
    (
        {"rate": 1, "cache": {"process_ttl": "1 s"}},
        "process_ttl of cache does nothing here: it needs process",
    ),
    (
        {"rate": 1, "cache": {"process": 0, "process_ttl": "1 s", "shared": 5}},
        "it needs process other than 0",
    ),
    ({"rate": 1, "swing": "0 %", "peak": "1 h"}, "peak does nothing here: it needs swing other than 0%"),
]


@pytest.mark.parametrize("given", MET, ids=str)
def test_what_an_input_needs_may_stand_anywhere(given: dict[str, Raw], shelf: Catalog) -> None:
    asked(shelf, **given)


@pytest.mark.parametrize(("given", "said"), UNMET, ids=[str(row[0]) for row in UNMET])
def test_an_input_that_says_nothing_is_refused(given: dict[str, Raw], said: str, shelf: Catalog) -> None:
    with pytest.raises(ScenarioError, match=said) as caught:
        asked(shelf, **given)
    assert "or leave it out" in caught.value.hint


def test_a_pair_is_refused_once_and_what_it_needs_is_not_asked_for(shelf: Catalog) -> None:
    with pytest.raises(ScenarioError, match="rate and users do not go together"):
        asked(shelf, rate=1, users=2)
    with pytest.raises(
        DocumentError
    ) as caught:  # two that a trace excludes; neither is told that it lacks something
        asked(shelf, trace=str(TRACE), turns=2, think="1 s")
    assert all("do not go together" in problem.message for problem in caught.value.problems)
    assert len(caught.value.problems) == 2


def test_a_value_that_cannot_be_read_is_not_called_missing(shelf: Catalog) -> None:
    """Whether a routing that is misspelled would have been the one that is needed, nobody knows."""
    with pytest.raises(ScenarioError, match="there is no"):
        asked(shelf, rate=1, routing="prefix-afinity", affinity_load=2)


@pytest.mark.parametrize(
    ("value", "kind"), [(3.0, int), (3.5, float), (float(LARGEST), float), (LARGEST - 1.0, int), (-2.0, int)]
)
def test_a_number_is_written_without_a_useless_fraction(value: float, kind: type) -> None:
    assert isinstance(whole_or_float(value), kind)
    assert whole_or_float(value) == value


NEEDED = [
    (section, field, other)
    for section in CONCEPTS
    for field in fields(section)
    for other in fields(section)
    if field.kind.needs == (other.name,) and other.default not in (None, "", ())
]


@pytest.mark.parametrize(("section", "field", "other"), NEEDED, ids=lambda one: getattr(one, "path", one))
def test_what_an_input_needs_says_something(section: str, field: Field, other: Field) -> None:
    """At the value that it has anyway, what it needs is as if it had not been said."""
    value = field.default if field.default is not None else 1e9
    values = {field.key: value, other.key: other.default}
    whole = Form(verb="", sections={section: fields(section)})
    given = frozenset({field.name, other.name})
    broken = dict(broken_rules(whole, CONCEPTS[section], {**values}, values, given))  # type: ignore[arg-type]
    assert f"it needs {option(other.name) if not CONCEPTS[section].inline else other.name} other than" in str(
        broken[field.key].message
    )


SEEDED = (("seed", ("jitter", "slow_hosts")),)


def slowed(*needs: tuple[str, tuple[str, ...]]) -> Form:
    """A verb with a seed and with what makes chips slow by chance."""
    return make_form("simulate run", (Takes("", only=("seed",), needs=needs), Takes("stragglers")))


def test_what_an_input_of_many_verbs_needs_each_of_them_says() -> None:
    assert read_names(slowed(), {"seed": 3}, SHELF).root.seed == 3, "others draw beside jitter"
    with pytest.raises(ScenarioError, match="seed does nothing here: it needs jitter or slow_hosts"):
        read_names(slowed(*SEEDED), {"seed": 3}, SHELF)
    for beside in ({"jitter": "2 %"}, {"slow_hosts": "10 %"}):
        assert read_names(slowed(*SEEDED), {"seed": 3, **beside}, SHELF).root.seed == 3


@pytest.mark.parametrize("needs", [("seed", ("trace",)), ("rate", ("jitter",))])
def test_a_verb_speaks_of_what_it_takes(needs: tuple[str, tuple[str, ...]]) -> None:
    with pytest.raises(AssertionError, match=r"trace|rate"):
        slowed(needs)


@pytest.mark.parametrize("text", ["optimizer,optimizer:nvme", "activations:host,optimizer,activations:nvme"])
@pytest.mark.parametrize("verb", ["plan train", "simulate train", "show memory"])
def test_a_thing_is_not_moved_to_two_places(verb: str, text: str) -> None:
    tokens = {"tokens": "1T"} if verb == "plan train" else {}
    with pytest.raises(ScenarioError, match="do not go together") as caught:
        read_names(form_of(verb), {"model": "llama-3.1-8b", "offload": text, **tokens}, SHELF)
    assert caught.value.field == "offload"


@pytest.mark.parametrize("verb", [verb.name for verb in VERBS if verb.takes])
def test_a_key_that_a_table_has_not_is_told_what_the_border_can_say(verb: str) -> None:
    """Of flags there are no sections: a key of another is its flag, one that is misspelt the key that is near."""
    form = form_of(verb)
    for table in form.tables:
        keys = form.of(table.name)
        wrong = {key[:-1]: key for key in keys if len(key) > 3 and key[:-1] not in keys}
        elsewhere = {"sides", "sort_trace", "context_exchange", "seq", "users"} & {*form.fields} - {*keys}
        for key in (*wrong, *elsewhere):
            with pytest.raises(DatahallError) as caught:
                read_names(form, {table.name: {key: "1"}}, SHELF)
            error = caught.value
            told = [error.hint] if not isinstance(error, DocumentError) else [p.hint for p in error.problems]
            assert not any("[" in hint for hint in told), (key, told)
            meant = wrong[key] if key in wrong else option(key)
            assert any("did you mean" in hint and meant in hint for hint in told), (key, told)

"""No input is swallowed: each that a verb takes changes the answer, is refused, or is said to do nothing here."""

from __future__ import annotations

import re
from typing import Any

import pytest

from datahall.answer import Answer
from datahall.answers.ask import ask, form_of
from datahall.answers.reply import answer_of
from datahall.catalog import Catalog
from datahall.errors import DatahallError, DocumentError

Said = dict[str, Any]
ALL_REDUCE = {"collective": "all-reduce", "size": "1GB"}
JOB = {"collective": "all-reduce", "size": "1MB"}
EXCHANGE = {"collective": "all-to-all", "size": "1MB", "ranks": "0-63:4"}
ASKED: dict[str, dict[str, Said]] = {
    "show fabric": {
        "a fat tree": {"topologies": "fat-tree", "chips": 256},
        "a torus": {"topologies": "torus", "chips": 64},
        "one server": {"topologies": "hgx", "chips": 8},
        "one rack": {"topologies": "nvl72", "chips": 72},
        "several": {"topologies": "torus,fat-tree,dragonfly", "chips": 64},
        "one that was built": {"topologies": "meta-24k-roce"},
        "a full mesh": {"topologies": "full-mesh", "chips": 8},
    },
    "show collective": {
        "no topology": {**ALL_REDUCE, "chips": 64},
        "one domain": {**ALL_REDUCE, "chips": 8},
        "a barrier": {"collective": "barrier", "chips": 64},
        "neighbours": {"collective": "send-recv", "size": "1MB", "chips": 64},
        "a fat tree": {**ALL_REDUCE, "chips": 512, "on": "fat-tree"},
        "one server": {**ALL_REDUCE, "chips": 8, "on": "hgx"},
        "a torus": {**ALL_REDUCE, "chips": 64, "on": "torus"},
        "experts": {"collective": "all-to-all", "experts": 64, "tokens": 4096, "topk": 2, "hidden": 512},
    },
    "simulate fabric": {
        "an exchange": {"on": "fat-tree", "chips": 64, "radix": 32, "job": EXCHANGE},
        "a job of one server": {"on": "fat-tree", "chips": 64, "job": {**JOB, "ranks": "0-7"}},
        "sprayed": {"on": "fat-tree", "chips": 64, "job": JOB, "routing": "spray"},
        "lossy": {"on": "fat-tree", "chips": 64, "job": JOB, "transport": "lossy"},
        "alike": {"on": "clos", "chips": 64, "bandwidth": "400 Gb/s", "job": JOB},
        "background": {"on": "tree", "chips": 64, "job": JOB, "background": {"pattern": "random"}},
        "a stall": {
            "on": "fat-tree",
            "chips": 64,
            "job": {**JOB, "ranks": "32-63"},
            "background": {"pattern": "permutation", "size": "9MB"},
            "stall": {"chip": 1, "duration": "1ms"},
        },
    },
}
VALUES: dict[str, Said] = {
    "show fabric": {
        "chips": 128, "chip": "b200", "switch": "tomahawk-5", "server": "dgx-b200", "radix": 32, "tiers": 3,
        "oversubscription": "2:1", "sides": "2x4x8", "domain": 4, "nic": "100 Gb/s",
    },
    "show collective": {
        "size": "3MB", "experts": 32, "tokens": 512, "topk": 1, "hidden": 128, "precision": "fp8",
        "algorithm": "ring", "version": "2.10", "level": "datasheet", "all": True, "on": "tree", "chips": 32,
        "chip": "b200", "domain": 4, "nic": "100 Gb/s", "oversubscription": "2:1", "sides": "2x4x8",
        "failure.chips": "3", "failure.nics": "3", "failure.links": "3", "failure.switches": "3",
        "failure.domains": "0", "failure.cubes": "0", "failure.left": "50 %",
    },
    "simulate fabric": {
        "seed": 3, "on": "dragonfly", "chips": 128, "chip": "b200", "domain": 4, "nic": "100 Gb/s",
        "oversubscription": "2:1", "switch": "tomahawk-5", "server": "dgx-b200", "radix": 16, "tiers": 3,
        "sides": "4x4x4", "bandwidth": "200 Gb/s", "latency": "2us", "scale_up": "100 GB/s",
        "scale_up_latency": "2us", "routing": "deterministic", "paths": 4, "transport": "roce", "lanes": 3,
        "loss": "1 %", "selective_repeat": True, "watchdog": "100us", "detail": "full", "check_with": "closed-form",
        "job.collective": "all-gather", "job.algorithm": "halving-doubling", "job.ranks": "0-15",
        "job.size": "2MB", "job.repeat": 2, "job.start": "1ms", "job.pause": "1ms", "job.overhead": "1us",
        "job.name": "mine", "background.name": "noise", "background.pattern": "incast", "background.hosts": "0-7",
        "background.target": 5, "background.size": "2MB", "background.load": "50 %", "background.start": "1ms",
        "background.until": "2ms", "failure.chips": "3", "failure.nics": "3", "failure.links": "3",
        "failure.switches": "3", "failure.domains": "0", "failure.cubes": "0", "failure.left": "50 %",
        "failure.start": "1us", "failure.duration": "5us", "failure.reroute": "2us", "stall.chip": 3,
        "stall.start": "1us", "stall.duration": "10us",
    },
}  # fmt: skip
# what stands in a table besides
ROWS = {"failure": {"nics": "0"}, "background": {}, "stall": {"duration": "1ms"}, "job": JOB}
SAME = {"name": "what the answer is called, not what it says"}
ALIKE = {"stall.chip": "in step any chip holds up the others as long; a stall at all is what acts"}
CASES = [(verb, case, name) for verb, values in VALUES.items() for case in ASKED[verb] for name in values]


def shown(answer: Answer) -> object:
    return answer.results, answer.tables, answer.figure, answer.headline


def asked(verb: str, said: Said, shelf: Catalog) -> Answer:
    return answer_of(ask(verb, said, catalog=shelf))


def answer_or_error(verb: str, said: Said, shelf: Catalog) -> Answer | DatahallError:
    try:
        return asked(verb, said, shelf)
    except DatahallError as error:
        return error


def blamed(error: DatahallError) -> str:
    """What an error says is at fault: the input that it names, or the places of its problems."""
    problems = error.problems if isinstance(error, DocumentError) else ()
    return " ".join((error.field, error.message, *(f"{one.where} {one.message}" for one in problems)))


def with_more(said: Said, name: str, value: Any) -> tuple[Said, Said]:
    """The question without and with an input; a key of a table stands beside what the table cannot do without."""
    table, _, key = name.partition(".")
    if name == "on":  # it is idle where the chips are joined so without any
        return {one: other for one, other in said.items() if one != name}, {**said, name: value}
    if not key:
        return said, {**said, name: value}
    row = dict(said.get(table, ROWS[table]))
    parts = {"chips", "nics", "links", "switches", "domains", "cubes"}
    if table == "failure" and key in parts:
        return said, {**said, table: {key: value, "left": "50 %"}}
    return {**said, table: row}, {**said, table: {**row, key: value}}


@pytest.mark.parametrize("verb", ASKED)
def test_the_walk_meets_every_input(verb: str) -> None:
    form = form_of(verb)
    keys = {f"{concept.name}.{key}" for concept in form.tables for key in form.of(concept.name)}
    assert {*form.fields, *keys} - {*VALUES[verb], *SAME} <= {*form.required, "collective", "topologies"}


@pytest.mark.parametrize(("verb", "case", "name"), CASES)
def test_an_input_acts_or_is_said_not_to(verb: str, case: str, name: str, shelf: Catalog) -> None:
    without, beside = with_more(ASKED[verb][case], name, VALUES[verb][name])
    word = name.partition(".")[0]
    found, before = answer_or_error(verb, beside, shelf), answer_or_error(verb, without, shelf)
    if isinstance(found, DatahallError):
        assert word in blamed(found), f"something else is refused than {name}: {found}"
        return
    if isinstance(before, DatahallError):
        return  # not to be had without it, so that it acts
    said = [note for note in found.notes if re.search(rf"\b{word}\b.* do(es)? nothing here", note)]
    if name in ALIKE and shown(found) == shown(before):
        before = asked(verb, {key: value for key, value in without.items() if key != word}, shelf)
    if shown(found) == shown(before):
        assert said, f"{name} of {verb} changes nothing and nobody says so"
    elif said and verb == "show collective":
        assert found.results == before.results, f"{name} of {verb} is said to change nothing, and does"


def test_beside_others_each_says_what_it_has_no_use_for(shelf: Catalog) -> None:
    """Alone it is refused; beside one that uses it, it is said of those that do not; of none, it is refused again."""
    both = asked("show fabric", {"topologies": "meta-24k-roce,fat-tree", "chips": 64, "radix": 32}, shelf)
    said = [note for note in both.notes if "does nothing here" in note]
    assert [note.partition(" does")[0] for note in said] == ["meta-24k-roce: radix", "meta-24k-roce: chips"]
    for topologies in ("torus", "torus,mesh"):
        with pytest.raises(DatahallError, match="does nothing here") as caught:
            asked("show fabric", {"topologies": topologies, "chips": 64, "radix": 32}, shelf)
        assert caught.value.field == "radix"

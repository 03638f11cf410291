"""A fix that an error of the serving verbs suggests can be made: the question with it is not refused again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

import datahall as dh
from datahall.answers.ask import ask, form_of
from datahall.catalog import Catalog
from datahall.errors import DatahallError, InfeasibleError

SHELF = Catalog(user=False)
Said = dict[str, Any]
RUN: Said = {"model": "llama-3.1-8b", "rate": 4, "requests": 20, "isl": 300, "osl": 20}
PLAN: Said = {
    "model": "llama-3.1-8b",
    "rate": 4,
    "chips": ["h100-sxm"],
    "precision": ["bf16"],
    "isl": 300,
    "osl": 20,
}
SHOW: Said = {"model": "llama-3.1-8b", "rate": 4, "isl": 300, "osl": 20}
FIT: Said = {"model": "llama-3.1-8b"}
WRONG: tuple[tuple[str, Said], ...] = (
    ("simulate serve", RUN | {"wait": "10 ms"}),
    ("simulate serve", RUN | {"wait": "10 ms", "engine": "dynamic", "batching": "static"}),
    ("simulate serve", RUN | {"handoff": "1 GB/s"}),
    ("simulate serve", RUN | {"handoff": "1 GB/s", "chip": "h200-sxm"}),
    ("simulate serve", RUN | {"rate": None}),
    ("simulate serve", RUN | {"rate": "inf", "duration": "5 s", "requests": None}),
    ("simulate serve", RUN | {"rate": None, "users": 4, "duration": "5 s", "requests": None}),
    ("simulate serve", RUN | {"tp": 3}),
    ("simulate serve", RUN | {"pp": 99}),
    ("simulate serve", RUN | {"ep": 2}),
    ("simulate serve", RUN | {"draft": "mtp"}),
    ("simulate serve", RUN | {"adapters": 2, "resident_adapters": 5}),
    ("simulate serve", RUN | {"routing_skew": 1.0}),
    ("simulate serve", RUN | {"cache": {"questions": 5}}),
    ("simulate serve", RUN | {"rate": None, "users": 4, "cache": {"process": 5}}),
    ("simulate serve", RUN | {"disaggregated": "often"}),
    ("simulate serve", RUN | {"disaggregated": "prefill=2"}),
    ("simulate serve", RUN | {"autoscale": "often"}),
    ("simulate serve", RUN | {"autoscale": "1..2", "replicas": 4}),
    ("simulate serve", RUN | {"in_region": "eu", "from_region": "eu"}),
    ("simulate serve", RUN | {"on": "torus"}),
    ("simulate serve", RUN | {"chip": "trainium1", "preemption": "swap"}),
    ("simulate serve", RUN | {"chip": "trainium1", "host_cache": "10 GB"}),
    ("simulate serve", RUN | {"chip": "trainium1", "drive_cache": "10 GB", "drive_rate": "5 GB/s"}),
    ("simulate serve", RUN | {"chip": "trainium1", "adapters": 8, "resident_adapters": 2}),
    ("simulate serve", RUN | {"chip": "l4", "disaggregated": "prefill=1,decode=1"}),
    ("simulate serve", RUN | {"percentile": 1}),
    ("simulate serve", RUN | {"burstiness": 2, "rate": None, "users": 4}),
    ("simulate serve", RUN | {"chip": "l40s", "model": "llama-3.1-70b", "tp": 1}),
    ("simulate serve", RUN | {"disaggregated": "prefill=1xa10,decode=1xh200"}),
    ("plan serve", PLAN | {"rate": None}),
    ("plan serve", PLAN | {"rate": "inf"}),
    ("plan serve", PLAN | {"engine": "static"}),
    ("plan serve", PLAN | {"engine": "dynamic"}),
    ("plan serve", PLAN | {"tp": 3}),
    ("plan serve", PLAN | {"ttft": "1 ms"}),
    ("plan serve", PLAN | {"oversubscription": "4:1"}),
    ("plan serve", PLAN | {"on": "nvl72"}),
    ("plan serve", PLAN | {"model": "llama-3.1-405b", "chips": ["l40s"]}),
    ("plan serve", PLAN | {"precision": ["fp8"], "chips": ["a100-sxm-80gb"]}),
    ("show techniques", SHOW | {"engine": "static"}),
    ("show techniques", SHOW | {"rate": "inf"}),
    ("show techniques", SHOW | {"rate": 1e9}),
    ("show techniques", SHOW | {"rate": 1000}),
    ("show techniques", SHOW | {"ttft": "1 ms"}),
    ("show techniques", SHOW | {"tpot": "1 ms", "tp": 8}),
    ("show techniques", SHOW | {"model": "llama-3.1-405b", "chip": "l4"}),
    ("show techniques", SHOW | {"model": "llama-3.1-70b", "tp": 1, "chip": "l40s"}),
    ("show fit", FIT | {"tp": 3}),
)  # fmt: skip
MARK = re.compile(r"⟦(\w+)(?:=([^⟧]*))?⟧")


def refused(verb: str, said: Said) -> DatahallError | None:
    try:
        ask(verb, {name: value for name, value in said.items() if value is not None}, catalog=SHELF)
    except DatahallError as error:
        return error
    return None


def fixes(error: DatahallError) -> Iterator[Said]:
    """What the hint says, one way after the other: values to give together, or the input at fault to leave out."""
    hint = error.marked[1] if error.marked else error.hint
    for way in re.split(r",? or (?=⟦|leave)|; |, (?=⟦)", hint):
        if "leave" in way:
            named = MARK.findall(way)
            yield dict.fromkeys([name for name, _ in named] or [error.field])
        elif found := {name: value for name, value in MARK.findall(way) if value}:
            yield found


@pytest.mark.parametrize(("verb", "said"), WRONG, ids=str)
def test_a_fix_that_is_suggested_can_be_made(verb: str, said: Said) -> None:
    error = refused(verb, said)
    assert error is not None
    taken = {*form_of(verb).fields, *(table.name for table in form_of(verb).tables)}
    for name, _ in MARK.findall("".join(error.marked or ())):
        assert name in taken, f"{verb} takes no {name}"
    for fix in fixes(error):
        again = refused(verb, said | fix)
        other = isinstance(again, InfeasibleError) and again.marked != error.marked
        assert again is None or other, (error, fix, again)


def test_chips_without_a_network_are_offered_one_and_no_number_where_names_are_said() -> None:
    """`plan serve --chips` takes names: at most eight of them is no help."""
    with pytest.raises(DatahallError, match="no network joins the domains") as refused:
        dh.plan_serve("llama-3.1-405b", chips=["l4"], rate=5)
    assert "chips" not in refused.value.hint
    assert "nic" in refused.value.hint


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        ("show techniques", {"model": "llama-3.1-405b", "chip": "l4", "rate": 1}),
        ("simulate serve", {"model": "llama-3.1-405b", "chip": "l4", "rate": 1, "tp": 8}),
        ("simulate serve", {"model": "llama-3.1-405b", "chip": "rtx-4090", "rate": 1, "tp": 2}),
    ],
)
def test_a_wider_group_is_offered_only_where_something_joins_its_chips(verb: str, said: Said) -> None:
    alone, wired = refused(verb, said), refused(verb, said | {"nic": "400 Gb/s"})
    assert alone is not None
    assert wired is not None
    assert "tp=" not in str(alone)
    assert "tp=64" in str(wired)
    assert "no network joins" in str(refused(verb, said | {"tp": 64}))


def test_memory_alone_asks_for_no_network() -> None:
    """`show fit` looks at what chips hold, and holds what it offers."""
    assert "tp=64" in dh.show_fit("llama-3.1-405b", chip="l4", tp=8).binding
    assert dh.show_fit("llama-3.1-405b", chip="l4", tp=64).verdict == "yes"

"""What an answer about a run says of itself: how often what interrupts it, which tiers acted, and what follows."""

from __future__ import annotations

import json
import re
import shlex

import pytest
from tests.results import number

import datahall as dh
from datahall.cli.main import run as typed
from datahall.errors import ScenarioError
from datahall.units import DAY_S, parse

LLAMA_3_PER_NODE_DAY = 419 / (
    54 * 2048
)  # 419 unexpected interruptions in 54 days on 16,384 GPUs, eight a node
SMALL = {"model": "llama-3.1-8b", "chip": "h100-sxm", "days": 20, "runs": 20}


def rates_note(**more: object) -> str:
    (note,) = (one for one in dh.simulate_run(**SMALL, **more).notes if one.startswith("failures "))  # type: ignore[arg-type]
    return note


def seconds(text: str) -> float:
    return parse(text.removesuffix("."), "s")


def test_whose_rates_are_named_has_its_own_rate_and_what_comes_on_top_another() -> None:
    """One node of eight fails once in 264 days as Llama 3's did; and is taken away every 6 h."""
    note = rates_note(chips=8, preempted_every="6h")
    counted, whole = re.fullmatch(
        r".*: one every (.*); with preemptions an interruption every (.*)", note
    ).groups()  # type: ignore[union-attr]
    assert seconds(counted) == pytest.approx(DAY_S / LLAMA_3_PER_NODE_DAY, rel=0.01)
    assert seconds(whole) == pytest.approx(DAY_S / (4.0 + LLAMA_3_PER_NODE_DAY), rel=0.01)


def test_where_nothing_else_interrupts_it_one_rate_is_said() -> None:
    assert re.fullmatch(r"failures as often as in .*: one every [^;]*", rates_note(chips=64))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"job_failures": "5/day"}, "with failures of the job whatever its size an"),
        ({"shock_rate": "0.1/day", "shock_nodes": 4}, "with failures of a shared part of 4 nodes an"),
        ({"node_age": "1d"}, "more of them while nodes are new"),
    ],
)
def test_what_comes_on_top_is_named(more: dict[str, object], words: str) -> None:
    assert words in rates_note(chips=64, **more)


@pytest.mark.parametrize(
    "more",
    [
        {"preempted_every": "20d"},
        {"node_age": "1d", "job_failures": "0.1/day"},
        {"elastic": "linear"},
        {"hot_spares": True, "spares": 2},
        {"spares": 2},
        {"restart": "20min", "failure_rate": "0.05/node-day"},
    ],
)
def test_the_checkpoints_that_follow_a_run_are_those_of_the_run(
    more: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    found = dh.simulate_run(**{**SMALL, "chips": 256, "tier": "remote", **more})  # type: ignore[arg-type]
    (command,) = (one for one in found.next_commands if one.startswith("datahall show checkpoint"))
    assert typed([*shlex.split(command)[1:], "--tier", "remote", "--json", "--quiet"]) == 0
    there = json.loads(capsys.readouterr().out)["results"]
    assert there["remote_interval_s"] == pytest.approx(number(found, "remote_interval_s"), rel=1e-9)
    assert there["mttf_s"] == pytest.approx(number(found, "mttf_s"), rel=1e-9)
    assert there["restart_s"] == pytest.approx(number(found, "restart_s"), rel=1e-9)


@pytest.mark.parametrize("more", [{}, {"interval": "1h"}, {"storage": "1GB/s"}, {"tier": "local,remote"}])
@pytest.mark.parametrize("chips", [64, 32768])
def test_the_tiers_that_are_listed_are_those_that_acted_or_were_named(
    chips: int, more: dict[str, object]
) -> None:
    found = dh.show_checkpoint("llama-3.1-70b", chips=chips, chip="h100-sxm", **more)  # type: ignore[arg-type]
    assert found.inputs["tiers"] == ("local, remote" if "tier" in more else found.results["plan"])


def test_a_time_for_copies_in_memory_acts_beside_one_and_is_said_to_do_nothing_without() -> None:
    idle = "copy does nothing here: the run keeps no copy in memory"
    alone, without = (dh.simulate_run(**SMALL, chips=256, **more) for more in ({"copy": "10s"}, {}))  # type: ignore[arg-type]
    assert idle in alone.notes
    assert alone.results == without.results
    beside, usual = (
        dh.simulate_run(**SMALL, chips=256, tier=["peer", "remote"], **more)  # type: ignore[arg-type]
        for more in ({"copy": "1s"}, {})
    )
    assert idle not in beside.notes
    assert beside.results != usual.results
    assert idle not in without.notes


def test_spares_without_a_hot_one_say_nothing_of_checkpoints() -> None:
    with pytest.raises(ScenarioError, match="spares"):
        dh.show_checkpoint("llama-3.1-8b", chips=64, spares=2)
    few, many = (dh.show_checkpoint("llama-3.1-8b", chips=4096, hot_spares=True, spares=n) for n in (1, 50))
    assert number(few, "restart_s") > number(many, "restart_s")


def test_what_checkpoints_leave_is_not_called_what_a_run_is_left_with() -> None:
    """Planned stops are in the one and not in the other: 47 of 8.6 min in 54 days are 0.5 % of the time."""
    asked = {"model": "llama-3.1-8b", "chips": 64, "chip": "h100-sxm", "tier": "remote"}
    copies, plan = dh.show_checkpoint(**asked), dh.plan_train(**asked, tokens="1T")  # type: ignore[arg-type]
    assert "ettr_fraction" not in copies.results
    between = number(copies, "checkpoint_ettr_fraction") - number(plan, "ettr_fraction")
    assert 0.003 < between < 0.007


LAID = {"model": "llama-3.1-8b", "chips": 64, "chip": "h100-sxm", "tp": 8, "zero": 1}


@pytest.mark.parametrize("ask", [dh.show_checkpoint, lambda **said: dh.simulate_run(**said, days=3, runs=5)])
def test_memory_to_leave_free_is_of_a_layout_that_is_looked_for(ask) -> None:  # type: ignore[no-untyped-def]
    """A layout that is said leaves free what it does."""
    said, plain = ask(**LAID, memory_margin="10%"), ask(**LAID)
    assert said.results == plain.results
    assert any("memory_margin does nothing here" in note for note in said.notes)
    searched = ask(model="llama-3.1-8b", chips=64, memory_margin="10%")
    assert not any("memory_margin does nothing" in note for note in searched.notes)


def test_how_long_planned_stops_take_does_nothing_where_none_is_planned() -> None:
    def said(every: str) -> bool:
        notes = dh.simulate_run(**SMALL, chips=64, planned_every=every, planned="1h").notes
        return any("planned does nothing here: no stop is planned" in note for note in notes)

    assert said("0s")
    assert not said("5d")


def test_an_interval_longer_than_planned_stops_switches_copies_off() -> None:
    """It is no longer the usual one, and less is kept: it does something, and what is said."""
    asked = {**SMALL, "chips": 512, "failure_rate": 0.05, "planned_every": "5d"}
    long, usual = dh.simulate_run(**asked, interval="10d"), dh.simulate_run(**asked)  # type: ignore[arg-type]
    assert number(long, "ettr_fraction") < number(usual, "ettr_fraction") - 0.01
    assert not any("does nothing" in note for note in long.notes)
    assert any("planned stops come every 5 days, and each writes a copy" in note for note in long.notes)
    assert not any("each writes a copy" in note for note in usual.notes)

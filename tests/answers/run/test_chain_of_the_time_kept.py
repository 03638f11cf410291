"""The chain behind the time that a run keeps: each formula that is printed makes its value of the parts beside it."""

from __future__ import annotations

from math import exp
from typing import Any

import pytest
from tests.results import number

import datahall as dh
from datahall.breakdown import Breakdown, false_nodes

MTTF = ("time between failures", "between failures that fall back to it")
LETTERS = {"R": ("restart and drain",), "M": MTTF, "t": ("interval",), "d": ("blocking",)}
PYTHON = {"−": "-", "[": "(", "]": ")", "e^": "exp", "M (": "M * (", "/M": "/ M"}
SLOW: dict[str, Any] = {"model": "llama-3.1-405b", "chips": 16_384, "storage": "1GB/s", "tier": "remote"}
SMALL: dict[str, Any] = {"model": "llama-3.1-70b", "chips": 64}


def worked_out(figure: Breakdown) -> float | None:
    """The formula that stands beside a figure, from the parts under it; None where none stands there."""
    text, _, letters = figure.note.partition(": ")
    if not letters or not any(sign in text for sign in "^/[") or ".py" in text:
        return None
    values = {
        letter: next(part.value for part in figure.parts if part.name in names)
        for letter, names in LETTERS.items()
        if letter in text
    }
    for sign, code in PYTHON.items():
        text = text.replace(sign, code)
    return float(eval(text, {"exp": exp}, values))


def formulas(figure: Breakdown) -> list[str]:
    """Those that stand in a chain, each worked out."""
    assert false_nodes(figure) == []
    found = []
    for _, one in figure.walk():
        if (value := worked_out(one)) is not None:
            assert one.value == pytest.approx(value, rel=1e-9), one.note
            found.append(one.note.partition(":")[0])
    return found


@pytest.mark.parametrize(
    "asked",
    [
        SLOW,
        SMALL,
        {**SMALL, "tier": ["peer", "remote"], "storage": "3MB/s"},
        {**SMALL, "tier": ["host", "peer", "remote"], "restart": "20min"},
        {**SMALL, "elastic": "linear"},
        {**SMALL, "interval": "2h"},
    ],
)
def test_a_plan_of_checkpoints_is_what_its_formulas_make(asked: dict[str, Any]) -> None:
    """Its factors have formulas, each true of its parts, and their product is what the answer says is kept."""
    answer = dh.show_checkpoint(**asked)
    figure = answer.figure
    assert figure is not None
    assert figure.value == pytest.approx(number(answer, "checkpoint_ettr_fraction"), rel=1e-9)
    assert len(formulas(figure)) == len(figure.parts), "one for each factor"


def test_a_slow_drain_is_among_the_parts() -> None:
    """By a calculator: e^(−(10 min + 94.7 min + 94.7 min) / 3.093 h) × 94.7 / (185.6 (e^(94.78/185.6) − 1))."""
    figure = dh.show_checkpoint(**SLOW).figure
    assert figure is not None
    assert figure.value == pytest.approx(
        exp(-199.4 / 185.58) * 94.7 / (185.58 * (exp(94.78 / 185.58) - 1)), rel=2e-3
    )
    assert figure.at("left by restarts", "restart and drain", "drain").value == pytest.approx(
        94.7 * 60, rel=1e-3
    )


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"planned_every": "0s"},
        {"planned_every": "0s", "elastic": "linear"},
        {"planned_every": "0s", "preempted_every": "100h", "notice": "1h"},
        {"spares": 1, "hot_spares": True},
        {"sdc": "checksum", "slow_hosts": "2%", "slow_by": "10%"},
        {"tier": ["peer", "remote"]},
    ],
)
def test_the_closed_form_of_a_run_is_what_its_parts_make(more: dict[str, Any]) -> None:
    """Restarts, copies, planned stops and all else: their product is what the answer says."""
    answer = dh.simulate_run(**SMALL, days=20, runs=20, **more)
    assert answer.figure is not None
    closed = answer.figure.at("closed form")
    assert closed.operation == "product"
    assert closed.value == pytest.approx(number(answer, "closed_form_fraction"), rel=1e-9)
    formulas(closed)


def test_a_run_without_an_end_or_planned_stops_has_a_formula_for_each_factor() -> None:
    closed = dh.simulate_run(**SMALL, tokens="1T", runs=20, planned_every="0s").figure
    assert closed is not None
    assert len(formulas(closed.at("closed form"))) >= 2


def test_a_mean_restart_is_called_one() -> None:
    """Of 985 restarts in 1,000 each takes 10 min, and the others 3.82 days: 88.6 min in the mean, not 3.82 days."""
    answer = dh.show_checkpoint(**SMALL, tier=["peer", "remote"], storage="3MB/s")
    assert (
        "restarts of 88.6 min in the mean (10 min after 98.6 %, 3.82 days after 1.43 % of" in answer.binding
    )
    assert pytest.approx(88.6, rel=0.01) == 10 * 0.986 + 3.82 * 1440 * 0.0143
    alone = dh.show_checkpoint(**SMALL, tier="remote").binding
    assert "in the mean" not in alone

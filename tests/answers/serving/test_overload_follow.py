"""What is offered after an overload can be asked, and is another question."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

import datahall as dh
from datahall.answers.ask import ask
from datahall.answers.reply import answer_of
from datahall.catalog import Catalog
from datahall.cli.main import main

SHELF = Catalog(user=False)
SMALL: dict[str, Any] = {"model": "llama-3.1-8b", "chip": "l40s", "isl": 1000}
OVERLOADED: dict[str, dict[str, Any]] = {
    "little more than one holds": SMALL | {"rate": 6, "requests": 1000},
    "far more": SMALL | {"rate": 60, "requests": 1000},
    "prompts and answers apart": {
        "model": "llama-3.1-8b", "disaggregated": "prefill=1xl40s,decode=1xl40s", "rate": 12, "isl": 3000,
        "requests": 400,
    },
    "as many as may be started": SMALL | {"rate": 30, "requests": 1500, "autoscale": "1..2:64", "cold_start": "10 s"},
}  # fmt: skip


@pytest.mark.parametrize("case", OVERLOADED)
def test_an_overload_is_followed_by_a_question_that_can_be_asked(
    case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer_of(ask("simulate serve", OVERLOADED[case], catalog=SHELF))
    assert found.headline.startswith("Overloaded")
    command = found.next_commands[0]
    assert command.startswith("datahall simulate serve")
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(command)[1:])
    printed = capsys.readouterr()
    assert ended.value.code in (0, 1), printed.err
    assert command not in " ".join(printed.out.split())  # it does not lead to itself


def test_one_replica_that_is_too_few_is_followed_by_more() -> None:
    found = dh.simulate_serve(**SMALL, rate=6, requests=1000, catalog=SHELF)
    assert "--replicas 2" in found.next_commands[0]

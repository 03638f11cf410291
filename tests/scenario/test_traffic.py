"""What a person says of traffic, and the requests that it means."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.errors import DatahallError, ScenarioError
from datahall.scenario.kinds import Raw
from datahall.scenario.read import read_names
from datahall.scenario.requests import requests_of
from datahall.scenario.sections.traffic import Traffic
from datahall.workload.traffic.arrivals import Arrivals
from datahall.workload.traffic.conversation import Think
from datahall.workload.traffic.presets import preset
from datahall.workload.traffic.shapes import Fixed, Lognormal
from datahall.workload.traffic.traffic import Traffic as Requests
from datahall.workload.traffic.traffic import describe, generate
from datahall.workload.traffic.users import Users

Asked = Callable[..., Requests]


@pytest.fixture(scope="module")
def asked(shelf: Catalog) -> Asked:
    """The requests that flags mean."""

    def requests(max_context: int = 0, **given: Raw) -> Requests:
        scenario = read_names(form_of("simulate serve"), {"model": "llama-3.1-8b", **given}, shelf)
        return requests_of(scenario.one(Traffic), max_context)

    return requests


def test_flags_become_traffic(asked: Asked) -> None:
    traffic = asked(isl=1000, osl=250, rate=80)
    assert (traffic.prompt, traffic.output) == (Fixed(1000), Fixed(250))
    assert traffic.arrivals == Arrivals(rate_per_s=80.0)
    users = asked(isl="4k", osl=250, users="10k", think="30s")
    assert users.users == Users(num=10_000, think=Think(mean_s=30.0))
    assert asked(isl=1000, rate=80, spread=0.5).prompt == Lognormal(1000.0, 0.5)
    assert asked(isl=1000, rate=80, spread=0).prompt == Fixed(1000)
    assert asked(rate=80, burstiness=0).arrivals == Arrivals(rate_per_s=80.0, gaps="constant")
    assert asked(rate="inf").arrivals == Arrivals(rate_per_s=np.inf, gaps="at-once")
    assert asked(rate="80/s").arrivals == asked(rate="80 requests/s").arrivals == asked(rate=80).arrivals
    assert asked(rate=80, duration="10min").duration_s == 600.0


def test_a_run_is_long_enough_for_its_users(asked: Asked) -> None:
    assert asked(rate=80).num_requests == 10_000
    assert asked(users=10_000, think="10s").num_requests == 50_000
    assert asked(rate=80, requests=50).num_requests == 50
    assert asked(rate=80, duration="1 min").num_requests == 0


def test_a_rate_counts_later_turns_too(asked: Asked) -> None:
    assert asked(rate=80, turns=5).arrivals == Arrivals(rate_per_s=16.0)
    assert describe(asked(rate=80, turns=5)).rate_per_s == pytest.approx(80.0, rel=0.05)


def test_what_is_said_stands_over_a_preset_and_the_name_tells(asked: Asked) -> None:
    traffic = asked(traffic="rag", rate=5, osl=500, system=0, documents=10)
    assert traffic.output == Fixed(500)
    assert traffic.prompt == preset("rag").prompt
    assert traffic.conversation.num_documents == 10
    assert traffic.conversation.system_tokens == 0
    assert traffic.conversation.think == preset("rag").conversation.think
    assert traffic.name == "rag with its own osl and system"
    assert asked(traffic="rag", rate=5).name == "rag"
    assert asked(traffic="rag", rate=5, traffic_name="mine", osl=5).name == "mine"
    assert asked(rate=5).name == "lmsys-chat"
    assert asked(rate=5, isl=300).name == "custom"


def test_documents_without_a_length_have_the_usual_one(asked: Asked) -> None:
    assert asked(rate=5, documents=10).conversation.document_tokens == 1000
    assert asked(rate=5).conversation.document_tokens == 0


def test_a_trace_says_all_by_itself(asked: Asked, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("arrival_s,prompt,output\n0,100,10\n1,100,10\n")
    traffic = asked(trace=str(file), speed=2, first=1)
    assert traffic.trace is not None
    assert (traffic.trace.path, traffic.trace.speed_ratio, traffic.trace.first) == (str(file), 2.0, 1)
    whole = asked(trace=str(file))
    assert whole.trace is not None
    assert sum(len(part) for part in generate(whole, 0)) == 2  # every row, where nobody says how many
    assert (whole.trace.speed_ratio, whole.duration_s, whole.trace.block_tokens) == (1.0, 0.0, 0)
    for name, value in (
        ("rate", 1),
        ("isl", 1),
        ("users", 3),
        ("traffic", "rag"),
        ("turns", 2),
        ("think", "1s"),
    ):
        with pytest.raises(ScenarioError, match="do not go together"):
            asked(trace=str(file), **{name: value})


REFUSED: list[tuple[dict[str, Raw], str]] = [
    ({}, "how often requests come is not said"),
    ({"rate": 80, "users": 5}, "rate and users do not go together"),
    ({"rate": 0}, "rate: 0 is too small"),
    ({"rate": -4}, "rate: -4 is too small"),
    ({"rate": "fast"}, '"fast" is not a number'),
    ({"rate": 1, "isl": 0}, "isl: 0 is too small"),
    ({"rate": 1, "isl": -5}, "isl: -5 is too small"),
    ({"rate": 1, "isl": 10.5}, "isl: 10.5 is not a whole number"),
    ({"rate": 1, "osl": "x"}, "osl: 'x' is not a quantity"),
    ({"users": 0}, "users: 0 is too small"),
    ({"users": 2.5}, "users: 2.5 is not a whole number"),
    ({"users": 5, "think": "-3s"}, "think: -3s is too small"),
    ({"users": 5, "think": "3"}, "'3' has no unit"),
    ({"rate": 1, "turns": 0}, "turns: 0 is too small; it must be at least 1"),
    ({"rate": 1, "turns": 0.5}, "turns: 0.5 is too small; it must be at least 1"),
    ({"rate": 1, "requests": 0}, "requests: 0 is too small"),
    ({"rate": 1, "duration": "0s"}, "duration: 0s is too small"),
    ({"rate": 1, "speed": 2}, "speed does nothing here: it needs trace"),
    ({"rate": 1, "spread": 50}, "spread: 50 is too large; it must be at most 20"),
    (
        {"rate": 1, "spread": 1, "isl": {"shape": "uniform", "low": 1, "high": 2}},
        "isl with a shape beside spread",
    ),
    ({"rate": "inf", "duration": "1s"}, "duration does nothing here: all requests come at once"),
    ({"users": 5, "duration": "1s"}, "users who never pause, for a duration"),
    ({"rate": 1, "peak": "3 h"}, "peak does nothing here: it needs swing"),
    ({"rate": 1, "think_variation": 2}, "think_variation does nothing here: it needs think"),
]


@pytest.mark.parametrize(("given", "said"), REFUSED, ids=[str(row[0]) for row in REFUSED])
def test_what_cannot_be_is_refused(asked: Asked, given: dict[str, Raw], said: str) -> None:
    with pytest.raises(DatahallError) as caught:
        asked(**given)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"isl": 9000}, "prompts of 9,000 tokens for a context of 8,192"),
        ({"isl": 100, "system": 8192}, "prompts of 8,292 tokens"),
    ],
)
def test_prompts_leave_room_for_an_answer(asked: Asked, given: dict[str, Raw], said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        asked(8192, rate=1, **given)


def test_one_length_alone_leaves_the_other_as_the_manual_says(asked: Asked) -> None:
    """1,000 tokens of a prompt beside an output alone, 250 of an answer beside a prompt alone."""
    assert asked(rate=1, osl=40).prompt == Fixed(1000)
    assert asked(rate=1, isl=40).output == Fixed(250)

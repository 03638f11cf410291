"""Chips that do not fill their scale-up domains: every verb answers about them, on a machine of whole domains."""

from __future__ import annotations

from typing import Any

import pytest

import datahall as dh
from datahall.answer import Answer
from datahall.catalog import Catalog
from datahall.cluster.cluster import cluster_from
from datahall.errors import ScenarioError
from datahall.scenario.sections.fabric import FabricDesign

CATALOG = Catalog(user=False)
MODEL = "llama-3-8b"
FEW: tuple[tuple[str, tuple[str, ...], dict[str, Any]], ...] = (
    ("show_collective", ("all-reduce",), {"size": "1GB", "chips": 60}),
    ("simulate_train", (MODEL,), {"chips": 60, "tp": 4}),
    ("plan_train", (MODEL,), {"chips": 60, "tokens": "1T"}),
    ("plan_train", (MODEL,), {"deadline": "60d", "tokens": "1T"}),
    ("show_memory", (MODEL,), {"chips": 60, "tp": 4}),
    ("simulate_serve", (MODEL,), {"rate": 4, "tp": 4, "replicas": 15}),
    ("plan_serve", (MODEL,), {"rate": 4}),
)


def answer(verb: str, about: tuple[str, ...], asked: dict[str, Any]) -> Answer:
    found: Answer = getattr(dh, verb)(*about, **asked)
    return found


@pytest.mark.parametrize(("verb", "about", "asked"), FEW)
@pytest.mark.parametrize("on", ["nvl72", "rail-only"])
def test_every_verb_takes_chips_that_do_not_fill_their_domains(
    verb: str, about: tuple[str, ...], asked: dict[str, Any], on: str
) -> None:
    assert answer(verb, about, asked | {"on": on}).headline


@pytest.mark.parametrize("chips", [1, 60, 64, 71, 73, 100])
@pytest.mark.parametrize(("on", "domain"), [("nvl72", 72), ("fat-tree", 8), ("rail-only", 8)])
def test_the_fabric_has_whole_domains_and_the_cluster_the_chips_that_are_asked_about(
    chips: int, on: str, domain: int
) -> None:
    made = cluster_from(FabricDesign(topology=on, chips=chips), CATALOG)
    assert made.design is not None
    assert made.num_chips == chips
    assert made.num_domain == domain
    hosts = made.design.counts.num_hosts
    assert hosts % domain == 0
    assert chips <= hosts < chips + domain


def test_chips_of_a_domain_that_is_not_full_exchange_as_they_are_sold() -> None:
    asked = {"size": "1GB", "chips": 64}
    wired = answer("show_collective", ("all-reduce",), asked | {"on": "nvl72"})
    sold = answer("show_collective", ("all-reduce",), asked | {"chip": "gb200"})
    assert wired.results == sold.results


@pytest.mark.parametrize("chips", [64, 73])
def test_a_fabric_that_is_asked_about_itself_has_whole_domains(chips: int) -> None:
    with pytest.raises(ScenarioError, match="whole number of scale-up domains of 72") as caught:
        dh.show_fabric("nvl72", chips=chips)
    assert caught.value.field == "chips"
    assert "72" in caught.value.hint
    followed = answer("show_collective", ("all-reduce",), {"size": "1GB", "chips": chips, "on": "nvl72"})
    (command,) = (one for one in followed.next_commands if "show fabric" in one)
    assert f"--chips {-(-chips // 72) * 72}" in command


def test_a_number_of_chips_that_nobody_said_is_not_to_blame() -> None:
    with pytest.raises(ScenarioError, match="no slice of tpu-v5p has 2 chips") as caught:
        dh.show_memory(MODEL, tp=2, on="tpu-pod")
    assert caught.value.field == "on"


def test_a_number_of_chips_that_was_said_is() -> None:
    with pytest.raises(ScenarioError, match="no slice of tpu-v5p has 2 chips") as caught:
        dh.show_memory(MODEL, on="tpu-pod", chips=2)
    assert caught.value.field == "chips"
    assert dh.show_memory(MODEL, on="rail-only").results["num_chips"] == 1

"""Serving knows no torus: replicas of TPUs are timed on a switch, and every verb says so where that is felt."""

from __future__ import annotations

from typing import Any

import pytest

import datahall as dh
from datahall.answer import Answer
from datahall.catalog import Catalog

SHELF = Catalog(user=False)
SLICE: dict[str, Any] = {"model": "llama-3.1-70b", "chip": "tpu-v6e", "tp": 8, "rate": 1}
TOLD = (
    "Google TPU v6e (Trillium) is wired to its neighbours, a torus, which serving does not know: "
    "what its chips exchange is timed as if a switch joined them"
)


def asked(verb: str, **more: Any) -> Answer:
    if verb == "simulate serve":
        return dh.simulate_serve(**SLICE, **more, requests=50, catalog=SHELF)
    return dh.show_techniques(**SLICE, **more, catalog=SHELF)


@pytest.mark.parametrize("verb", ["simulate serve", "show techniques"])
def test_a_group_of_tpus_is_said_to_be_timed_on_a_switch(verb: str) -> None:
    assert TOLD in asked(verb).notes


def test_one_tpu_exchanges_nothing_and_is_told_nothing() -> None:
    found = dh.plan_serve("llama-3.1-8b", chips=["tpu-v6e"], rate=5, catalog=SHELF)
    assert "1 replica of 1 × Google TPU v6e" in found.headline
    assert not [note for note in found.notes if "torus" in note]


@pytest.mark.parametrize("verb", ["simulate serve", "show techniques"])
def test_a_fabric_of_switches_around_a_group_does_nothing_more_for_it(verb: str) -> None:
    """They are on a switch as it is; in training, where a torus is left for it, it acts."""
    plain, switched = asked(verb), asked(verb, on="fat-tree")
    assert switched.results == plain.results
    assert set(switched.notes) - set(plain.notes) == {
        "on does nothing here: no group of chips leaves its scale-up domain"
    }

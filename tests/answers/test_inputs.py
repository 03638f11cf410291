"""An answer says every input that was given, and the defaults that say something."""

from __future__ import annotations

import pytest

from datahall.answers.ask import form_of, inputs_of
from datahall.catalog import Catalog
from datahall.scenario.read import read_names

PLAN = {"model": "llama-3.1-8b", "rate": 5}


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({"headroom": 0}, "headroom_fraction", 0.0),
        ({"chunked_prefill": False}, "chunked_prefill", False),
        ({"headroom": "20 %"}, "headroom_fraction", 0.2),
    ],
)
def test_nothing_that_was_said_is_left_out(
    shelf: Catalog, given: dict[str, object], name: str, value: object
) -> None:
    found = inputs_of(read_names(form_of("plan serve"), {**PLAN, **given}, shelf))
    assert found[name] == value


def test_a_default_that_says_nothing_is_left_out(shelf: Catalog) -> None:
    found = inputs_of(read_names(form_of("plan serve"), PLAN, shelf))
    assert "chunked_prefill" not in found
    assert "draft" not in found
    assert found["headroom_fraction"] > 0


def test_a_seed_is_an_input_where_something_is_drawn(shelf: Catalog) -> None:
    run = {"model": "llama-3.1-8b", "chips": 8}
    assert inputs_of(read_names(form_of("plan serve"), PLAN, shelf))["seed"] == 0
    assert "seed" not in inputs_of(read_names(form_of("simulate train"), run, shelf))
    assert inputs_of(read_names(form_of("simulate train"), {**run, "jitter": "2 %"}, shelf))["seed"] == 0

"""A context beyond what a model states is said in the same words by every verb that takes one, and only then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import pytest

import datahall as dh
from datahall.answer import Answer
from datahall.answers.context import context_notes
from datahall.catalog import Catalog
from datahall.errors import ScenarioError

CATALOG = Catalog(user=False)
MODEL = "gpt2-xl"  # states 1,024 tokens
SERVED: Mapping[str, object] = {"rate": 1.0, "isl": 200, "osl": 100}
ASKED: tuple[tuple[str, str, Mapping[str, object]], ...] = (
    ("show_model", "context", {"model": MODEL}),
    ("show_fit", "context", {"model": MODEL, "chip": "h100-sxm"}),
    ("show_roofline", "context", {"model": MODEL, "chip": "h100-sxm"}),
    ("show_roofline", "context", {"model": MODEL, "chip": "h100-sxm", "batch": 100_000}),
    ("show_memory", "seq", {"model": MODEL, "chips": 8}),
    ("simulate_train", "seq", {"model": MODEL, "chips": 8, "global_batch": 8}),
    ("plan_train", "seq", {"model": MODEL, "chips": 8, "tokens": 1e9, "global_batch": 64}),
    ("simulate_serve", "max_context", {"model": MODEL, "chip": "h100-sxm", **SERVED}),
    ("plan_serve", "max_context", {"model": MODEL, "chips": ["h100-sxm"], **SERVED}),
    ("show_techniques", "max_context", {"model": MODEL, "chip": "h100-sxm", **SERVED}),
)


def notes(verb: str, asked: Mapping[str, object]) -> tuple[str, ...]:
    return cast(Answer, getattr(dh, verb)(**asked, catalog=CATALOG)).notes


@pytest.mark.parametrize(("verb", "field", "asked"), ASKED)
def test_a_context_beyond_what_the_model_states_is_said(
    verb: str, field: str, asked: Mapping[str, object]
) -> None:
    (said,) = context_notes(CATALOG.model(MODEL), 1025)
    assert said.startswith(f"1,025 tokens is beyond the 1,024 that {MODEL} states")
    assert said in notes(verb, {**asked, field: 1025})
    assert not [note for note in notes(verb, {**asked, field: 1024}) if "beyond" in note]


@pytest.mark.parametrize("verb", ["simulate_serve", "plan_serve"])
def test_prompts_are_as_long_as_the_longest_sequence_that_is_accepted(verb: str) -> None:
    """Longer than the model states where a longer context is asked for, by a plan and by a simulation alike."""
    chip = {"chips": ["h100-sxm"]} if verb == "plan_serve" else {"chip": "h100-sxm"}
    asked = {"model": MODEL, "rate": 1.0, "isl": 1500, "osl": 100, **chip}
    with pytest.raises(ScenarioError, match="1,500 tokens"):
        notes(verb, asked)
    assert notes(verb, {**asked, "max_context": 2048})

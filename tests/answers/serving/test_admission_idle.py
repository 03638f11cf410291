"""Whether what says how prompts get in did anything is counted where it acts."""

from __future__ import annotations

from typing import Any

import pytest

import datahall as dh
from datahall.answer import Answer
from datahall.catalog import Catalog

SHELF = Catalog(user=False)
LONG: dict[str, Any] = {"isl": 3000, "osl": 200, "requests": 300, "rate": 20, "token_budget": 512}
NARROW = {"kv_blocks": 500}  # for two and a half of them


def simulated(**said: Any) -> Answer:
    return dh.simulate_serve("llama-3.1-8b", **said, catalog=SHELF)


def idle(answer: Answer, name: str) -> bool:
    spelled = (f"{name} does nothing here", f"{name}=False does nothing here")
    return any(note.startswith(spelled) for note in answer.notes)


@pytest.mark.parametrize(
    ("name", "said", "acts"),
    [
        ("chunked_prefill", LONG, True),
        ("chunked_prefill", LONG | {"rate": 0.1, "token_budget": 4096, "requests": 20}, False),
        ("whole_prompt_blocks", LONG | NARROW, True),
        ("whole_prompt_blocks", LONG, False),  # prompts are cut, and blocks last
        ("whole_prompt_blocks", LONG | NARROW | {"token_budget": 16384}, False),  # and the other way round
    ],
)
def test_an_input_is_idle_where_the_run_is_the_same_without_it(
    name: str, said: dict[str, Any], acts: bool
) -> None:
    usual, other = simulated(**said), simulated(**said, **{name: False})
    assert (usual.results != other.results) is acts
    assert idle(other, name) is not acts

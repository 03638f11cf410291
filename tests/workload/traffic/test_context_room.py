"""Prompts that leave no room for an answer: the error is at the part that takes the most."""

from __future__ import annotations

import pytest

from datahall.errors import ScenarioError
from datahall.workload.traffic.arrivals import Arrivals
from datahall.workload.traffic.conversation import Conversation
from datahall.workload.traffic.shapes import Fixed
from datahall.workload.traffic.traffic import Traffic


def asked(prompt: int, system: int, document: int, retrieved: int = 1, max_context: int = 4096) -> Traffic:
    return Traffic(
        prompt=Fixed(prompt), arrivals=Arrivals(rate_per_s=1.0), num_requests=10, max_context=max_context,
        conversation=Conversation(
            system_tokens=system, num_documents=10, document_tokens=document, num_retrieved=retrieved
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("prompt", "system", "document", "retrieved", "longest"),
    [
        (3000, 1000, 500, 1, "isl"),
        (500, 3000, 1000, 1, "system"),
        (1000, 500, 3000, 1, "document"),
        (1000, 900, 600, 4, "document"),  # no document is the longest, but four of them are
    ],
)
def test_the_longest_part_is_the_one_to_shorten(
    prompt: int, system: int, document: int, retrieved: int, longest: str
) -> None:
    with pytest.raises(ScenarioError, match="for a context of 4,096") as caught:
        asked(prompt, system, document, retrieved)
    assert caught.value.field == longest


def test_one_token_of_room_is_enough() -> None:
    asked(2000, 1000, 500, max_context=3501)
    with pytest.raises(ScenarioError, match="prompts of 3,500 tokens for a context of 3,500"):
        asked(2000, 1000, 500, max_context=3500)

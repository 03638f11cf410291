"""Numbers of things stand in sentences as a person would say them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from datahall.answers.ask import ask
from datahall.answers.reply import answer_of
from datahall.catalog import Catalog

TORUS = {"on": "torus", "chips": 64, "chip": "tpu-v5p"}
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "one chip's links": (
        "show collective",
        {"collective": "all-to-all", "size": "1MB", **TORUS, "failure": {"chips": "0", "left": "1 %"}},
    ),
    "two chips": ("show fabric", {"topologies": "torus", "chips": 8, "sides": "1x1x8"}),
    "one cable": ("show fabric", {"topologies": "torus", "chips": 2, "chip": "h100-sxm", "sides": "1x1x2"}),
    "one chip": ("show fabric", {"topologies": "fat-tree,tree", "chips": 1, "domain": 1}),
    "a full mesh": ("show fabric", {"topologies": "full-mesh", "chips": 8}),
}


@pytest.mark.parametrize("case", ASKED)
def test_one_thing_is_one_thing(case: str, shelf: Catalog) -> None:
    verb, said = ASKED[case]
    answer = answer_of(ask(verb, said, catalog=shelf))
    text = " ".join((answer.headline, answer.binding, *answer.notes))
    assert not re.search(r"(?<![\d,.])1 (chips|cables|links|switches|tiers|ranks)\b", text), text
    assert not re.search(r"^\d+ full mesh", text), text

"""The head alone, by hand on a model of width 8: over the last token of each sequence, over all, or not at all."""

from __future__ import annotations

import pytest
from tests.workload.tiny import FULL, Row, table, tiny

from datahall.workload.forward import Logits, forward_pass, mixed_pass
from datahall.workload.sharding import Sharding
from datahall.workload.step import Chunk

TWO = Sharding(tp=2.0)
NORM: Row = ("final_norm", 1, 0, 2 * 15 * 8, 2 * 15 * 8, 0)


def head(rows: int) -> Row:
    """Rows of 8 values times this chip's half of a vocabulary of 20, two bytes each."""
    return ("head", 1, 2 * rows * 10 * 8, 2 * (rows * 8 + 10 * 8), 2 * rows * 10, 2 * 10 * 8)


@pytest.mark.parametrize(
    ("logits", "rows"), [("last", [NORM, head(3)]), ("all", [NORM, head(15)]), ("none", [])]
)
def test_the_head_of_three_sequences_of_five_tokens(logits: Logits, rows: list[Row]) -> None:
    found = forward_pass(
        tiny(FULL, FULL), batch=3.0, query=5.0, past=7.0, sharding=TWO, logits=logits, part="head"
    )
    assert table(found) == rows


@pytest.mark.parametrize(("logits", "num_rows"), [("last", 2 + 7), ("all", 2 * 4 + 7)])
def test_the_head_of_two_prompts_of_four_tokens_beside_seven_decodes(logits: Logits, num_rows: int) -> None:
    chunks = (Chunk(2.0, 4.0, 0.0), Chunk(7.0, 1.0, 9.0))
    found = mixed_pass(tiny(FULL), chunks, sharding=TWO, logits=logits, part="head")
    assert table(found) == [NORM, head(num_rows)]

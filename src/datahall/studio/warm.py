"""What every process that answers has loaded before it is asked: it is forked from one that has imported this."""

from __future__ import annotations

from typing import Any

from datahall.answers.ask import ask
from datahall.answers.reply import answer_of
from datahall.studio.shown import shown_answer

FIRST: tuple[tuple[str, dict[str, Any]], ...] = (
    ("plan serve", {"model": "llama-3.1-8b", "users": 100, "chips": "h100-sxm,h200"}),
)

for verb, given in FIRST:
    shown_answer(answer_of(ask(verb, given)), verb, given)

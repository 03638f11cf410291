"""What `report/` draws is what it was: the text of answers in every format, and every number in it; see `record.py`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.recorded.record import check_calls, shipped, words

import datahall as dh
from datahall.report.output import FORMATS, render

NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
QUESTIONS: dict[str, dict[str, object]] = {
    "show chip": {"chip": "h200-sxm"},
    "show roofline": {"chip": "h100-sxm", "model": "qwen3-30b-a3b", "batch": 16},
    "show hierarchy": {"chip": "h100-sxm"},
    "show fabric": {"topologies": ["fat-tree", "rail"], "chips": 256},
    "show collective": {"collective": "all-reduce", "chips": 64, "size": "64MB", "on": "rail"},
    "show techniques": {"model": "llama-3.1-8b", "rate": "8"},
    "show fit": {"model": "llama-3.1-70b", "chip": "h200-sxm", "tp": 4},
    "plan train": {"model": "llama-3.1-8b", "chips": 32, "tokens": "100B"},
    "simulate train": {"model": "llama-3.1-8b", "chips": 16, "tp": 2, "pp": 2, "global_batch": 32},
    "catalog models": {"family": "qwen"},
}  # fmt: skip


def drawn() -> Iterator[tuple[str, object]]:
    for verb, said in QUESTIONS.items():
        answer = getattr(dh, verb.replace(" ", "_"))(**said, catalog=shipped())
        for form in (*FORMATS, "explain"):
            text = render(answer, form, width=90)
            yield f"{verb} as {form}, words", words(text)
            yield f"{verb} as {form}", [float(one.replace(",", "")) for one in NUMBER.findall(text)]


def test_answers_are_drawn_alike(update: bool) -> None:
    check_calls("report", drawn(), update)

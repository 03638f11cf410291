"""What tests read off an answer."""

from __future__ import annotations

from datahall.answer import Answer


def number(answer: Answer, key: str) -> float:
    """A result that is a number."""
    value = answer.results[key]
    assert isinstance(value, int | float), f"{key} is {value}"
    return float(value)

"""What the tests of a first look ask of an answer, and what some of them still wait for."""

from __future__ import annotations

import pytest

from datahall.answer import Answer, Table


def table(answer: Answer, title: str) -> Table:
    """The table of this title, or the only one whose title has these words."""
    (found,) = [one for one in answer.tables if title == one.title] or [
        one for one in answer.tables if title in one.title
    ]
    return found


def words_of(answer: Answer) -> str:
    """All sentences of an answer."""
    return "\n".join((answer.headline, answer.binding, *answer.notes, *(one.note for one in answer.tables)))


def waits_for(what: str) -> pytest.MarkDecorator:
    """A check of what is not right yet; it fails once it is, and then this mark goes."""
    return pytest.mark.xfail(strict=True, reason=f"waits for {what}")

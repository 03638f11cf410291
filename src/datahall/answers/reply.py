"""What a function that answers gives back: an answer, and where there is more, the trace, the score or the files."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from datahall.answer import Answer


class Traced(NamedTuple):
    """An answer that was simulated, and what happened as a trace for ui.perfetto.dev."""

    answer: Answer
    trace: Callable[[], bytes]


class Scored(NamedTuple):
    """An answer whose JSON has a shape of its own."""

    answer: Answer
    json: str


class Deployable(NamedTuple):
    """An answer that says what to run, and the files that run it, each by its name in `artefacts` of the verb."""

    answer: Answer
    artefact: Callable[[str], str]


Reply: TypeAlias = Answer | Traced | Scored | Deployable


def answer_of(reply: Reply) -> Answer:
    """The answer itself."""
    return reply if isinstance(reply, Answer) else reply.answer

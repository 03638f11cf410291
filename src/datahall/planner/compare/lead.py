"""A result that something is judged by: the least of it is best, or the most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

LEAST, MOST = "least", "most"


class Lead(NamedTuple):
    """A result, and whether less of it is better."""

    key: str
    is_least: bool

    @property
    def word(self) -> str:
        return LEAST if self.is_least else MOST


def leads_of(texts: Sequence[str]) -> dict[str, Lead]:
    """The main results of a verb by their keys, as its row says them.

    >>> leads_of(["least step_s", "most mfu_fraction"])["mfu_fraction"]
    Lead(key='mfu_fraction', is_least=False)
    """
    said = [text.split() for text in texts]
    return {key: Lead(key, word == LEAST) for word, key in said}

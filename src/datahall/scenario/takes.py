"""Which inputs a verb takes of a section, known without loading the section."""

from __future__ import annotations

from typing import NamedTuple


class Takes(NamedTuple):
    """A section that a verb takes: all of it, or only some of its inputs, or all but some.

    A word that ends in "…" stands for all inputs that are declared as of that group: "wiring…".
    """

    section: str
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    anyway: tuple[str, ...] = ()  # what stands also where nobody says it, so that what needs it acts
    # by input what it needs beside it in this verb, in place of what is declared: one of several is enough
    needs: tuple[tuple[str, tuple[str, ...]], ...] = ()
    several: tuple[str, ...] = ()  # fabrics of which there may be several, side by side
    many: bool = False  # whether a file may have several tables of it


# what decides between plans, and what those with prices take of money
OWNED = Takes("ownership")
SUPPLIED = Takes("supply")
PRICED = Takes("purchase", only=("buy", "prices…"))
AGES = Takes("purchase", only=("as_of",))
# what every plan takes of its failures, of how it comes back from them, and of its site
OPERATED = (
    Takes("failures", only=("rates…",)),
    Takes("recovery", only=("restart…", "preempted_every")),
    Takes("site", only=("building…",)),
)

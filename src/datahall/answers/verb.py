"""A verb: one question that can be asked, and where what it needs is found."""

from __future__ import annotations

from typing import NamedTuple

from datahall.scenario.takes import Takes


class Verb(NamedTuple):
    """One question that can be asked."""

    name: str  # as it is typed, e.g. "show chip"
    about: str  # a line in a list
    answer: str  # the function that answers: module:name under `datahall.answers`
    takes: tuple[Takes, ...]
    examples: tuple[str, ...]
    arguments: tuple[str, ...] = ()  # inputs without a flag, in order
    required: tuple[str, ...] = ()
    details: str = ""
    check: str = ""  # of a room under `datahall`: refuses what it can before anything heavy is loaded
    prepare: str = ""  # makes what is asked without answering it, for `check`; nothing: answering is quick
    views: str = (
        ""  # a function as `answer`, of one answer after another: a terminal draws each over the last
    )
    traced: bool = False  # what happened can be had as a trace for ui.perfetto.dev
    artefacts: tuple[str, ...] = ()  # files that run what it says, by their names
    by_file: bool = True  # a scenario file may ask it
    several: bool = False  # the last argument may be given several times
    means: tuple[tuple[str, str], ...] = ()  # help of inputs that mean something of their own here
    turned: tuple[str, str] = ("", "")  # a flag with which it is another verb that is asked, and that verb
    asks_others: bool = False  # its inputs are handed to other questions, whose defaults are not its own
    leads: tuple[
        str, ...
    ] = ()  # its main results, first what matters most: "least step_s", "most mfu_fraction"

    @property
    def group(self) -> str:
        """The first word, e.g. "show"."""
        return self.name.partition(" ")[0]

    @property
    def word(self) -> str:
        """What follows it, e.g. "chip"; nothing where the verb is one word."""
        return self.name.partition(" ")[2]

    @property
    def function(self) -> str:
        """Its name in Python."""
        return self.name.replace(" ", "_").replace("-", "_")


class Group(NamedTuple):
    """Verbs that begin with one word."""

    name: str
    about: str
    section: str  # of --help
    golden: str = ""  # the verb whose first line to copy is asked where nothing follows the word

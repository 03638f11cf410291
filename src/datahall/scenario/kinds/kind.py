"""What all kinds of input have: how a value is read from what a person wrote, and written back.

A field of a section is annotated with one, e.g. `tp: Annotated[int, Count("Chips that share each layer.")] = 1`.
`read` takes text, numbers, lists and tables as every border has them; `write` gives back what `read` reads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from datahall.catalog import Catalog
from datahall.errors import ScenarioError

Raw: TypeAlias = "str | int | float | bool | Sequence[Raw] | Mapping[str, Raw] | None"
Plain: TypeAlias = "str | int | float | bool | list[Plain] | dict[str, Plain]"
_SUFFIXES = (
    "_w_per_s",
    "_w",
    "_j",
    "_bytes_per_s",
    "_per_s",
    "_bytes",
    "_fraction",
    "_ratio",
    "_tokens",
    "_s",
)


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What reading a value may look at: the catalogue, the folder that paths count from, whether numbers are SI."""

    catalog: Catalog
    folder: Path | None = None  # None: the working folder
    bare: bool = False  # a number without a unit is in SI, as in Python


class Kind(msgspec.Struct, frozen=True):
    """What all kinds have: the words of help, what it is called, and what it goes with."""

    help: str
    name: str = ""  # where its attribute without the unit would not tell
    flat: str = ""  # at flags and keywords, where no section stands before it
    needs: tuple[str, ...] = ()  # says something only beside one of these
    against: tuple[str, ...] = ()  # cannot stand beside any of these
    rare: bool = False  # listed last
    group: str = ""  # inputs that verbs take together
    metavar: str = ""
    example: str = ""
    manner: bool = False  # says how it is answered: no part of the question, and in no answer

    def read(self, raw: Raw, at: Reading) -> object:
        raise NotImplementedError

    def write(self, value: object) -> Plain:
        """The value in plain types, so that `read` gives it back."""
        assert isinstance(value, str | int | float | bool)
        return value

    def excludes(self, value: object) -> tuple[str, ...]:
        """What it cannot stand beside once it has a value."""
        del value
        return self.against

    def schema(self) -> dict[str, object]:
        """JSON Schema of what `read` takes."""
        return {"type": "string"}

    def annotation(self, *also: str) -> str:
        """The Python type of what `read` takes, as source; `also`: words besides its own."""
        return f"Literal[{', '.join(map(json.dumps, (*self.words, *also)))}]" if self.words else "str"

    def placeholder(self, attribute: str) -> str:
        """What stands for the value in help."""
        del attribute
        return self.metavar or "TEXT"

    def wrong(self, raw: Raw, hint: str = "") -> ScenarioError:
        return ScenarioError(f"{shown(raw)} cannot be read", hint=hint or self.hint())

    def hint(self) -> str:
        return f"e.g. {self.sample}" if self.sample else ""

    @property
    def sample(self) -> str:
        """A value that could be written."""
        return self.example

    @property
    def is_repeated(self) -> bool:
        """Whether a flag may be given several times."""
        return False

    @property
    def is_gathered(self) -> bool:
        """Whether words key=value that follow the value of a flag are of it, as if a comma stood between."""
        return False

    @property
    def words(self) -> tuple[str, ...]:
        """All that it may be, where that is a few words that no catalogue and no file adds to."""
        return ()


def shown(raw: Raw) -> str:
    """What was written, for an error."""
    text = f'"{raw}"' if isinstance(raw, str) else repr(raw)
    return text if len(text) <= 60 else f"{text[:57]}…"


def key_of(attribute: str) -> str:
    """The name of an input: its attribute without the unit.

    >>> key_of("ttft_s"), key_of("nic_bytes_per_s"), key_of("micro_batch")
    ('ttft', 'nic', 'micro_batch')
    """
    for suffix in _SUFFIXES:
        if attribute.endswith(suffix) and len(attribute) > len(suffix):
            return attribute.removesuffix(suffix)
    return attribute

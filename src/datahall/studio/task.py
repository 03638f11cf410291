"""What a page asks, as it goes to the process that answers it, and what comes back."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

Shape: TypeAlias = Literal["page", "json", "html", "md", "csv", "trace", "artefact"]


class Task(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question, and the shape in which its answer is wanted."""

    verb: str
    given: dict[str, Any] = {}  # by the names of flags, as they are typed
    shape: Shape = "page"
    name: str = ""  # of an artefact


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """How far a long question is."""

    said: str


class Done(msgspec.Struct, frozen=True, tag="done"):
    """The answer, in the shape that was wanted."""

    content_type: str
    body: bytes


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """The question has no answer: what is wrong, and what to do."""

    status: int
    error: dict[str, Any]


OURS = 500  # the status of a mistake of ours
Message: TypeAlias = Progress | Done | Refused

"""What the studio says of itself, as OpenAPI."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from datahall.serve.openapi import PATH, Operation, described
from datahall.studio.forms import Forms, VerbForm
from datahall.studio.shown import Shown
from datahall.studio.task import Task

ASK, FORMS = "/api/ask", "/api/forms"


class Wrong(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a question, where, and what to do."""

    code: str
    message: str
    field: str = ""
    where: str = ""
    hint: str = ""
    problems: list[dict[str, Any]] = []


class Refusal(msgspec.Struct, frozen=True):
    """A question that has no answer."""

    error: Wrong


OPERATIONS = (
    Operation(
        path=ASK,
        method="POST",
        about="a question and its answer; with Accept: text/event-stream how far it is, too",
        body=Task,
        answer=Shown,
        is_streamed=True,
        refusal=Refusal,
        statuses=(400, 404, 422, 500, 503),
    ),
    Operation(path=FORMS, about="all that can be asked", answer=Forms),
    Operation(
        path=f"{FORMS}/{{verb}}",
        about="the inputs of a verb",
        answer=VerbForm,
        refusal=Refusal,
        statuses=(404,),
    ),
    Operation(
        path=f"{FORMS}/{{verb}}/{{input}}",
        about="the names that an input may be",
        answer=list[str],
        refusal=Refusal,
        statuses=(404,),
    ),
    Operation(path=PATH, about="this description", answer=dict[str, Any]),
)


@cache
def description(version: str) -> bytes:
    """The studio as OpenAPI describes it."""
    return described("Datahall studio", version, OPERATIONS)

"""One point of a sweep: the question of its file with other values of some inputs, asked as if alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from datahall.answer import Answer, Cell, Quantity
from datahall.answers.ask import ask
from datahall.answers.reply import answer_of
from datahall.catalog import Catalog, document, json_document
from datahall.catalog.document import Document
from datahall.errors import DatahallError, DocumentError, InfeasibleError
from datahall.scenario.kinds import Raw


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What all points share: the verb, the file as it was read, the catalogue."""

    verb: str
    path: str
    text: str
    shipped: str
    extra: tuple[str, ...]
    user: bool


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a point has: its results and whether it is a yes, or why it has none."""

    verdict: Literal["yes", "no", "refused"]
    said: str
    results: dict[str, Cell] = {}
    main: str = ""  # the result that is the answer's figure


def read(path: str, text: str) -> Document:
    """A scenario from the text of its file."""
    return json_document.parse(text, path) if path.endswith(".json") else document.parse(text, path)


def answerer(context: bytes) -> Callable[[bytes], bytes]:
    """What answers points of a sweep, each a table of inputs as JSON, with what was found as JSON."""
    shared = msgspec.json.decode(context, type=Context)
    catalog = Catalog(shared.extra, shipped=Path(shared.shipped), user=shared.user)
    file = read(shared.path, shared.text)

    def answer(point: bytes) -> bytes:
        return msgspec.json.encode(found(shared.verb, file, msgspec.json.decode(point), catalog))

    return answer


def found(verb: str, file: Document, given: dict[str, Raw], catalog: Catalog) -> Found:
    """What the question of a file has, with some inputs in place of what it says."""
    try:
        answer = answer_of(ask(verb, given, document=file, catalog=catalog, bare=True))
    except DatahallError as error:
        return Found(verdict="no" if isinstance(error, InfeasibleError) else "refused", said=reason(error))
    return Found(verdict=answer.verdict, said=answer.headline, results=answer.results, main=_main(answer))


def reason(error: DatahallError) -> str:
    """Why there is no answer, in a sentence."""
    if isinstance(error, DocumentError) and error.problems:
        first, *others = error.problems
        more = f" (and {len(others)} more)" if others else ""
        return f"{first.message}; {first.hint}{more}" if first.hint else f"{first.message}{more}"
    return f"{error.message}; {error.hint}" if error.hint else error.message


def _main(answer: Answer) -> str:
    """The result that is the figure of an answer."""
    if answer.figure is None:
        return ""
    values = {key: one.value if isinstance(one, Quantity) else one for key, one in answer.results.items()}
    return next((key for key, value in values.items() if value == answer.figure.value), "")

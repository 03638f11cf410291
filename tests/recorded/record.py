"""Figures of a room as they were, to see that one changed.

A record says nothing about what is right: the tests of the room do that.  It says that a figure is no longer what it
was, of many questions and calls, chosen so that together they run nearly every line of the room.  When one fails,
either the change was not meant, or the figures are written anew and the difference is read before it is kept:

    python -m pytest -n 0 tests/recorded --update-golden

and "Changed numbers" in the CHANGELOG names what changed.

A file `questions/ROOM.jsonl` has a question a line, with what was found: its results by name, and a sum of its
figures, of the numbers in its tables, of those in its charts and of those that its words say.  A line that has only
its "ask" gets the rest when it is written anew.  `calls/ROOM.json` has what functions of the room return for columns
of inputs, under the names that `test_ROOM.py` gives.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from math import asinh, inf, isclose, isfinite
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import datahall as dh
from datahall.answer import Answer
from datahall.errors import DatahallError

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
RELATIVE = 1e-7  # the last bits of another processor are no change
DIGITS = 9
NAMED = 3  # results of an answer that are kept by name
SHOWN = 10  # changes that a failure names
NUMBER = re.compile(r"\d[\d,.]*(?:e[+-]?\d+)?")
SMALLEST = 1e-10  # below it a sum takes a number for what rounding left

Found = dict[str, Any]


def leaves(value: object) -> Iterator[float | str]:
    """Every number and word of a value, in its order."""
    match value:
        case None:
            yield "none"
        case str() | bytes():
            yield value if isinstance(value, str) else value.decode("latin-1")
        case bool() | np.bool_():
            yield float(value)
        case int() | float() | np.number():
            yield float(value)
        case np.ndarray():
            yield from map(float, value.ravel()) if value.dtype.kind in "biuf" else leaves(value.tolist())
        case dh.Catalog():
            yield "catalogue"  # what of it is loaded depends on what was asked before
        case Mapping():
            for key, one in value.items():
                yield from leaves(key)
                yield from leaves(one)
        case msgspec.Struct():
            for one in msgspec.structs.asdict(value).values():
                yield from leaves(one)
        case set() | frozenset():
            yield from sorted(leaves(list(value)), key=str)
        case Iterable():
            for one in value:
                yield from leaves(one)
        case _ if hasattr(value, "__dict__"):
            yield from leaves(vars(value))
        case _:
            yield type(value).__name__


def numbers(value: object) -> Iterator[float]:
    """The numbers of a value alone."""
    return (one for one in leaves(value) if isinstance(one, float))


def summed(found: Iterable[float | str]) -> list[float]:
    """How many there are, and one number that moves when any of them does or two change places.

    The sum is over logarithms: a thousandth more moves it alike, be it of seconds or of bytes.
    """
    total, num = 0.0, 0
    for num, one in enumerate(found, 1):
        weight = 1.0 + (num * 0.6180339887498949) % 1.0
        if isinstance(one, str):
            one = float(zlib.crc32(NUMBER.sub("#", one).encode()))
        total += weight * (asinh(one / SMALLEST) if isfinite(one) else 1e3 if one == inf else -2e3)
    return [num, round(total, 6)]


def rounded(value: float) -> float:
    """With the digits that are kept."""
    return float(f"{value:.{DIGITS}g}")


def kept(value: object) -> object:
    """A value as it stands in a record: numbers and words as they are, all else as a sum."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float | np.number):
        plain = value.item() if isinstance(value, np.number) else value
        return plain if isinstance(plain, int) else rounded(plain) if isfinite(plain) else str(plain)
    return summed(leaves(value))


def words(*texts: object) -> int:
    """A number that changes with the words of texts, and not with the numbers in them nor where the project stands."""
    return zlib.crc32(NUMBER.sub("#", _joined(texts)).encode())


def numerals(*texts: object) -> list[float]:
    """The numbers that texts name."""
    found = re.findall(r"\d[\d,]*(?:\.\d+)?", _joined(texts))
    return [float(one.replace(",", "")) for one in found]


def _joined(texts: Iterable[object]) -> str:
    return "\n".join(map(str, texts)).replace(str(ROOT), "")


def asked(question: dict[str, Any], *, worded: bool) -> Found:
    """What an answer has of figures, or that there is none."""
    try:
        answer = dh.ask(_at_home(question), catalog=shipped())
    except DatahallError as error:
        said = [
            *(text for one in getattr(error, "problems", ()) for text in (one.message, one.hint)),
            error.message,
        ]
        found = {
            "refused": type(error).__name__,
            "numbers": summed(numerals(*said)),
        }
        return found | ({"words": words(*said, error.hint)} if worded else {})
    return of_answer(answer, worded=worded)


@cache
def shipped() -> dh.Catalog:
    """The catalogue without what a user added."""
    return dh.Catalog(user=False)


def _at_home(question: Any) -> Any:
    """A question with the files that it names where they are."""
    if isinstance(question, dict):
        return {key: _at_home(one) for key, one in question.items()}
    return str(ROOT / question) if isinstance(question, str) and question.startswith("tests/") else question


def of_answer(answer: Answer, *, worded: bool) -> Found:
    """The figures of an answer."""
    results = list(answer.results.items())
    figures = [] if answer.figure is None else [
        one for _, node in answer.figure.walk()
        for one in (node.value, *((node.band.low, node.band.high) if node.band else ()))
    ]  # fmt: skip
    found: Found = {key: kept(value) for key, value in results[:NAMED]}
    sums = {
        "results": summed(leaves(dict(results[NAMED:]))),
        "figures": summed(figures),
        "tables": summed(number for table in answer.tables for number in numbers(table.rows)),
        "charts": summed(number for chart in answer.charts for number in numbers(chart)),
    }
    cells = [one for table in answer.tables for one in leaves(table.rows) if isinstance(one, str)]
    parts = [] if answer.figure is None else [(one.name, one.note) for _, one in answer.figure.walk()]
    texts = [answer.headline, answer.binding, *answer.notes, *answer.next_commands, *cells, *parts]
    sums["said"] = summed(numerals(*texts))
    found |= {name: one for name, one in sums.items() if one[0]}
    return found | ({"words": words(*texts)} if worded else {})


def changes(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What is not as it was, in words."""
    names = [*was, *(name for name in now if name not in was)]
    return [
        f"{name}: {was.get(name, 'nothing')} became {now.get(name, 'nothing')}"
        for name in names
        if name not in was or name not in now or not same(was[name], now[name])
    ]


def same(one: object, other: object) -> bool:
    """Whether two recorded values are one: floats but for their last bits, all else exactly."""
    if isinstance(one, list) and isinstance(other, list):
        return one[0] == other[0] and abs(one[1] - other[1]) <= RELATIVE * max(20.0, one[0])
    if isinstance(one, float) and isinstance(other, int | float) and not isinstance(other, bool):
        return isclose(one, other, rel_tol=RELATIVE)
    return type(one) is type(other) and one == other


def written(value: object) -> str:
    """On one line, without white space."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def check_questions(room: str, update: bool, *, worded: bool = False) -> None:
    """Ask the questions of a room anew: every answer has the figures that it had."""
    file = HERE / "questions" / f"{room}.jsonl"
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    found = [asked(line["ask"], worded=worded) for line in lines]
    if update:
        texts = [written({"ask": line["ask"], "found": now}) for line, now in zip(lines, found, strict=True)]
        file.write_text("\n".join(texts) + "\n", encoding="utf-8")
        return
    _say([
        f"{written(line['ask'])}\n        {change}"
        for line, now in zip(lines, found, strict=True)
        for change in changes(line.get("found", {}), now)
    ])  # fmt: skip


def check_calls(room: str, calls: Iterable[tuple[str, object]], update: bool) -> None:
    """Compare what functions return with what they returned."""
    file = HERE / "calls" / f"{room}.json"
    pairs = [(name, kept(value)) for name, value in calls]
    now = dict(pairs)
    assert len(now) == len(pairs), "a name is given twice"
    if update:
        lines = [f"{written(name)}: {written(value)}" for name, value in sorted(now.items())]
        file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        return
    _say(changes(json.loads(file.read_text(encoding="utf-8")), now))


def or_refused(call: Callable[[], object]) -> object:
    """What a call returns, or that it was refused."""
    try:
        return call()
    except DatahallError as error:
        return type(error).__name__


def _say(found: list[str]) -> None:
    assert not found, "\n    ".join([f"{len(found)} recorded figures changed:", *found[:SHOWN]])

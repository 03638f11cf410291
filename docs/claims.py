"""What the source documents claim, judged by what the program answers.

claims.toml has a short quotation of every claim, and the questions that settle it: a command, the place of a figure in
its JSON, and what the document says that figure is.  A figure holds by the rule of `datahall show chip NAME --claim`:

    "30 %"               within 6 %, or 12 % where it is given to one digit and rounds to it
    "20-30 %"            inside, give or take 2 %
    "at least 100×"      not below, give or take 2 %; likewise "at most"
    "exactly 16,384"

A place is the name of a result ("step_s"), a table, a row and a column ("made of > leaf switches > number"; the row *
is the median of all), or a part of the chain behind the answer ("figure > tokens of a device").
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from datahall.catalog.claim import CORRECT, closeness
from datahall.cli.main import run
from datahall.units import fmt, parse, unit_of

TABLE = Path(__file__).resolve().with_name("claims.toml")
CLAIMED = re.compile(r"(?:(at least|at most|exactly) )?([\d.,]+)(?:-([\d.,]+))?\s*(.*)$")
OUTCOMES = {"correct": "yes", "rounded": "yes", "unknown": "open"}  # of --claim; all others are a no
KINDS = ("holds", "in part", "does not hold", "not settled", "answered")


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One figure that a document states, and how the program is asked for it."""

    claims: str = ""  # what the document says it is; nothing: the document asks
    of: str = ""  # of what, where there are several
    fact: str = ""  # "h100-sxm memory": an entry of the catalogue and its quantity
    ask: str = ""  # or a command, without the word datahall
    take: str = ""  # place of the figure in its answer
    beside: str = ""  # the command whose figure it is divided by, where that is another
    over: str = ""  # and the place of that figure, where it is another
    shown: Literal["", "times", "more", "less", "share", "count"] = ""
    reads: str = ""  # what the document's words come to, where it states no number
    open: str = ""  # why the figure does not settle it


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A claim of a document: judged by its cases, or waiting for a room."""

    id: int
    seed: str
    quote: str
    about: str = ""
    cases: tuple[Case, ...] = ()
    waits: str = ""
    checked: Literal["", "holds", "in part", "does not hold"] = ""  # by hand, before there was a program
    differs: str = ""  # why the program says something else


class Claims(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole table: documents, subjects and rooms by name, and every claim."""

    documents: dict[str, str]
    subjects: dict[str, str]
    rooms: dict[str, str]
    claim: tuple[Claim, ...]


class Found(NamedTuple):
    """What the program says to one case."""

    outcome: str  # yes, no, open, or answered
    says: str
    commands: tuple[str, ...]


class Verdict(NamedTuple):
    """What becomes of a claim, and what was found for each of its cases."""

    kind: str
    found: tuple[Found, ...]


@cache
def table() -> Claims:
    """All claims, by their number."""
    found = msgspec.toml.decode(TABLE.read_bytes(), type=Claims)
    return msgspec.structs.replace(found, claim=tuple(sorted(found.claim, key=lambda claim: claim.id)))


@cache
def answer(command: str) -> dict[str, Any]:
    """The answer to a command as JSON; each is asked once.  That something does not fit is an answer only to `show`."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = run([*shlex.split(command), "--format", "json"])
    if code not in ({0, 1} if command.startswith("show ") else {0}):
        raise ValueError(f"datahall {command}: exit code {code}\n{out.getvalue()}")
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def figure(command: str, place: str) -> tuple[float, str]:
    """A figure of an answer and its unit."""
    found = answer(command)
    where, *rest = place.split(" > ")
    if not rest:
        value, key = found["results"][where], where
    elif where == "figure":
        node = next(node for node in _nodes(found["figure"]) if node["name"] == rest[0])
        return float(node["value"]), node["unit"]
    else:
        row, key = rest
        (rows,) = (each["rows"] for each in found["tables"] if where in each["title"])
        named = [each for each in rows if row in ("*", str(next(iter(each.values()))))]
        if not named or (row != "*" and len(named) > 1):
            raise ValueError(f"datahall {command}: {len(named)} rows {row!r}")
        value = statistics.median(each[key] for each in named) if row == "*" else named[0][key]
    if isinstance(value, dict):
        return float(value["value"]), value["unit"]
    return float(value), unit_of(key) or "count"


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for part in node.get("parts", ()):
        yield from _nodes(part)


def holds(claimed: str, value: float, unit: str) -> bool:
    """Is a figure what was claimed?

    >>> holds("30 %", 0.31, "fraction"), holds("20-30 %", 0.32, "fraction"), holds("at least 100×", 53, "ratio")
    (True, False, False)
    """
    match = CLAIMED.match(claimed)
    if match is None:
        raise ValueError(f"{claimed!r} is no claim")
    bound, first, last, word = match.groups()
    low, high = (parse(f"{number} {word}".strip(), unit) for number in (first, last or first))
    if bound == "exactly":
        return value == low
    if bound or last:
        return (bound == "at most" or value >= low * (1 - CORRECT)) and (
            bound == "at least" or value <= high * (1 + CORRECT)
        )
    return value > 0 and closeness(low, f"{first} {word}", value, unit) != "wrong"


def settle(case: Case) -> Found:
    """Ask the program for one figure."""
    if case.fact:
        name, quantity = case.fact.split()
        command = f"show chip {name} --claim {shlex.quote(f'{quantity}={case.claims}')}"
        results = answer(command)["results"]
        says = results["reason"].removeprefix("the catalogue has ").removeprefix("it is ")
        return Found(OUTCOMES.get(results["outcome"], "no"), _of(case, says), (command,))
    value, unit = figure(case.ask, case.take)
    commands = (case.ask, *((case.beside,) if case.beside else ()))
    if case.shown:
        value /= figure(case.beside or case.ask, case.over or case.take)[0]
        value = {"more": value - 1, "less": 1 - value}.get(case.shown, value)
        unit = {"times": "ratio", "count": "count"}.get(case.shown, "fraction")
    says = f"{value:,.0f}" if case.claims.startswith("exactly") else fmt(value, unit, 3)
    if case.shown in ("more", "less"):
        other = {"more": "less", "less": "more"}[case.shown] if value < 0 else case.shown
        says = f"{fmt(abs(value), unit, 3)} {other}"
    if case.open:
        return Found("open", f"{_of(case, says)}; {case.open}", commands)
    outcome = "answered" if not case.claims else "yes" if holds(case.claims, value, unit) else "no"
    return Found(outcome, _of(case, says), commands)


def _of(case: Case, says: str) -> str:
    return f"{case.of}: {says}" if case.of else says


def summed(outcomes: Iterable[str]) -> str:
    """The kind of verdict that the outcomes of all cases come to.

    >>> summed(["yes", "yes"]), summed(["yes", "no"]), summed(["no", "open"])
    ('holds', 'in part', 'does not hold')
    """
    match sorted(set(outcomes)):
        case ["yes"]:
            return "holds"
        case ["no"] | ["no", "open"]:
            return "does not hold"
        case ["open"]:
            return "not settled"
        case ["answered"]:
            return "answered"
        case _:
            return "in part"


@cache
def judged() -> dict[Claim, Verdict]:
    """Every claim that the program can judge, with its verdict."""
    found = {claim: tuple(map(settle, claim.cases)) for claim in table().claim if claim.cases}
    return {claim: Verdict(summed(each.outcome for each in cases), cases) for claim, cases in found.items()}


def _quoted(claim: Claim) -> str:
    reads = "; ".join(dict.fromkeys(case.reads for case in claim.cases if case.reads))
    return f"“{claim.quote}”{f' ({reads})' if reads else ''}".replace("|", "\\|")


def documents() -> str:
    """The documents, and how many claims each makes."""
    count = Counter(claim.seed for claim in table().claim)
    lines = [f"| {name} | {words} | {count[name]} |" for name, words in table().documents.items()]
    return "\n".join(["| document | is | claims |", "| --- | --- | ---: |", *lines])


def summary() -> str:
    """How many claims there are, and what becomes of them, by subject."""
    found = judged()
    count = Counter(verdict.kind for verdict in found.values())
    waiting = len(table().claim) - len(found)
    lines = [
        f"{len(table().claim)} claims: {len(found)} are judged here, {waiting} wait. "
        f"Of those judged {count['holds']} hold, {count['in part']} hold in part, {count['does not hold']} do not, "
        f"{count['not settled']} are not settled, and {count['answered']} is a question that gets an answer.",
        "",
        f"| about | claims | {' | '.join(KINDS)} |",
        f"| --- | ---: |{' ---: |' * len(KINDS)}",
    ]
    for subject, words in table().subjects.items():
        kinds = Counter(verdict.kind for claim, verdict in found.items() if claim.about == subject)
        cells = " | ".join(str(kinds[kind] or "") for kind in KINDS)
        lines.append(f"| {words} | {kinds.total()} | {cells} |")
    return "\n".join(lines)


def about(subject: str) -> str:
    """The claims about a subject: what is said, what the program says, and the commands."""
    found = {claim: verdict for claim, verdict in judged().items() if claim.about == subject}
    lines = ["| claim | document | says | Datahall says | verdict |", "| ---: | --- | --- | --- | --- |"]
    for claim, one in found.items():
        marks = {"yes": " (holds)", "no": " (does not)"} if one.kind == "in part" else {}
        says = "<br>".join(each.says + marks.get(each.outcome, "") for each in one.found)
        lines.append(f"| {claim.id} | {claim.seed} | {_quoted(claim)} | {says} | {one.kind} |")
    asked = [
        f"{claim.id:>3}  datahall {command}"
        for claim, one in found.items()
        for command in dict.fromkeys(command for each in one.found for command in each.commands)
    ]
    folded = ["<details><summary>The commands</summary>", "", "```text", *asked, "```", "", "</details>"]
    return "\n".join([*lines, "", *folded])


def waiting() -> str:
    """The claims that wait, by the room that will judge them."""
    blocks = []
    for room, words in table().rooms.items():
        lines = [
            f"| {claim.id} | {claim.seed} | {_quoted(claim)} |"
            for claim in table().claim
            if claim.waits == room
        ]
        head = ["| claim | document | says |", "| ---: | --- | --- |"]
        blocks.append("\n".join([f"{len(lines)}: **{room}** {words}", "", *head, *lines]))
    return "\n\n".join(blocks)


def differing() -> str:
    """Where the program and a check by hand disagree."""
    lines = ["| claim | by hand | Datahall | why |", "| ---: | --- | --- | --- |"]
    lines += [
        f"| {claim.id} | {claim.checked} | {one.kind} | {claim.differs} |"
        for claim, one in judged().items()
        if claim.differs
    ]
    return "\n".join(lines)


def parts() -> dict[str, Callable[[], str]]:
    """What seeds.md is drawn from, by name."""
    named = {"documents": documents, "summary": summary, "waiting": waiting, "differing": differing}
    return named | {subject: partial(about, subject) for subject in table().subjects}

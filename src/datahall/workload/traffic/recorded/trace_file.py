"""Traces of real requests from CSV and JSONL files; their columns say whose they are."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.catalog.csv_document import CUT_OFF, csv_rows
from datahall.errors import DocumentError, Problem, ScenarioError, option
from datahall.workload.traffic.recorded.trace_format import (
    TraceFormat,
    decoded,
    recognise,
    unknown_columns,
    unreadable,
)
from datahall.workload.traffic.requests import Floats, Ints, Requests

MOST_PROBLEMS = 20  # listed; the rest are counted
LINKS = ("after", "group", "shared", "session", "priority")


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of a file, and what was left out of it."""

    requests: Requests
    format: TraceFormat
    path: str
    num_failed: int = 0  # rows without a generated token: requests that failed when they were recorded
    span_s: float = 0.0  # of a part of a trace until the next request came; 0: nobody knows

    @property
    def duration_s(self) -> float:
        """From time 0 to one mean gap after the last request, so that a loop keeps the mean rate."""
        if self.span_s:
            return self.span_s
        times = self.requests.arrival_s[self.requests.after < 0]
        return float(times[-1]) * times.size / max(1, times.size - 1) if times.size else 0.0

    @property
    def rate_per_s(self) -> float:
        return len(self.requests) / self.duration_s if self.duration_s else np.inf


class _Table(msgspec.Struct):
    """Columns of text or values, and the line each row stands on."""

    columns: dict[str, list[object]]
    lines: list[int]


def read_trace(path: str | Path, *, sort: bool = False, first: int = 0, block_tokens: int = 0) -> Trace:
    """The requests of a file; time 0 is that of the first.

    `sort` orders rows by time, `first` takes only so many of them, `block_tokens` are those of one hash of a trace
    with hashes (512 unless said).
    """
    name = str(path)
    text = _text(name)
    table = _json_table(name, text) if text.lstrip()[:1] == "{" else _csv_table(name, text)
    known = recognise(list(table.columns))
    if known is None:
        raise unknown_columns(name, list(table.columns))
    if first:
        table = _Table({key: values[:first] for key, values in table.columns.items()}, table.lines[:first])
    return _Reader(name, table, known, sort, block_tokens or known.block_tokens).trace()


def _text(name: str) -> str:
    try:
        return decoded(name, Path(name).read_bytes())
    except OSError as error:
        raise unreadable(name, error.strerror or str(error)) from error


def _csv_table(name: str, text: str) -> _Table:
    found = csv_rows(name, text)
    problems = [
        Problem(f"{name}:{one.line}", f"{one.num_values} values under {len(found.head)} columns")
        for one in found.wrong
    ]
    if found.is_cut_off:
        problems[-1].hint = CUT_OFF
    if not found.rows and not problems:
        problems.append(Problem(f"{name}:1", "columns but no rows", "is this the file you meant?"))
    _raise(name, problems)
    return _Table({column: list(values) for column, values in found.columns.items()}, found.lines)


def _json_table(name: str, text: str) -> _Table:
    decode = msgspec.json.Decoder(dict[str, object]).decode
    rows, lines, problems = [], [], []
    numbered = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    for number, line in numbered:
        try:
            rows.append(decode(line))
            lines.append(number)
        except msgspec.DecodeError as error:
            hint = CUT_OFF if number == numbered[-1][0] else "one JSON object on each line"
            problems.append(Problem(f"{name}:{number}", f"not a JSON object: {error}", hint))
    _raise(name, problems)
    columns: dict[str, list[object]] = {key: [row.get(key) for row in rows] for key in rows[0]}
    return _Table(columns, lines)


def _raise(name: str, problems: list[Problem]) -> None:
    if len(problems) > MOST_PROBLEMS:
        rest = len(problems) - MOST_PROBLEMS
        problems = [*problems[:MOST_PROBLEMS], Problem(name, f"and {rest} more like these")]
    if problems:
        raise DocumentError(name, problems)


class _Reader:
    """Turns the columns of one format into requests, and collects what is wrong with them."""

    def __init__(self, name: str, table: _Table, known: TraceFormat, sort: bool, block_tokens: int) -> None:
        self.name = name
        self.table = table
        self.format = known
        self.sort = sort
        self.block_tokens = block_tokens
        self.problems: list[Problem] = []

    def trace(self) -> Trace:
        known = self.format
        times = self._dates(known.time) if known.dates else self._numbers(known.time) * known.time_s
        # A recorded 0 is a request that failed; in our own files, where others may point to it, it is a mistake.
        own = known.name == "datahall"
        prompt, output = self._tokens(known.prompt, 1), self._tokens(known.output, 1 if own else 0)
        links = self._links() if own else {}
        keys = self._keys(prompt) if known.keys in self.table.columns and known.keys else []
        if not self.problems:
            self._order(times, links)
        _raise(self.name, self.problems)
        kept = np.flatnonzero(output > 0)
        if self.sort:
            kept = kept[np.argsort(times[kept], kind="stable")]
        requests = Requests.of(times[kept], prompt[kept], output[kept])
        if links:
            requests = msgspec.structs.replace(requests, **links)
        else:
            requests = msgspec.structs.replace(
                requests, arrival_s=requests.arrival_s - requests.arrival_s[:1].sum()
            )
        if keys:
            requests = self._with_keys(requests, [keys[row] for row in kept.tolist()])
        return Trace(requests=requests, format=known, path=self.name, num_failed=int(output.size - kept.size))

    def _wrong(self, row: int, message: str, hint: str = "") -> None:
        self.problems.append(Problem(f"{self.name}:{self.table.lines[row]}", message, hint))

    def _numbers(self, column: str) -> Floats:
        values = self.table.columns[column]
        try:
            numbers = np.array(values, np.float64)
        except (TypeError, ValueError):
            numbers = np.full(len(values), np.nan)
        if numbers.ndim != 1 or not np.all(np.isfinite(numbers)):  # None became NaN too
            numbers = np.array([self._number(column, row, value) for row, value in enumerate(values)])
        return numbers

    def _number(self, column: str, row: int, value: object) -> float:
        try:
            number = float(str(value))
        except ValueError:
            number = np.nan
        if not np.isfinite(number):
            seen = "missing" if value in (None, "") else f"{value!r}, not a number"
            self._wrong(row, f"{column} is {seen}", "every time and length is a finite number")
        return number

    def _tokens(self, column: str, least: int) -> Ints:
        numbers = self._numbers(column)
        for row in np.flatnonzero(
            (numbers < least) | (numbers != np.rint(numbers)) & np.isfinite(numbers)
        ).tolist():
            self._wrong(row, f"{column} is {numbers[row]:g}", f"a whole number of tokens, at least {least}")
        return np.nan_to_num(numbers, posinf=0, neginf=0).astype(np.int64)

    def _dates(self, column: str) -> Floats:
        said = [str(value or "").strip() for value in self.table.columns[column]]
        values = [value.removesuffix("+00:00").removesuffix("Z") for value in said]
        if any("+" in value[19:] or "-" in value[19:] for value in values):
            dates = self._each_date(column, values)
        else:
            try:
                dates = np.array(values, "datetime64[ns]")
            except ValueError:
                dates = self._each_date(column, values)
            if np.isnat(dates).any() and not self.problems:  # nothing at all is no date either
                self._each_date(column, values)
        return np.asarray((dates - dates[0]) / np.timedelta64(1, "s"))

    def _each_date(self, column: str, values: list[str]) -> NDArray[np.datetime64]:
        return np.array(
            [self._date(column, row, value) for row, value in enumerate(values)], "datetime64[ns]"
        )

    def _date(self, column: str, row: int, value: str) -> np.datetime64:
        try:
            date: np.datetime64 = np.datetime64(
                "NaT" if "+" in value[19:] or "-" in value[19:] else value, "ns"
            )
        except ValueError:
            date = np.datetime64("NaT", "ns")
        if np.isnat(date):
            seen = f"{value!r}" if value else "missing"
            self._wrong(row, f"{column} is {seen}", 'a time in UTC, e.g. "2023-11-16 18:17:03.98"')
        return date

    def _links(self) -> dict[str, Ints]:
        size = len(self.table.lines)
        plain = {"after": np.full(size, -1), "group": np.full(size, -1), "session": np.arange(size)}
        none = np.zeros(size, np.int64)
        links = {
            name: self._tokens(name, -1 if name in {"after", "group"} else 0)
            if name in self.table.columns
            else plain.get(name, none).astype(np.int64)
            for name in LINKS
        }
        for row in np.flatnonzero(links["after"] >= np.arange(size)).tolist():
            self._wrong(
                row, f"after is {links['after'][row]}", "a turn follows an earlier row, counted from 0"
            )
        return links

    def _order(self, times: Floats, links: dict[str, Ints]) -> None:
        later = links["after"] >= 0 if links else np.zeros(times.size, bool)
        if self.sort and later.any():
            raise ScenarioError(
                "rows that follow others cannot be sorted",
                where=self.name,
                hint="a turn stands after the row that it waits for; write the file in that order",
            )
        for row in np.flatnonzero(times < 0).tolist() if not self.format.dates else []:
            self._wrong(row, f"{self.format.time} is {times[row] / self.format.time_s:g}", "times start at 0")
        start = np.flatnonzero(~later)
        back = np.flatnonzero(np.diff(times[start]) < 0)
        if back.size and not self.sort:
            self._wrong(
                int(start[back[0] + 1]),
                f"earlier than the row before it ({back.size} such rows)",
                f"requests stand in the order of time; {option('sort_trace')} orders them",
            )

    def _keys(self, prompt: Ints) -> list[list[int]]:
        keys: list[list[int]] = []
        for row, value in enumerate(self.table.columns[self.format.keys]):
            try:
                found = msgspec.convert(value if value is not None else [], list[int])
            except msgspec.ValidationError:
                self._wrong(row, f"{self.format.keys} is {value!r}", "a list of whole numbers")
                found = []
            if len(found) > -(-int(prompt[row]) // self.block_tokens):
                self._wrong(
                    row,
                    f"{len(found)} hashes for {prompt[row]} tokens",
                    f"more than one for every {self.block_tokens} tokens: give the trace's block_tokens",
                )
            keys.append(found)
        return keys

    def _with_keys(self, requests: Requests, keys: list[list[int]]) -> Requests:
        counts = np.array([len(row) for row in keys], np.int64)
        return msgspec.structs.replace(
            requests,
            blocks=np.array([key for row in keys for key in row], np.int64),
            block_start=np.concatenate((np.zeros(1, np.int64), np.cumsum(counts))),
            block_tokens=self.block_tokens,
        )

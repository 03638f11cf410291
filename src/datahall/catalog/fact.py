"""A number with its source, and the table of fields that says what an entry of the catalogue may hold.

An entry in a TOML file writes a fact as a quantity (`memory = "80 GB"`), which takes the entry's own
`source`, or as a table that names another (`{ value = "33600 USD", source = "street-2026", note = "…" }`).
The same field tables drive reading, checking, `show` and the documentation.  What others saw and printed stands
beside figures of ours as words, with its source too (`Seen`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Literal, TypeVar, cast

import msgspec

from datahall.breakdown import Kind, Source
from datahall.catalog.document import Document, Table, Value
from datahall.errors import Problem, UnitError, nearest
from datahall.units import example, fmt, parse, unit_of


class Fact(msgspec.Struct, frozen=True):
    """One value of the catalogue: SI value, unit, and where it is from."""

    label: str
    value: float
    unit: str
    source: Source
    note: str = ""
    low: float | None = None  # where sources differ: the lowest and highest of them
    high: float | None = None

    @property
    def shown(self) -> str:
        """The value for a person; a cache of 262,144 bytes is 256 KiB."""
        if self.unit == "bytes":
            for size, word in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
                if size <= self.value < 1024 * size and self.value % size == 0:
                    return f"{self.value / size:g} {word}"
        return fmt(self.value, self.unit)


class Field(msgspec.Struct, frozen=True):
    """What one key of an entry means.

    `attribute` is the name the value has in code; its ending is the unit.  `text` fields and `flag`
    fields are descriptions, not facts, and carry no source of their own.
    """

    key: str
    attribute: str
    label: str
    form: Literal["quantity", "text", "flag", "count", "texts"] = "quantity"
    required: bool = False
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    at_least: float | None = None

    @property
    def unit(self) -> str:
        return "count" if self.form == "count" else unit_of(self.attribute)


class Entry(msgspec.Struct):
    """An entry being read: the values found, the facts behind them and the problems met."""

    document: Document
    path: tuple[str, ...]
    sources: Mapping[str, Source]
    values: dict[str, object] = {}
    facts: dict[str, Fact] = {}
    problems: list[Problem] = []
    source: Source | None = None  # of facts that name none themselves

    def below(self, *keys: str) -> Entry:
        """An entry for a table inside this one: same source and list of problems, values of its own."""
        return Entry(
            self.document, (*self.path, *keys), self.sources, problems=self.problems, source=self.source
        )

    def problem(self, message: str, *keys: str, hint: str = "") -> None:
        """Record a problem at a key of this entry."""
        self.problems.append(Problem(self.document.where(*self.path, *keys), message, hint))


EntryType = TypeVar("EntryType", bound=msgspec.Struct)


def read_entry(
    entry: Entry, name: str, table: Table, fields: Iterable[Field], kind: type[EntryType]
) -> EntryType | None:
    """Read a whole entry as a struct; problems are recorded in `entry`, and where there are any the answer is None."""
    read_fields(entry, table, fields)
    if entry.problems:
        return None
    counts = {
        key: int(cast(float, value))
        for key, value in entry.values.items()
        if key.startswith(("num_", "year"))
    }
    return msgspec.convert(entry.values | counts | {"name": name, "facts": entry.facts}, kind)


def read_fields(entry: Entry, table: Table, fields: Iterable[Field], *, also: Iterable[str] = ()) -> None:
    """Read the keys of `table` by their fields into `entry`; every problem is recorded, none is raised.

    `also` names keys that the caller reads itself (nested tables).
    """
    by_key = {field.key: field for field in fields}
    entry.source = default_source = _default_source(entry, table)
    for key, raw in table.items():
        field = by_key.get(key)
        if key in also or (field is None and key in {"source", "kind", "date"}):
            continue
        if field is None:
            entry.problem(f'unknown key "{key}"', key, hint=_nearest_hint(key, [*by_key, *also]))
            continue
        if field.form == "quantity":
            _read_fact(entry, field, raw, default_source)
        else:
            _read_plain(entry, field, raw, default_source)
    for field in by_key.values():
        if field.required and field.key not in table:
            entry.problem(f'"{field.key}" is missing ({field.label})', hint=_write_hint(field))


def _default_source(entry: Entry, table: Table) -> Source | None:
    raw = table.get("source")
    if raw is None:
        return entry.source
    return _source(entry, raw, "source")


_UNREAD = Source("unread", "")  # stands for a source with a problem, so that the problem is reported once


def _source(entry: Entry, raw: Value, *keys: str) -> Source:
    if isinstance(raw, dict):
        return read_source(entry, raw, *keys) or _UNREAD
    if isinstance(raw, str) and raw in entry.sources:
        return entry.sources[raw]
    hint = _nearest_hint(str(raw), entry.sources) or "define it: [source.my-source] with title, date and kind"
    entry.problem(f'unknown source "{raw}"', *keys, hint=hint)
    return _UNREAD


KINDS: tuple[Kind, ...] = ("datasheet", "measured", "derived", "estimate")


def read_source(entry: Entry, table: Table, *keys: str) -> Source | None:
    """Read `{ title, date, kind }`; date is a year, a month or a day."""
    title, date, kind = table.get("title"), table.get("date"), table.get("kind", "datasheet")
    if not isinstance(title, str) or not title.strip():
        entry.problem("a source needs a title", *keys, hint='title = "vendor datasheet", date = "2026-03"')
        return None
    if date is None or not str(date)[:4].isdigit():
        entry.problem("a source needs a date", *keys, hint='date = "2026-03"')
        return None
    if kind not in KINDS:
        entry.problem(f'unknown kind "{kind}"', *keys, hint=f"one of {', '.join(KINDS)}")
        return None
    return Source(title.strip(), str(date), kind)


def _read_fact(entry: Entry, field: Field, raw: Value, source: Source | None) -> None:
    note, low, high = "", None, None
    if isinstance(raw, dict):
        unknown = set(raw) - {"value", "source", "note", "kind", "range"}
        if "value" not in raw or unknown:
            entry.problem(
                f'"{field.key}" must be a quantity or {{ value, source, kind, note, range }}', field.key
            )
            return
        if "range" in raw:
            low, high = _range(entry, field, raw["range"])
        if "source" in raw:
            source = _source(entry, raw["source"], field.key)
        if source is not None and "kind" in raw:
            if raw["kind"] not in KINDS:
                entry.problem(f'unknown kind "{raw["kind"]}"', field.key, hint=f"one of {', '.join(KINDS)}")
                return
            source = Source(source.title, source.date, raw["kind"])
        note = str(raw.get("note", ""))
        raw = raw["value"]
    value = _quantity(entry, field, raw)
    if value is None:
        return
    if source is None:
        entry.problem(
            f'"{field.key}" has no source', field.key, hint='add source = "…" to the entry or to the value'
        )
        return
    entry.values[field.attribute] = value
    entry.facts[field.attribute] = Fact(field.label, value, field.unit, source, note, low, high)


def _range(entry: Entry, field: Field, raw: Value) -> tuple[float | None, float | None]:
    """Read `range = ["5.5 TB/s", "10 TB/s"]`, what sources that differ print."""
    if not isinstance(raw, list) or len(raw) != 2:
        entry.problem(f'"{field.key}": range must be a list of two quantities', field.key)
        return None, None
    low, high = _quantity(entry, field, raw[0]), _quantity(entry, field, raw[1])
    if low is not None and high is not None and low > high:
        entry.problem(f'"{field.key}": range runs from {raw[0]!r} down to {raw[1]!r}', field.key)
    return low, high


def _quantity(entry: Entry, field: Field, raw: Value) -> float | None:
    if isinstance(raw, bool) or not isinstance(raw, (str, int, float)):
        entry.problem(
            f'"{field.key}" must be a quantity, not {_word(raw)}', field.key, hint=_write_hint(field)
        )
        return None
    try:
        value = parse(raw, field.unit)
    except UnitError as error:
        entry.problem(f'"{field.key}": {error.message}', field.key, hint=error.hint)
        return None
    low = field.at_least
    if (low is None and value <= 0) or (low is not None and value < low):
        bound = "must be above 0" if low is None else f"must be at least {low:g}"
        entry.problem(f'"{field.key}" is {raw!r}; it {bound}', field.key)
        return None
    if field.unit in {"count", "year"} and value != int(value):
        entry.problem(f'"{field.key}" is {raw!r}; it must be a whole number', field.key)
        return None
    return value


def _read_plain(entry: Entry, field: Field, raw: Value, source: Source | None) -> None:
    key = field.key
    match field.form:
        case "flag":
            if not isinstance(raw, bool):
                entry.problem(f'"{key}" must be true or false, not {_word(raw)}', key)
                return
            entry.values[field.attribute] = raw
        case "count":
            low = 1 if field.at_least is None else field.at_least
            if isinstance(raw, bool) or not isinstance(raw, (int, float)) or raw % 1 != 0 or raw < low:
                entry.problem(f'"{key}" must be a whole number of at least {low:g}, not {raw!r}', key)
                return
            entry.values[field.attribute] = int(raw)
            if source is not None:
                entry.facts[field.attribute] = Fact(field.label, float(raw), "count", source)
        case "texts":
            if not isinstance(raw, list) or not all(isinstance(item, str) for item in raw):
                entry.problem(f'"{key}" must be a list of texts', key)
                return
            entry.values[field.attribute] = tuple(raw)
        case _:
            if not isinstance(raw, str):
                entry.problem(f'"{key}" must be a text, not {_word(raw)}', key)
                return
            if field.choices and raw not in field.choices:
                guess = _nearest_hint(raw, field.choices)
                entry.problem(
                    f'"{key}" is "{raw}"', key, hint=f"one of {', '.join(field.choices)}. {guess}".strip()
                )
                return
            entry.values[field.attribute] = raw


def _word(raw: Value) -> str:
    words = {
        bool: "true or false",
        list: "a list",
        dict: "a table",
        str: "a text",
        int: "a number",
        float: "a number",
    }
    return words.get(type(raw), "a date")


def _nearest_hint(name: str, known: Iterable[str]) -> str:
    close = nearest(name, known, 1)
    return f'did you mean "{close[0]}"?' if close else ""


def _write_hint(field: Field) -> str:
    if field.form == "quantity":
        return f"{field.key} = {example(field.unit)}"
    return f"one of {', '.join(field.choices)}" if field.choices else ""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody saw of a technique, and where it is printed."""

    of: str  # the name of a rung
    says: str
    by: str
    date: str

    @property
    def source(self) -> Source:
        return Source(self.by, self.date, "measured")

    @property
    def named(self) -> str:
        """What was seen, with who says so: "… (Lin et al., 2017)"."""
        author = self.by.partition(",")[0]
        return f"{self.says} ({author}, {self.date[:4]})"


class _Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fact: tuple[Seen, ...]


def read_seen(package: str, path: str) -> tuple[Seen, ...]:
    """All that a room ships of it."""
    text = resources.files(package).joinpath(path).read_bytes()
    return msgspec.toml.decode(text, type=_Facts).fact

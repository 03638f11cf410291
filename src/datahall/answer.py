"""The answer to a question: what every verb returns, and what every format is drawn from.

A table on a terminal, JSON, Markdown, CSV and the HTML page are renderings of one `Answer`.  Numbers in it
are SI floats with their unit beside them; only `report/` turns them into text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from datahall.breakdown import Breakdown, Source
from datahall.errors import OutputError

if TYPE_CHECKING:
    from pandas import DataFrame

Verdict = Literal["yes", "no"]

SCHEMA, VERSION = "datahall/answer", 2  # of an answer as JSON

# units that say how a number is shown but are no part of its key in JSON
_UNSPOKEN = {"", "count", "year", "citation"}


class Quantity(msgspec.Struct, frozen=True, omit_defaults=True):
    """A number that brings its own unit, for a column whose rows have different ones."""

    value: float
    unit: str
    low: float | None = None  # where sources differ
    high: float | None = None


Cell: TypeAlias = str | int | float | bool | Quantity | None  # None: not known


def keyed(name: str, unit: str = "") -> str:
    """The key in JSON of what has a name for people.

    >>> keyed("prefix cache", "ratio"), keyed("fat-tree")
    ('prefix_cache_ratio', 'fat_tree')
    """
    words = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return words if unit in _UNSPOKEN else f"{words}_{unit}"


class Column(msgspec.Struct, frozen=True, omit_defaults=True):
    """The head of a column.

    `unit` is that of its numbers; "citation" is a number in the list of sources.  `key` is its name in JSON and
    CSV: the words and the unit, unless another is given.  An `aside` is a remark on its row: on a screen it
    stands under the table, where it does not make the rows tall.

    >>> Column("memory bandwidth", "bytes_per_s").key, Column("layers", "count").key
    ('memory_bandwidth_bytes_per_s', 'layers')
    """

    name: str
    unit: str = ""
    key: str = ""
    aside: bool = False

    def __post_init__(self) -> None:
        if not self.key:
            msgspec.structs.force_setattr(self, "key", keyed(self.name, self.unit))

    @property
    def numeric(self) -> bool:
        """Whether the column is aligned to the right."""
        return self.unit not in {"", "citation"}


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of SI numbers and text; `marked` is the row that was chosen.

    One that is `data` is too long for a person: programs have it, in JSON, CSV and Python.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    marked: int | None = None
    note: str = ""
    data: bool = False

    def records(self) -> list[dict[str, Cell]]:
        """The rows as dictionaries under the keys of JSON."""
        keys = [column.key for column in self.columns]
        return [dict(zip(keys, row, strict=True)) for row in self.rows]


class Axis(msgspec.Struct, frozen=True):
    """One axis of a chart."""

    label: str
    unit: str = ""
    log: bool = False


class Series(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a chart, or one cloud of dots."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    dashed: bool = False


class Mark(msgspec.Struct, frozen=True, omit_defaults=True):
    """A place on the x axis worth naming, e.g. the size of a cache."""

    label: str
    x: float


class Point(msgspec.Struct, frozen=True, omit_defaults=True):
    """A named dot: `weight` (0 to 1) is its share of the whole, `group` its colour."""

    label: str
    x: float
    y: float
    group: str = ""
    weight: float = 0.0
    note: str = ""


class OnAxes(msgspec.Struct, frozen=True, kw_only=True):
    """What is drawn over two axes, series by series."""

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]


class LineChart(OnAxes, frozen=True, kw_only=True, tag="lines"):
    """Lines over one axis, with named places on it."""

    marks: tuple[Mark, ...] = ()
    points: tuple[Point, ...] = ()


class RooflineChart(msgspec.Struct, frozen=True, kw_only=True, tag="roofline"):
    """Roofs of arithmetic [FLOP/s], slopes of bandwidth [B/s] and a point per operator."""

    title: str
    roofs: dict[str, float]
    slopes: dict[str, float]
    points: tuple[Point, ...]
    note: str = ""


class StackChart(msgspec.Struct, frozen=True, kw_only=True, tag="stack"):
    """One bar per row, cut into named parts; `limits` is the full length of each bar."""

    title: str
    unit: str
    rows: tuple[str, ...]
    parts: dict[str, tuple[float, ...]]
    limits: tuple[float, ...] = ()


class ScatterChart(OnAxes, frozen=True, kw_only=True, tag="scatter"):
    """Pairs of numbers of one unit as dots around the diagonal on which they are equal; `points` are named."""

    points: tuple[Point, ...] = ()


class Boxes(msgspec.Struct, frozen=True):
    """Things of one kind side by side, in groups; `sizes` is how many each group has, `label` says all of them."""

    name: str
    label: str
    sizes: tuple[int, ...]


class Cables(msgspec.Struct, frozen=True):
    """All that joins two groups; a group is a row from below, and a place in it.  The rate is one way [B/s]."""

    low: tuple[int, int]
    high: tuple[int, int]
    num: int
    bytes_per_s: float


class TopologyChart(msgspec.Struct, frozen=True, kw_only=True, tag="topology"):
    """Rows of boxes from below, and the cables between them; one row alone is drawn as a ring."""

    title: str
    rows: tuple[Boxes, ...]
    cables: tuple[Cables, ...]
    note: str = ""


class ChangeChart(msgspec.Struct, frozen=True, kw_only=True, tag="changes"):
    """What each of some changes does to one figure, as a share of it: a bar to the right is more, to the left less."""

    title: str
    rows: tuple[str, ...]
    shares: tuple[float, ...]
    note: str = ""


class Bar(msgspec.Struct, frozen=True):
    """A piece of work in a row of a Gantt chart; `low` and `high` (0 to 1) are the part of the row that it takes."""

    row: int
    start: float
    end: float
    label: str
    low: float = 0.0
    high: float = 1.0


class GanttChart(msgspec.Struct, frozen=True, kw_only=True, tag="gantt"):
    """Who had what when: a row for each thing, bars over time; bars of one label have one colour."""

    title: str
    rows: tuple[str, ...]
    bars: tuple[Bar, ...]
    end: float  # of the axis of time [s]
    note: str = ""


Chart: TypeAlias = (
    LineChart | RooflineChart | StackChart | ScatterChart | TopologyChart | ChangeChart | GanttChart
)


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked and what came of it.

    `headline` holds the answer and its margin, `binding` what holds it back.  `results` are the figures a
    script wants, under keys that end in their unit.  `verdict` "no" is exit code 1.
    """

    kind: str
    headline: str
    inputs: dict[str, Cell] = {}
    defaults: tuple[str, ...] = ()  # those of the inputs that nobody said
    question: dict[str, object] = {}  # what was asked, so that it can be asked again
    binding: str = ""
    verdict: Verdict = "yes"
    results: dict[str, Cell] = {}
    tables: tuple[Table, ...] = ()
    figure: Breakdown | None = None
    beside: tuple[Breakdown, ...] = ()  # figures of other numbers that it says, for those who open the chain
    charts: tuple[Chart, ...] = ()
    notes: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    next_commands: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.headline

    def __repr__(self) -> str:
        return f"<Answer {self.kind}: {self.headline}>"

    def save(self, path: str | Path) -> None:
        """Write the answer to a file; its ending chooses the format (.html, .md, .csv, .json, .txt)."""
        from datahall.report.output import format_of, render, write

        if not isinstance(path, str | Path) or not str(path):
            raise OutputError(
                f"{path!r} is not the path of a file", hint='e.g. answer.save("answer.html"), or a Path'
            )
        write(render(self, format_of(Path(path))), Path(path))

    def to_json(self) -> str:
        """The answer as JSON, as `--format json` prints it."""
        from datahall.report.output import render

        return render(self, "json")

    def to_pandas(self, table: int = 0) -> DataFrame:
        """One of its tables as a pandas DataFrame, with the keys of JSON as columns; needs pandas."""
        try:
            from pandas import DataFrame
        except ImportError as error:
            raise OutputError(
                "pandas is not installed", hint="pip install pandas; or use to_json()"
            ) from error
        if not -len(self.tables) <= table < len(self.tables):
            titles = ", ".join(one.title for one in self.tables) or "none"
            raise OutputError(f"there is no table {table}", hint=f"its tables: {titles}")
        return DataFrame.from_records(self.tables[table].records())

    @property
    def shown_tables(self) -> tuple[Table, ...]:
        """Those that a person reads."""
        return tuple(table for table in self.tables if not table.data)

    @property
    def figures(self) -> tuple[Breakdown, ...]:
        """The main figure, where there is one, and those beside it."""
        return (*((self.figure,) if self.figure is not None else ()), *self.beside)

    def citations(self) -> tuple[Source, ...]:
        """Every source behind this answer once; a citation in a table counts from 1 in this list."""
        return tuple(
            dict.fromkeys((*self.sources, *(one for each in self.figures for one in each.citations())))
        )

    def _repr_html_(self) -> str:
        from datahall.report.page import fragment

        return fragment(self)

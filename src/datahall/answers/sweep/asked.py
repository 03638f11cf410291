"""What is swept: the question of a file, its inputs with their values, and the points that these make."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from datahall import __version__
from datahall.answer import Cell
from datahall.answers.ask import form_of
from datahall.answers.file import verb_of
from datahall.answers.sweep.point import Context, read
from datahall.answers.verb import Verb
from datahall.answers.verbs import VERBS
from datahall.catalog.digest import digest
from datahall.catalog.document import Document, text_of
from datahall.errors import DatahallError, ScenarioError
from datahall.planner.sweep.estimate import estimated_s
from datahall.planner.sweep.grid import MOST_POINTS, Grid
from datahall.planner.sweep.processes import num_cores
from datahall.planner.sweep.run import Work
from datahall.scenario.field import Field
from datahall.scenario.kinds import Axis, Raw, Reading
from datahall.scenario.read import is_scenario
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.comparing import Sweep
from datahall.units import fmt


class Swept(msgspec.Struct, frozen=True, kw_only=True):
    """A question, and the values of some of its inputs."""

    verb: Verb
    file: Document
    context: Context
    axes: tuple[Axis, ...]
    fields: tuple[Field, ...]  # one an axis
    cells: tuple[tuple[Cell, ...], ...] = ()  # the values of each as they were read

    @property
    def grid(self) -> Grid:
        return Grid(tuple(axis.num for axis in self.axes))

    @property
    def moving(self) -> tuple[int, ...]:
        """The axes that have more than one value."""
        return tuple(place for place, axis in enumerate(self.axes) if axis.num > 1)

    @property
    def work(self) -> Work:
        """What is to be done."""
        return Work(
            place="answers.sweep.point:answerer",
            context=msgspec.json.encode(self.context),
            num_points=self.grid.num,
            point=lambda index: msgspec.json.encode(self.given(index)),
        )

    def given(self, index: int) -> dict[str, Raw]:
        """The inputs of a point, by name."""
        places = self.grid.at(index)
        return {
            field.name: axis.at(place)
            for field, axis, place in zip(self.fields, self.axes, places, strict=True)
        }

    def point_cells(self, index: int) -> tuple[Cell, ...]:
        """The same as they were read."""
        return tuple(cells[place] for cells, place in zip(self.cells, self.grid.at(index), strict=True))

    def called(self, index: int) -> str:
        """What to call a point: its inputs that are not the same in all."""
        given = self.given(index)
        names = [self.fields[place].name for place in self.moving] or list(given)
        return ", ".join(f"{name.replace('_', ' ')} {given[name]}" for name in names)


def swept(scenario: Scenario) -> Swept:
    """The sweep that is asked for; what cannot be one is refused before anything is answered."""
    asked, catalog = scenario.one(Sweep), scenario.catalog
    text = text_of(Path(asked.question))
    with scenario.at(field="question"):
        file = read(asked.question, text)
        if not is_scenario(file):
            raise ScenarioError(
                f"{asked.question} is not a scenario", hint="a .toml or .json file with version = 1"
            )
        verb = verb_of(file, [verb for verb in VERBS if verb.by_file])
    with scenario.at(field="over"):
        fields = tuple(form_of(verb.name).named(axis.name) for axis in asked.over)
        for place, field in enumerate(fields):
            if field in fields[:place]:
                raise ScenarioError(f"{field.name} is swept twice", hint="say all of its values once")
    found = Swept(
        verb=verb,
        file=file,
        context=Context(
            verb=verb.name,
            path=asked.question,
            text=text,
            shipped=str(catalog.folders[0]),
            extra=catalog.extra,
            user=catalog.user,
        ),
        axes=asked.over,
        fields=fields,
    )
    with scenario.at(field="over"):
        _check_number(found)
        cells = tuple(tuple(_cells(found, place, scenario)) for place in range(len(fields)))
    return msgspec.structs.replace(found, cells=cells)


def _check_number(found: Swept) -> None:
    """Refuse more points than anybody waits for, with how many and how long they would take."""
    num = found.grid.num
    if num <= MOST_POINTS:
        return
    point_s, all_s = estimated_s(found.work)
    raise ScenarioError(
        f"{num:,} points would take about {fmt(all_s, 's', 2)}: the first takes {fmt(point_s, 's', 2)}, "
        f"and {num_cores()} are answered at once",
        hint=f"at most {MOST_POINTS:,}: fewer values, or larger steps",
    )


def _cells(found: Swept, place: int, scenario: Scenario) -> Iterator[Cell]:
    """The values of an axis as its input reads them; one that it cannot have is an error."""
    axis, field = found.axes[place], found.fields[place]
    at = Reading(catalog=scenario.catalog, bare=True)
    for index in range(axis.num):
        try:
            value = field.kind.read(axis.at(index), at)
        except DatahallError as error:
            error.field = ""
            error.message = f"{axis.name}: {error.message}"
            raise
        yield value if isinstance(value, str | int | float | bool) else str(field.kind.write(value))


def key_of(found: Swept, scenario: Scenario) -> str:
    """All that the points depend on, as one word: the question, the files it names, this version, the catalogue."""
    named = hashlib.sha256()
    folder = Path(found.file.path).parent
    for text in _texts([found.file.content, [axis.said for axis in found.axes]]):
        for path in (folder.joinpath(text), Path(text)):
            if len(text) < 1000 and "\0" not in text and path.is_file():
                named.update(path.read_bytes())
    said = [
        __version__,
        found.context.verb,
        found.context.path,
        found.context.text,
        repr([(field.name, axis.said) for field, axis in zip(found.fields, found.axes, strict=True)]),
        digest(scenario.catalog.folders),
        named.hexdigest(),
    ]
    return hashlib.sha256("\n".join(said).encode()).hexdigest()


def _texts(value: object) -> Iterator[str]:
    """Every text in a question, of which some are paths."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)

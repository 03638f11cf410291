"""A question that was read: every section that its verb takes, what a person said of it, and where it was said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TypeVar

import msgspec

from datahall.catalog import Catalog
from datahall.catalog.document import Document
from datahall.catalog.entries.model import Model
from datahall.errors import (
    DatahallError,
    DocumentError,
    InfeasibleError,
    Problem,
    ScenarioError,
    option,
)
from datahall.scenario.field import CONCEPTS, Section
from datahall.scenario.form import Form
from datahall.scenario.kinds import Plain
from datahall.scenario.sections.root import Root

S = TypeVar("S", bound=Section)
Made = TypeVar("Made")


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """Sections by name.  Ask for one with its struct: `scenario.one(Promise).ttft_s`, `scenario.all(Traffic)`."""

    form: Form
    catalog: Catalog
    sections: dict[str, tuple[Section, ...]]
    said: dict[str, tuple[dict[str, Plain], ...]]  # what was given, by section and key, in plain types
    document: Document | None = None
    beside: tuple[str, ...] = ()  # inputs and tables that were said beside the file
    replaced: tuple[str, ...] = ()  # inputs of the file in whose place something else was said

    @property
    def verb(self) -> str:
        return self.form.verb

    @property
    def root(self) -> Root:
        return self.one(Root)

    @property
    def path(self) -> str:
        """The file that asked, if one did."""
        return self.document.path if self.document is not None else ""

    @property
    def name(self) -> str:
        """What to call it, if it says so."""
        return self.root.name

    def all(self, kind: type[S]) -> tuple[S, ...]:
        """Every section of a kind; one that was not given is there once with its defaults, unless there may be none."""
        return self.sections.get(section_name(kind), ())  # type: ignore[return-value]  # the table of concepts says so

    def one(self, kind: type[S]) -> S:
        """The one section of a kind, or the first of several."""
        found = self.all(kind)
        return found[0] if found else kind()

    def having(self, *sections: Section) -> Scenario:
        """The same question with other sections in place of those of their kinds."""
        others: dict[str, tuple[Section, ...]] = {section_name(type(one)): (one,) for one in sections}
        return msgspec.structs.replace(self, sections={**self.sections, **others})

    def given(self, name: str, index: int = 0) -> bool:
        """Whether a person said it."""
        field = self.form.fields.get(name)
        if field is None:
            return False
        tables = self.said.get(field.section, ())
        return index < len(tables) and field.key in tables[index]

    def model(self) -> Model:
        """The model that is asked about: of the catalogue, or from its `config.json`."""
        return model_of(self.root.model, self.catalog)

    def check(self) -> None:
        """Refuse inputs that cannot stand beside each other, before anything heavy is loaded to find out.

        Of a file the room that builds it does, together with all that only that room knows.
        """
        if self.document is not None:
            return
        attempts, name = Attempts(self), self.root.model
        model = model_of(name, self.catalog) if name else None
        for made in self.sections.values():
            attempts.errors += [
                problem for section in made for problem in section.problems(model) if self._may_say(problem)
            ]
        attempts.finish()

    def _may_say(self, problem: DatahallError) -> bool:
        """Whether a verb takes the input that would mend it: how often requests come is not asked of every service."""
        tables = {concept.name for concept in self.form.tables}
        return not problem.field or problem.field in self.form.fields or problem.field in tables

    def where(self, name: str, index: int = 0, section: str = "") -> str:
        """The place of an input or a table: file:line, or nothing where no file was read or has it.

        Of a name that is neither, the place of the section that was being read.
        """
        if self.document is None or name in self.beside:
            return ""
        field = self.form.fields.get(name)
        table = field.section if field else name if name and name in self.form.sections else section
        keys = [table] if table else []
        if table and isinstance(self.document.content.get(table), list):
            keys.append(str(index))
        return self.document.where(*keys, *([field.key] if field else []))

    def place(self, section: str, index: int, key: str) -> str:
        """The place of a key of a table that flags give whole: file:line, or nothing where no file was read."""
        if self.document is None:
            return ""
        several = isinstance(self.document.content.get(section), list)
        return self.document.where(section, *((str(index),) if several else ()), *((key,) if key else ()))

    @contextmanager
    def at(self, index: int = 0, field: str = "", section: str = "") -> Iterator[None]:
        """What goes wrong inside is at fault of the section with that number, or of an input.

        `section` is one that flags give whole, such as a job: then `field` is a key of its table.
        """
        try:
            yield
        except DatahallError as error:
            error.field = error.field or field
            if section and CONCEPTS[section].inline:
                error.where = error.where or self.place(section, index, error.field)
                error.field = section
            error.where = error.where or self.where(error.field, index, section)
            raise


class Attempts:
    """Things made one after the other; what goes wrong is kept, and raised together at the end."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.errors: list[DatahallError] = []

    def make(
        self, do: Callable[[], Made], *, index: int = 0, field: str = "", section: str = ""
    ) -> Made | None:
        """What can be made, or None."""
        try:
            with self.scenario.at(index, field, section):
                return do()
        except DatahallError as error:
            self.errors.append(error)
        return None

    def finish(self) -> None:
        """Raise what went wrong: one error as it is; several as problems of the file; a "no" only where nothing is wrong."""
        if not self.errors:
            return
        wrong = [error for error in self.errors if not isinstance(error, InfeasibleError)]
        if len(self.errors) == 1 and (self.scenario.document is None or not wrong):
            raise self.errors[0]
        if not wrong:
            first = self.errors[0]
            also = "".join(
                f"; {one.where}: {one.message}" if one.where else f"; {one.message}"
                for one in self.errors[1:]
            )
            raise InfeasibleError(first.message + also, where=first.where, hint=first.hint)
        raise problems_error(
            self.scenario.path or self.scenario.verb, self.errors, in_file=self.scenario.document is not None
        )


def problems_error(name: str, errors: list[DatahallError], *, in_file: bool) -> DocumentError:
    """Several errors as one, each with its place and once, in the order of their lines."""
    found: list[Problem] = []
    for error in errors:
        if isinstance(error, DocumentError):
            found += error.problems
        else:
            place = error.where or (option(error.field) if error.field else name)
            found.append(Problem(place, error.message, error.hint))
    once = {(problem.where, problem.message): problem for problem in found}
    error = DocumentError(name, sorted(once.values(), key=_line))
    if not in_file:
        error.code = ScenarioError.code
    return error


def _line(problem: Problem) -> int:
    """The line of a problem; what has none comes first."""
    _, _, line = problem.where.rpartition(":")
    return int(line) if line.isdecimal() else 0


@cache
def section_name(kind: type[Section]) -> str:
    """The name under which a struct stands in a scenario."""
    return next(one.name for one in CONCEPTS.values() if one.home.endswith(f":{kind.__name__}"))


def model_of(name: str, catalog: Catalog) -> Model:
    """A model by name, or by the path of its `config.json`."""
    if name.endswith(".json"):
        from datahall.workload.config import read_config

        return read_config(Path(name))
    return catalog.model(name)

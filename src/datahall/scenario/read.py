"""Reading a question: from flags or keywords (flat names), or from a file (sections), into one `Scenario`.

All borders come through here, so that one question has one answer: the same kinds read the same values, the same rules
refuse what does not apply, and every problem is found at once and named at its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import gcd
from pathlib import Path

from datahall.catalog import Catalog
from datahall.catalog.document import Document, Value
from datahall.catalog.entries.model import Model
from datahall.catalog.kinds import KINDS
from datahall.errors import DatahallError, ScenarioError, Speller, keyword, nearest, option, spelled
from datahall.scenario.field import CONCEPTS, Concept, Field, fields
from datahall.scenario.form import Form
from datahall.scenario.kinds import Plain, Raw, Reading, inline_table, shown
from datahall.scenario.rules import broken_rules, given_names
from datahall.scenario.scenario import Scenario, problems_error
from datahall.workload.division import check_stage

VERSION = 1
OF_EVERY_FILE = ("version", "ask")
ENDLESS = re.compile(r"\d{400}")  # no finite number has so many digits, and Python reads none of thousands
DEGREES = {"deployment": ("tp", "dp", "ep"), "layout": ("tp",)}  # what a model must divide by

Tables = dict[str, list[dict[str, Raw]]]  # what was written, by section


def read_names(form: Form, given: Mapping[str, Raw], catalog: Catalog, *, bare: bool = False) -> Scenario:
    """A question from flags or keywords; `bare`: numbers without a unit are in SI."""
    reader = _Reader(form, Reading(catalog=catalog, bare=bare))
    return reader.scenario(reader.tables(given))


def read_document(
    form: Form,
    document: Document,
    catalog: Catalog,
    given: Mapping[str, Raw] | None = None,
    *,
    bare: bool = False,
    spell: Speller = keyword,
) -> Scenario:
    """A question from a file; what is `given` beside it stands in its place, and that is said.

    What stands beside is read and spelled as the border does that it came through, and so is a question that no file
    holds; in a file a number has a unit.
    """
    folder = Path(document.path).parent if document.path else None
    reader = _Reader(form, Reading(catalog=catalog, folder=folder, bare=bare and folder is None), document)
    reader.beside_at, reader.spell = Reading(catalog=catalog, bare=bare), spell
    tables = reader.sections(document.content)
    return reader.scenario(tables, beside=given or {})


def is_scenario(document: Document) -> bool:
    """Whether a file asks something: it says so, or has a section that no catalogue file and no config has."""
    content = document.content
    if "model_type" in content:
        return False
    return any(key in OF_EVERY_FILE or _is_section(key, value) for key, value in content.items())


def _is_section(key: str, value: Value) -> bool:
    if key == "model":
        return isinstance(value, str)
    return bool(key) and key in CONCEPTS and not (key in KINDS and _holds_tables(value))


def _holds_tables(value: Value) -> bool:
    """Whether it is tables alone: [fabric.NAME] are entries of the catalogue, [fabric] with values is a section."""
    return isinstance(value, dict) and bool(value) and all(isinstance(one, dict) for one in value.values())


class _Reader:
    def __init__(self, form: Form, at: Reading, document: Document | None = None) -> None:
        self.form = form
        self.at = at
        self.document = document
        self.errors: list[DatahallError] = []
        self.replaced: list[str] = []
        self.beside: set[tuple[str, str]] = set()  # section and key of what was said beside a file
        self.beside_at = at
        self.spell: Speller = keyword
        self.given: frozenset[str] = frozenset()

    # -- what was written, by section -----------------------------------------------------------------------------

    def tables(self, given: Mapping[str, Raw]) -> Tables:
        """Flags and keywords under their sections; None is as if it had not been said."""
        found: Tables = {}
        fields, tables = self.form.fields, {concept.name: concept for concept in self.form.tables}
        for name, raw in given.items():
            if raw is None:
                continue
            if name in tables:
                found[name] = [self._table(name, one) for one in self._each(raw, tables[name])]
            elif name in fields:
                found.setdefault(fields[name].section, [{}])[0][fields[name].key] = raw
            else:
                self._unknown(name, [*fields, *tables])
        return found

    def _each(self, raw: Raw, concept: Concept) -> list[Raw]:
        """The tables of a flag or keyword that may be given several times."""
        tables = list(raw) if isinstance(raw, list | tuple) else [raw]
        if len(tables) > 1 and not concept.many:
            self._problem((), f"{len(tables)} tables of {concept.name}", "say it once", field=concept.name)
        return tables

    def sections(self, content: Mapping[str, Value]) -> Tables:
        """The tables of a file."""
        found: Tables = {"": [{}]}
        known = {concept.name: concept for concept in self.form.concepts}
        root = self.form.of("")
        for key, raw in content.items():
            if key in OF_EVERY_FILE:
                continue
            if key in root:
                found[""][0][key] = raw
            elif key in known and key:
                found[key] = self._rows(known[key], raw)
            elif key in CONCEPTS and key:
                self._problem((key,), f"{self.form.verb} takes no [{key}]", "leave it out")
            elif isinstance(raw, dict | list):
                tables = [f"[{name}]" for name in known if name]
                self._problem((key,), f'unknown section "{key}"', _meant(key, tables) or _known(tables))
            else:
                words = [*root, *OF_EVERY_FILE]
                hint = self._home(key) or _meant(key, words) or _known(words)
                self._problem((key,), f'unknown key "{key}"', hint)
        self._version(content)
        return found

    def _version(self, content: Mapping[str, Value]) -> None:
        if "version" not in content:
            self._problem((), '"version" is missing', f"write version = {VERSION}")
        elif content["version"] != VERSION:
            message = f"version is {shown(content['version'])}"
            self._problem(("version",), message, f"this release reads version = {VERSION}")
        asked = content.get("ask", self.form.verb)
        if asked != self.form.verb:
            self._problem(
                ("ask",), f"the file asks {shown(asked)}", f'leave it out, or ask = "{self.form.verb}"'
            )

    def _rows(self, concept: Concept, raw: Value) -> list[dict[str, Raw]]:
        rows = raw if isinstance(raw, list) else [raw]
        if isinstance(raw, list) and not concept.many and len(rows) != 1:
            self._problem((concept.name,), f"{len(rows)} tables of {concept.name}", f"one: [{concept.name}]")
            return [{}]
        if not all(isinstance(row, dict) for row in rows):
            head = f"[[{concept.name}]]" if concept.many else f"[{concept.name}]"
            self._problem((concept.name,), f"{concept.name} must be a table", f"write {head}")
            return [{}]
        return [dict(row) for row in rows if isinstance(row, dict)]

    def _table(self, name: str, raw: Raw) -> dict[str, Raw]:
        try:
            return inline_table(raw)
        except DatahallError as error:
            self._keep(error, name)
            return {}

    # -- from what was written to what it means ---------------------------------------------------------------------

    def scenario(self, tables: Tables, beside: Mapping[str, Raw] | None = None) -> Scenario:
        """Every section read and checked; all problems are raised together."""
        self._replace(tables, beside or {})
        self.given = given_names(self.form, tables)
        sections: dict[str, tuple[object, ...]] = {}
        said: dict[str, tuple[dict[str, Plain], ...]] = {}
        for concept in self.form.concepts:
            rows = tables.get(concept.name) or ([] if concept.inline else [{}])
            read = [self._read(concept, index, row) for index, row in enumerate(rows)]
            said[concept.name] = tuple(self._written(concept, values) for values in read)
            struct = concept.struct()
            attributes = {field.key: field.attribute for field in self.form.sections[concept.name]}
            sections[concept.name] = tuple(
                struct(**{attributes[key]: value for key, value in values.items()}) for values in read
            )
        self._missing(said)
        self._check_splits(said)
        if self.errors:
            if len(self.errors) == 1 and self.document is None:
                raise self.errors[0]
            in_file = self.document is not None
            raise problems_error(
                (self.document.path if self.document else "") or self.form.verb, self.errors, in_file=in_file
            )
        return Scenario(
            form=self.form, catalog=self.at.catalog, sections=sections, said=said,  # type: ignore[arg-type]
            document=self.document, beside=tuple(name for name, raw in (beside or {}).items() if raw is not None),
            replaced=tuple(self.replaced),
        )  # fmt: skip

    def _replace(self, tables: Tables, beside: Mapping[str, Raw]) -> None:
        """Put what was said beside a file over what the file says."""
        for section, rows in self.tables(beside).items():
            there = tables.get(section) or []
            self.beside |= {(section, key) for row in rows for key in row}
            if CONCEPTS[section].inline or not there:
                if there:
                    count = f"{len(there)} tables" if len(there) > 1 else "a table"
                    self.replaced.append(f"{count} of {section}")
                tables[section] = rows
                continue
            names = {field.key: field.name for field in self.form.sections[section]}
            for key, raw in rows[0].items():
                if len(there) > 1:
                    error = ScenarioError(
                        f"the file has {len(there)} tables [[{section}]]",
                        field=names[key],
                        hint="change it in the file",
                    )
                    self.errors.append(error)
                elif key in there[0]:
                    self.replaced.append(f"{names[key]} {shown(there[0][key])}")
                there[0][key] = raw

    def _read(self, concept: Concept, index: int, row: Mapping[str, Raw]) -> dict[str, object]:
        values: dict[str, object] = {}
        known = self.form.of(concept.name)
        for key, raw in row.items():
            field = known.get(key)
            if field is None:
                self._not_taken(concept, index, key, known)
                continue
            try:
                beside = (concept.name, key) in self.beside
                if isinstance(raw, str) and ENDLESS.search(raw):
                    raise ScenarioError(f"{shown(raw)} has a number of hundreds of digits")
                values[key] = field.kind.read(raw, self.beside_at if beside else self.at)
            except DatahallError as error:
                own, name = (key, concept.name) if concept.inline else (option(field.name), field.name)
                if concept.inline:
                    error.field = name
                self._keep(error, name, (concept, index, key), prefix=f"{own}: ")
        self._apply_rules(concept, index, row, values)
        return values

    def _written(self, concept: Concept, values: Mapping[str, object]) -> dict[str, Plain]:
        known = self.form.of(concept.name)
        return {key: known[key].kind.write(value) for key, value in values.items()}

    def _apply_rules(
        self, concept: Concept, index: int, row: Mapping[str, Raw], values: Mapping[str, object]
    ) -> None:
        """Refuse inputs that say nothing here, and pairs of which one would win."""
        for key, error in broken_rules(self.form, concept, row, values, self.given):
            self._keep(error, error.field, (concept, index, key))

    def _missing(self, said: Mapping[str, tuple[dict[str, Plain], ...]]) -> None:
        wrong = {error.field for error in self.errors}
        for name in self.form.required:
            field = self.form.fields.get(name)
            if field is None:
                if not said.get(name):
                    self._problem((), f"[[{name}]] is missing", "", field=name)
                continue
            if any(field.key in row for row in said.get(field.section, ())) or name in wrong:
                continue
            hint = f"e.g. {option(name, field.kind.sample)}"
            error = ScenarioError(f"{option(name)} is missing", field=name, hint=hint)
            self._keep(error, name)

    def _check_splits(self, said: Mapping[str, tuple[dict[str, Plain], ...]]) -> None:
        """Refuse degrees that the model does not divide by, before anything heavy is loaded to find out."""
        name = next(iter(said.get("", ())), {}).get("model")
        wrong = {error.field for error in self.errors}
        alone = self.document is None  # of a file the room that builds it finds all problems at once
        if not alone or not isinstance(name, str) or name.endswith(".json") or "model" in wrong:
            return
        for section, keys in DEGREES.items():
            for index, row in enumerate(said.get(section, ())):
                degrees = {key: value for key in keys if isinstance(value := row.get(key), int)}
                if not degrees or wrong & set(keys):
                    continue
                try:
                    model = self.at.catalog.model(name)
                    check_stage(model, **(degrees if section == "deployment" else _dense(degrees, model)))
                except ScenarioError as error:
                    self._keep(error, error.field, (CONCEPTS[section], index, error.field))

    # -- problems -----------------------------------------------------------------------------------------------------

    def _keep(
        self, error: DatahallError, name: str, place: tuple[Concept, int, str] | None = None, prefix: str = ""
    ) -> None:
        error.field = error.field or name
        if prefix and isinstance(error, ScenarioError) and not error.message.startswith("⟦"):
            error.message = prefix + error.message
        if place is not None and (place[0].name, place[2]) in self.beside:
            error.where = error.where or self.spell(name, None)
            error.message, error.hint = spelled(error.message, self.spell), spelled(error.hint, self.spell)
        if self.document is not None and not error.where:
            error.where = self.document.where(*self._keys(*place)) if place else self.document.path
        self.errors.append(error)

    def _keys(self, concept: Concept, index: int, key: str) -> tuple[str, ...]:
        assert self.document is not None
        if not concept.name:
            return (key,)
        if isinstance(self.document.content.get(concept.name), list):
            return (concept.name, str(index), key)
        return (concept.name, key)

    def _problem(self, keys: tuple[str, ...], message: str, hint: str, field: str = "") -> None:
        where = self.document.where(*keys) if self.document is not None else ""
        self.errors.append(ScenarioError(message, where=where, hint=hint, field=field))

    def _not_taken(self, concept: Concept, index: int, key: str, known: Mapping[str, Field]) -> None:
        if any(field.key == key for field in fields(concept.name)):
            message, hint = f"{self.form.verb} takes no {key}", "leave it out"
        else:
            message = f'unknown key "{key}"'
            path = f"{concept.name}." if concept.name and not concept.inline else ""
            own = nearest(key, known, 1) if concept.inline else ()
            hint = self._home(key, own) or _meant(key, known, path) or _known(known)
        error = ScenarioError(message, hint=hint)
        self._keep(error, concept.name or key, (concept, index, key))

    def _unknown(self, name: str, known: Iterable[str]) -> None:
        names = list(known)
        close = nearest(name, names, 1)
        hint = f"did you mean {option(close[0])}?" if close else _known(names)
        self.errors.append(ScenarioError(f"{self.form.verb} takes no {name}", hint=hint, field=name))

    def _home(self, key: str, near: Sequence[str] = ()) -> str:
        """Where a key stands that was written in another place, or as flags spell it, unless one `near` was meant."""
        homes = [
            field
            for section, found in self.form.sections.items()
            for field in found
            if section and key in ((field.key,) if CONCEPTS[section].inline else (field.key, field.name))
        ]
        if self.document is None:  # where there are no sections but the tables of flags
            words = [option(one.section if CONCEPTS[one.section].inline else one.name) for one in homes]
            return f"did you mean {' or '.join([*near, *words])}?" if words else ""
        places = [f"[{one.section}]{f' as {one.key}' if one.key != key else ''}" for one in homes]
        stands = f"it stands in {' or '.join(places)}" if homes else ""
        return f"did you mean {near[0]}? {stands}" if near and homes else stands


def _dense(degrees: Mapping[str, int], model: Model) -> dict[str, int]:
    """The degrees of a training layout, with experts spread so that their rules hold: its room has others for them."""
    return {**degrees, "ep": gcd(degrees["tp"], model.moe.num_experts) if model.moe else 1}


def _meant(word: str, known: Iterable[str], path: str = "") -> str:
    """Which of some names was perhaps meant, after what a file has before it."""
    close = nearest(word, known, 1)
    return f"did you mean {path}{close[0]}?" if close else ""


def _known(names: Iterable[str]) -> str:
    return f"known: {', '.join(names)}"

"""A file that asks: which verb it asks, and whether its question can be answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from datahall.answers.ask import form_of, prepare
from datahall.answers.verb import Verb
from datahall.answers.verbs import VERBS
from datahall.catalog import Catalog
from datahall.catalog.document import Document, Value
from datahall.errors import DatahallError, DocumentError, ScenarioError
from datahall.scenario.read import read_document
from datahall.scenario.scenario import Scenario


def verb_of(document: Document, verbs: Sequence[Verb]) -> Verb:
    """Which of some verbs a file asks: the one it names, or the one that takes most of what it says."""
    likely = likely_verbs(document, verbs)
    if len(likely) > 1:
        raise ScenarioError(
            f"{document.path} does not say what it asks", where=document.path, hint=_one_of(likely)
        )
    return likely[0]


def likely_verbs(document: Document, verbs: Sequence[Verb]) -> list[Verb]:
    """The verb that a file names, or those that take most of what it says."""
    asked = document.content.get("ask")
    if asked is not None:
        named = [verb for verb in verbs if verb.name == asked]
        if not named:
            raise ScenarioError(
                f"{document.path} asks {asked!r}", where=document.where("ask"), hint=_one_of(verbs)
            )
        return named
    taken = {verb.name: _taken(document.content, verb) for verb in verbs}
    most = max(taken.values())
    if not most:
        raise ScenarioError(
            f"{document.path} says nothing that is asked", where=document.path, hint=_one_of(verbs)
        )
    return [verb for verb in verbs if taken[verb.name] == most]


def _one_of(verbs: Iterable[Verb]) -> str:
    return "ask = one of " + ", ".join(f'"{verb.name}"' for verb in verbs)


def _taken(content: Mapping[str, Value], verb: Verb) -> int:
    """How many of the inputs that a file gives a verb takes."""
    form = form_of(verb.name)
    taken = [key for key in content if key in form.of("")]
    for key, value in content.items():
        known = form.of(key) if key and key in form.sections else {}
        rows = value if isinstance(value, list) else [value]
        taken += [name for row in rows if isinstance(row, dict) for name in row if name in known]
    return len(taken)


def checked(document: Document, catalog: Catalog) -> Scenario:
    """The question of a file, read and made as far as that goes without answering it; problems are raised."""
    likely = likely_verbs(document, [verb for verb in VERBS if verb.by_file])
    errors: list[DatahallError] = []
    for verb in likely:
        try:
            return _read(document, verb, catalog)
        except DatahallError as error:
            error.spell = form_of(verb.name).key
            errors.append(error)
    raise min(errors, key=lambda error: len(error.problems) if isinstance(error, DocumentError) else 1)


def _read(document: Document, verb: Verb, catalog: Catalog) -> Scenario:
    scenario = read_document(form_of(verb.name), document, catalog)
    if scenario.given("model"):
        with scenario.at(field="model"):
            scenario.model()
    prepare(scenario)
    return scenario

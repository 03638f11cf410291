"""Are these files right?  Catalogue TOML, scenarios and Hugging Face configs, every problem of every file at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from datahall.answer import Answer, Column, Table
from datahall.answers.file import checked
from datahall.answers.follow import follow
from datahall.catalog import json_document
from datahall.catalog.document import Document, read
from datahall.counted import counted
from datahall.economics.market import day_of
from datahall.errors import DatahallError, DocumentError, Problem, spelled
from datahall.scenario.form import quoted
from datahall.scenario.read import is_scenario
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.purchase import Purchase
from datahall.scenario.sections.views import Files
from datahall.serve.config.read import is_gateway, settings_of
from datahall.workload.config import read_config


def check(scenario: Scenario) -> Answer:
    """Check catalogue files, scenarios and model configs; a problem makes the verdict "no"."""
    paths = [Path(file) for file in scenario.one(Files).files]
    holds: list[tuple[str, str]] = []
    problems: list[Problem] = []
    uses: list[str] = []
    for path in paths:
        try:
            content, use = _content(scenario, path)
            holds.append((str(path), content))
            uses += [use] if use else []
        except DatahallError as error:
            problems += _problems(error, path)
    return Answer(
        kind="check",
        headline=_headline(paths, holds, problems),
        verdict="no" if problems else "yes",
        results={"num_files": len(paths), "num_problems": len(problems)},
        tables=_tables(problems, holds if len(paths) > 1 else []),
        next_commands=() if problems else tuple(uses[:1]),
    )


def _headline(paths: Sequence[Path], holds: Sequence[tuple[str, str]], problems: Sequence[Problem]) -> str:
    if problems:
        bad, noun = len(paths) - len(holds), "problem" if len(problems) == 1 else "problems"
        place = f"{bad} of {len(paths)} files" if len(paths) > 1 else str(paths[0])
        return f"{len(problems)} {noun} in {place}."
    return (
        f"{paths[0]} is right: it holds {holds[0][1]}."
        if len(paths) == 1
        else f"All {len(paths)} files are right."
    )


def _content(scenario: Scenario, path: Path) -> tuple[str, str]:
    """What a file holds, and the command that uses it."""
    document = _document(path)
    if is_gateway(document):
        settings = settings_of(document, day_of(Purchase(), scenario.catalog))
        return (
            f"a gateway for {counted(len(settings.models), 'model')}",
            f"datahall serve {quoted(str(path))}",
        )
    if is_scenario(document):
        verb = checked(document, scenario.catalog).verb
        return f"a scenario that asks {verb}", f"datahall {verb} {quoted(str(path))}"
    if path.suffix == ".json":
        model = read_config(path)
        return f"model {model.name}", follow(scenario, "show model", {"model": str(path)})
    entries = scenario.catalog.check(path)
    add = follow(scenario, "catalog add", {"file": str(path)}) if path.suffix == ".toml" else ""
    return ", ".join(entries), add


def _document(path: Path) -> Document:
    if path.suffix == ".json":
        return json_document.read(path)
    if path.suffix in {".toml", ""}:
        return read(path)
    raise DocumentError(
        str(path), [Problem(str(path), f'cannot check "{path.suffix}"', "a .toml or a .json file")]
    )


def _problems(error: DatahallError, path: Path) -> list[Problem]:
    found = (
        error.problems
        if isinstance(error, DocumentError)
        else (Problem(error.where or str(path), error.message, error.hint),)
    )
    return [
        Problem(
            spelled(problem.where, error.spell),
            spelled(problem.message, error.spell),
            spelled(problem.hint, error.spell),
        )
        for problem in found
    ]


def _tables(problems: Sequence[Problem], holds: Sequence[tuple[str, str]]) -> tuple[Table, ...]:
    found = Table(
        title="problems",
        columns=(Column("where"), Column("problem"), Column("write instead")),
        rows=tuple((problem.where, problem.message, problem.hint) for problem in problems),
    )
    right = Table(title="right", columns=(Column("file"), Column("holds")), rows=tuple(holds))
    return tuple(table for table in (found, right) if table.rows)

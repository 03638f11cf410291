"""Are these files right?  Catalogue TOML and Hugging Face configs, every problem of every file at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from datahall.answer import Answer, Column, Table
from datahall.catalog import Catalog
from datahall.errors import DatahallError, DocumentError, Problem, ScenarioError
from datahall.show.bounds import opened


def check(files: Sequence[str | Path] | str | Path, *, catalog: Catalog | None = None) -> Answer:
    """Check catalogue files (.toml) and model configs (.json); the verdict is "no" where there is a problem."""
    paths = [Path(file) for file in ([files] if isinstance(files, (str, Path)) else files)]
    if not paths:
        raise ScenarioError("no file to check", hint="datahall check my-chip.toml")
    shelf = opened(catalog)
    holds: list[tuple[str, str]] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            holds.append((str(path), ", ".join(_entries(path, shelf))))
        except DatahallError as error:
            problems += _problems(error, path)
    bad = len(paths) - len(holds)
    good = f"{len(holds)} of {len(paths)} files are right" if len(paths) > 1 else f"{paths[0]} is right"
    found = f"{len(problems)} problem{'' if len(problems) == 1 else 's'} in {bad} of {len(paths)} file{'s'[: len(paths) > 1]}."
    return Answer(
        kind="check",
        inputs={"files": ", ".join(map(str, paths))},
        headline=found if problems else f"{good}: it holds {holds[0][1]}." if len(paths) == 1 else f"{good}.",
        verdict="no" if problems else "yes",
        results={"num_files": len(paths), "num_problems": len(problems)},
        tables=_tables(problems, holds if len(paths) > 1 else []),
        next_commands=() if problems else tuple(f"datahall catalog add {p}" for p in paths if p.suffix == ".toml")[:1],
    )


def _entries(path: Path, shelf: Catalog) -> tuple[str, ...]:
    if path.suffix == ".json":
        from datahall.catalog.huggingface import from_config

        return (f"model {from_config(path).name}",)
    if path.suffix not in {".toml", ""}:
        raise DocumentError(str(path), [Problem(str(path), f'cannot check "{path.suffix}"', "a .toml or a config.json")])
    return shelf.check(path)


def _problems(error: DatahallError, path: Path) -> list[Problem]:
    if isinstance(error, DocumentError):
        return list(error.problems)
    return [Problem(error.where or str(path), error.message, error.hint)]


def _tables(problems: Sequence[Problem], holds: Sequence[tuple[str, str]]) -> tuple[Table, ...]:
    found = Table(
        title="problems",
        columns=(Column("where"), Column("problem"), Column("write instead")),
        rows=tuple((problem.where, problem.message, problem.hint) for problem in problems),
    )
    right = Table(title="right", columns=(Column("file"), Column("holds")), rows=tuple(holds))
    return tuple(table for table in (found, right) if table.rows)

"""Are these files right?  Catalogue TOML and Hugging Face configs, every problem of every file at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from datahall.answer import Answer, Column, Table
from datahall.catalog import Catalog
from datahall.catalog.catalog import user_folder
from datahall.errors import DatahallError, DocumentError, Problem, ScenarioError
from datahall.show.bounds import opened


def check(files: Sequence[str | Path] | str | Path, *, catalog: Catalog | None = None) -> Answer:
    """Check catalogue files (.toml) and model configs (.json); a problem makes the verdict "no"."""
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
    return Answer(
        kind="check",
        inputs={"files": ", ".join(map(str, paths))},
        headline=_headline(paths, holds, problems),
        verdict="no" if problems else "yes",
        results={"num_files": len(paths), "num_problems": len(problems)},
        tables=_tables(problems, holds if len(paths) > 1 else []),
        next_commands=()
        if problems
        else tuple(f"datahall catalog add {p}" for p in paths if p.suffix == ".toml")[:1],
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


def catalog_add(file: str | Path, *, replace: bool = False, catalog: Catalog | None = None) -> Answer:
    """Check a TOML file and copy it into your own folder; its problems are raised all at once."""
    names = opened(catalog).add(Path(file), replace=replace)
    shows = [f"datahall show {name}" for name in names if name.startswith(("chip ", "model "))]
    return Answer(
        kind="add",
        inputs={"file": str(file), "replace": replace},
        headline=f"Added {', '.join(names)} to {user_folder()}.",
        results={"num_entries": len(names)},
        tables=(),
        next_commands=tuple(shows[:3]),
    )


def _entries(path: Path, shelf: Catalog) -> tuple[str, ...]:
    if path.suffix == ".json":
        from datahall.catalog.huggingface import from_config

        return (f"model {from_config(path).name}",)
    if path.suffix not in {".toml", ""}:
        raise DocumentError(
            str(path), [Problem(str(path), f'cannot check "{path.suffix}"', "a .toml or a config.json")]
        )
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

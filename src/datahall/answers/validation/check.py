"""Are these files right?  Catalogue TOML, scenarios and Hugging Face configs, every problem of every file at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from datahall.answer import Answer, Column, Table
from datahall.answers.bounds import opened
from datahall.catalog import Catalog
from datahall.catalog.catalog import user_folder
from datahall.catalog.document import Document, read
from datahall.errors import DatahallError, DocumentError, Problem, ScenarioError

if TYPE_CHECKING:
    from datahall.fabric.flows.outcome import FlowScenario
    from datahall.inference.scenario import ServingScenario

# Tables that only such a scenario has; [fabric.NAME] and [model.NAME] are entries of the catalogue.
TABLES = {
    "serving": {"pool", "traffic", "slo", "autoscaling", "outage", "cache", "region"},
    "fabric": {"job", "background", "failure", "stall"},
}


def check(files: Sequence[str | Path] | str | Path, *, catalog: Catalog | None = None) -> Answer:
    """Check catalogue files and scenarios (.toml) and model configs (.json); a problem makes the verdict "no"."""
    paths = [Path(file) for file in ([files] if isinstance(files, (str, Path)) else files)]
    if not paths:
        raise ScenarioError("no file to check", hint="datahall check my-chip.toml")
    shelf = opened(catalog)
    holds: list[tuple[str, str]] = []
    problems: list[Problem] = []
    uses: list[str] = []
    for path in paths:
        try:
            entries, use = _entries(path, shelf)
            holds.append((str(path), ", ".join(entries)))
            uses += [use] if use else []
        except DatahallError as error:
            problems += _problems(error, path)
    return Answer(
        kind="check",
        inputs={"files": ", ".join(map(str, paths))},
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


def _entries(path: Path, shelf: Catalog) -> tuple[tuple[str, ...], str]:
    """What a file holds, and the command that uses it."""
    if path.suffix == ".json":
        from datahall.catalog.huggingface import from_config

        return (f"model {from_config(path).name}",), ""
    if path.suffix not in {".toml", ""}:
        raise DocumentError(
            str(path), [Problem(str(path), f'cannot check "{path.suffix}"', "a .toml or a config.json")]
        )
    document = read(path)
    kind = scenario_kind(document)
    if kind == "serving":
        from datahall.inference.scenario import serving_scenario_of

        scenario = serving_scenario_of(document, shelf)
        for one in scenario.streams:
            if one.traffic.trace is not None:
                one.traffic.trace.read()
        return (_service(scenario),), f"datahall simulate serve {path}"
    if kind == "fabric":
        from datahall.answers.ask import form_of
        from datahall.fabric.flows.outcome import flow_scenario
        from datahall.scenario.read import read_document

        asked = read_document(form_of("simulate fabric"), document, shelf)
        return (_traffic(flow_scenario(asked)),), f"datahall simulate fabric {path}"
    return shelf.check(path), f"datahall catalog add {path}" if path.suffix == ".toml" else ""


def scenario_kind(document: Document) -> str:
    """ "serving" or "fabric", as the file says or its tables show; "" for a file of the catalogue."""
    said = document.content.get("kind")
    if isinstance(said, str):
        if said not in TABLES:
            hint = f"one of {', '.join(TABLES)}"
            raise DocumentError(document.path, [Problem(document.where("kind"), f'kind is "{said}"', hint)])
        return said
    content = document.content
    wired = content.get("fabric")
    if isinstance(content.get("model"), str):
        return "serving"
    if isinstance(wired, dict) and not all(isinstance(entry, dict) for entry in wired.values()):
        return "fabric"
    return next((kind for kind, names in TABLES.items() if names & set(content)), "")


def _service(scenario: ServingScenario) -> str:
    fleet = scenario.fleet
    extras = [
        f"{len(names)} {word}{'s' if len(names) != 1 else ''}"
        for word, names in (("region", scenario.regions), ("outage", fleet.outages))
        if names
    ]
    extras += ["autoscaling"] if fleet.autoscaling else []
    extras += ["a cache of answers"] if scenario.cache else []
    streams = " + ".join(one.traffic.name for one in scenario.streams)
    return (
        f"a serving scenario, {scenario.model.name} on {_many(fleet.num_replicas, 'replica')} of "
        f"{_many(fleet.num_chips, 'chip')} in all, traffic {streams}"
        + (f", with {', '.join(extras)}" if extras else "")
    )


def _traffic(scenario: FlowScenario) -> str:
    fabric = scenario.net.fabric
    return (
        f"a fabric scenario, {_many(len(scenario.jobs), 'job')} and {_many(len(scenario.bursts), 'burst')} "
        f"of background on {fabric.name} with {_many(fabric.num_hosts, 'chip')}"
    )


def _many(num: int, word: str) -> str:
    return f"{num:,} {word}{'' if num == 1 else 's'}"


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

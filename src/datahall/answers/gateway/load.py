"""`gateway load`: an endpoint under load, in vLLM's figures, beside what the simulation says of the same requests."""

from __future__ import annotations

from datahall.answer import Answer, Cell, Column, Table
from datahall.answers.follow import follow
from datahall.answers.gateway.secret import secret_in
from datahall.counted import counted
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.operations.gateway import Endpoint
from datahall.serve.load.beside import simulated, simulated_fleet
from datahall.serve.load.drawn import drawn
from datahall.serve.load.drive import Drive
from datahall.serve.load.load import Load, play
from datahall.serve.load.measured import SHARES, Measured, at, vllm_figures
from datahall.units import fmt

MOST_ERRORS = 5  # that are shown
NAMES = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2el": "E2E"}


def gateway_load(scenario: Scenario) -> Answer:
    """Send requests, and say what came of them."""
    asked, what = scenario.one(Endpoint), drawn(scenario)
    fleet = simulated_fleet(scenario) if scenario.root.model else None
    model, found = play(Load(url=asked.url, key=secret_in(asked.key_from), model=asked.served, what=what))
    beside = None if fleet is None or not found.num_completed else simulated(fleet, what)
    return Answer(
        kind="load",
        headline=_headline(model, found),
        verdict="no" if found.num_failed else "yes",
        results={"model": model, **vllm_figures(found), **_beside(beside)},
        tables=(
            *((_latencies(found, beside),) if found.num_completed else ()),
            *((_errors(found),) if found.errors else ()),
        ),
        notes=_notes(found, what),
        next_commands=(follow(scenario, changes={"seed": scenario.root.seed + 1}),),
    )


def _headline(model: str, found: Measured) -> str:
    if not found.num_completed:
        return f"{model} answered none of {counted(found.num_failed, 'request')}."
    failed = f", {found.num_failed:,} failed" if found.num_failed else ""
    rate, tokens = found.per_s(found.num_completed), found.per_s(found.output_tokens)
    return (
        f"{model}: {counted(found.num_completed, 'request')} answered{failed}; {fmt(rate, 'requests/s')}, "
        f"{fmt(tokens, 'tokens_per_s')} out, TTFT {fmt(at(found.ttft_s, 50.0), 's', 3)} at the median."
    )


def _latencies(found: Measured, beside: Measured | None) -> Table:
    """Mean and percentiles, with those of the simulation where there is one."""
    shares = ("mean", *SHARES)
    rows: list[tuple[Cell, ...]] = []
    for source, some in (("measured", found), ("simulated", beside)):
        if some is None:
            continue
        for name, values_s in some.latencies_s().items():
            if values_s.size:
                places = (at(values_s, place) for place in SHARES.values())
                rows.append((NAMES[name], source, float(values_s.mean()), *places))
    order = list(NAMES.values())
    rows.sort(key=lambda row: order.index(str(row[0])))
    columns = (Column("latency"), Column("source"), *(Column(share, "s") for share in shares))
    return Table(title="Latencies", columns=columns, rows=tuple(rows))


def _errors(found: Measured) -> Table:
    rows = tuple((error, count) for error, count in found.errors.items())[:MOST_ERRORS]
    return Table(title="What failed", columns=(Column("error"), Column("requests", "count")), rows=rows)


def _beside(beside: Measured | None) -> dict[str, Cell]:
    if beside is None:
        return {}
    return {f"simulated_{name}": value for name, value in vllm_figures(beside).items()}


def _notes(found: Measured, what: Drive) -> tuple[str, ...]:
    notes = []
    if found.is_late:
        late = fmt(at(found.late_s, 99.0), "s", 2)
        notes.append(
            f"requests were sent up to {late} late (p99), as this process could not keep up; latencies count from when "
            "they were due"
        )
    if found.num_kept:
        notes.append(
            f"{counted(found.num_kept, 'answer')} came out of a cache: the figures are not of a model alone"
        )
    if found.num_uncounted:
        notes.append(
            f"it does not say the tokens of {counted(found.num_uncounted, 'answer')}: prompts count as asked, "
            "output by its pieces"
        )
    if found.comes_in_lumps:
        notes.append("several tokens came in one piece: ITL is of pieces, TPOT of tokens")
    if not what.users:
        notes.append("an open loop: requests came when they were due, whatever others took")
    return tuple(notes)

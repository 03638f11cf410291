"""`datahall simulate fabric`: jobs, background and failures on a fabric, played flow by flow."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from datahall.answer import Answer, Cell
from datahall.answers.fabric.simulation_tables import (
    Sent,
    chart,
    difference_table,
    job_table,
    least,
    link_name,
    link_table,
    load,
    mean,
    timeline,
)
from datahall.breakdown import Breakdown
from datahall.catalog import Catalog
from datahall.errors import ScenarioError, nearest
from datahall.events import new_trace, perfetto
from datahall.fabric.flows.congestion import buffer_cycle
from datahall.fabric.flows.crosscheck import FIDELITIES, Crosscheck, Fidelity, crosscheck
from datahall.fabric.flows.jobs import Level
from datahall.fabric.scenario import Outcome, play, read_scenario
from datahall.units import fmt

MOST_CHARTED = 300_000  # flows


def simulate_fabric(
    file: str | Path, *, level: str = "symmetric", check_with: str = "", catalog: Catalog | None = None
) -> Answer:
    """Play a scenario; `check_with` plays or computes it at another level too and shows the difference."""
    return fabric_answer(*simulated(file, level=level, check_with=check_with, catalog=catalog))


def simulated(
    file: str | Path, *, level: str = "symmetric", check_with: str = "", catalog: Catalog | None = None
) -> tuple[Outcome, Crosscheck | None]:
    """Play a scenario, and cross-check it where that is asked for."""
    played, levels = _level(level), _ordered(level, check_with) if check_with else None
    outcome = play(read_scenario(file, catalog), played)
    return outcome, crosscheck(outcome.scenario, *levels, known=outcome) if levels else None


def fabric_trace(outcome: Outcome) -> bytes:
    """The run as a Perfetto trace: a track per sending chip, a slice per flow."""
    flows, run, traffic = outcome.traffic.flows, outcome.run, outcome.traffic
    assert flows.label is not None
    kept = np.flatnonzero((traffic.source >= 0) & np.isfinite(run.end_s) & np.isfinite(run.ready_s))
    trace = new_trace(kept.size)
    trace.num_recorded[0] = kept.size
    rows = trace.kept[: kept.size]
    rows["time_s"], rows["duration_s"] = run.ready_s[kept], run.end_s[kept] - run.ready_s[kept]
    rows["kind"], rows["a"], rows["b"] = flows.label[kept], traffic.source[kept], traffic.target[kept]
    rows["x"] = flows.num_bytes[kept]
    chips = {int(chip): f"chip {chip}" for chip in np.unique(traffic.source[kept])}
    return perfetto(trace, dict(enumerate(traffic.names)), chips)


def _level(text: str) -> Level:
    if text not in ("symmetric", "full"):
        close = nearest(text, ("symmetric", "full"), 1)
        guess = f"; did you mean {close[0]}?" if close else ""
        raise ScenarioError(f'"{text}" is not a level to play at', hint=f"symmetric or full{guess}")
    return "full" if text == "full" else "symmetric"


def _ordered(level: str, other: str) -> tuple[Fidelity, Fidelity]:
    if other not in FIDELITIES or other == level:
        known = ", ".join(one for one in FIDELITIES if one != level)
        raise ScenarioError(f'"{other}" is not another level to check with', hint=f"one of {known}")
    both = sorted((_fidelity(level), _fidelity(other)), key=FIDELITIES.index)
    return both[0], both[1]


def _fidelity(text: str) -> Fidelity:
    return next(one for one in FIDELITIES if one == text)


def fabric_answer(outcome: Outcome, other: Crosscheck | None = None) -> Answer:
    """What happened, in the order a person asks."""
    scenario, run = outcome.scenario, outcome.run
    done = run.num_stuck == 0
    return Answer(
        kind="fabric simulation",
        inputs={"scenario": scenario.path, "level": outcome.level, "seed": scenario.net.seed},
        headline=_headline(outcome),
        binding=_binding(outcome),
        verdict="yes" if done else "no",
        results=_results(outcome, other),
        tables=(
            job_table(outcome),
            *((difference_table(other),) if other else ()),
            link_table(outcome),
            timeline(outcome),
        ),
        figure=_figure(outcome) if done and run.end_s.size else None,
        charts=(chart(outcome),)
        if done and 0 < run.end_s.size <= MOST_CHARTED and run.makespan_s > 0
        else (),
        notes=_notes(outcome),
        next_commands=_next(outcome, other),
    )


def _headline(outcome: Outcome) -> str:
    run, scenario = outcome.run, outcome.scenario
    if run.num_stuck:
        return (
            f"{run.num_stuck:,} of {run.end_s.size:,} flows never end: "
            "their path goes over a link that stays out, or they wait for one that does."
        )
    rows = Sent(outcome)
    return (
        f"{scenario.name} on {scenario.net.fabric.name} takes {fmt(run.makespan_s, 's')}; flows get "
        f"{fmt(mean(rows.fraction), 'fraction')} of what their ports allow on average, "
        f"the slowest {fmt(least(rows.fraction), 'fraction')}."
    )


def _binding(outcome: Outcome) -> str:
    run, fabric = outcome.run, outcome.scenario.net.fabric
    busy = load(outcome)
    busiest = int(busy.argmax()) if busy.size else -1
    slow = _last(outcome)
    text = f"The slowest flow is {_flow_name(outcome, slow)}." if run.end_s.size else ""
    if busiest < 0 or busy[busiest] <= 0:
        return text
    share = fmt(float(busy[busiest]), "fraction")
    return f"{text} The fullest link is {link_name(fabric, busiest)}, busy {share} of the time."


def _last(outcome: Outcome) -> int:
    """The flow that ended last; a join, which carries nothing, only ends with it."""
    real = np.flatnonzero(outcome.traffic.source >= 0)
    return int(real[outcome.run.end_s[real].argmax()]) if real.size else 0


def _figure(outcome: Outcome) -> Breakdown:
    """When the last flow ended: when it could start, its latency, its bytes at the rate it had."""
    flows, run, flow = outcome.traffic.flows, outcome.run, _last(outcome)
    assert flows.delay_s is not None
    ready, end = float(run.ready_s[flow]), float(run.end_s[flow])
    delay, size = float(flows.delay_s[flow]), float(flows.num_bytes[flow])
    moving = end - ready - delay
    parts = (
        Breakdown(name="until it could start", value=ready, unit="s", note="its turn, or what it waited for"),
        Breakdown(name="latency and start-up", value=delay, unit="s", note="of all its rounds"),
        Breakdown(name="bytes on the wire", value=size, unit="bytes"),
        Breakdown(
            name="mean rate",
            value=size / moving if moving > 0 else np.inf,
            unit="bytes_per_s",
            note="max-min fair share, over time",
        ),
    )
    return Breakdown(
        name=f"end of the last flow, {_flow_name(outcome, flow).partition(',')[0]}",
        value=end,
        unit="s",
        formula="until it could start + latency and start-up + bytes on the wire / mean rate",
        parts=parts,
        basis="datasheet only",
    )


def _flow_name(outcome: Outcome, flow: int) -> str:
    traffic, run = outcome.traffic, outcome.run
    assert traffic.flows.label is not None
    name = traffic.names[int(traffic.flows.label[flow])]
    ends = f"chip {traffic.source[flow]} → {traffic.target[flow]} of {name}"
    if not np.isfinite(run.end_s[flow]):
        return f"{ends}, which never ends"
    end_s = float(run.end_s[flow])
    return f"{ends}, {fmt(end_s - float(run.ready_s[flow]), 's')} until {fmt(end_s, 's')}"


def _results(outcome: Outcome, other: Crosscheck | None) -> dict[str, Cell]:
    run, rows = outcome.run, Sent(outcome)
    found: dict[str, Cell] = {
        "makespan_s": run.makespan_s if np.isfinite(run.makespan_s) else None,
        "mean_fraction": mean(rows.fraction),
        "slowest_fraction": least(rows.fraction),
        "mean_bytes_per_s": mean(rows.rate),
        "slowest_bytes_per_s": least(rows.rate),
        "num_flows": int(rows.real.size),
        "num_stuck": run.num_stuck,
        "num_events": run.num_events,
        "num_solves": run.num_solves,
    }
    if other:
        found["worst_difference_fraction"] = other.worst_fraction
    return found


def _notes(outcome: Outcome) -> tuple[str, ...]:
    net = outcome.scenario.net
    lines = [
        f"{net.routing.policy} routing, {net.routing.num_parts} "
        f"path{'s' if net.routing.num_parts > 1 else ''} per flow; "
        f"{net.transport.kind}; rates are max-min fair; bytes are those on the wire",
    ]
    if outcome.run.num_stuck:
        lines.append(
            "flows keep their path: give the failure an end with until, or let it start at 0 s elsewhere"
        )
    if net.transport.head_of_line:
        circle = buffer_cycle(outcome.traffic.flows.paths, net.fabric.num_links)
        if circle.size:
            lines.append(
                f"{circle.size:,} links wait for each other in a circle: one lane can lock up; use lanes = 2"
            )
    if outcome.grain_fraction:
        share = fmt(outcome.grain_fraction, "fraction")
        lines.append(f"many flows: ends within {share} of a flow's own time are taken together")
    if outcome.level == "symmetric":
        lines.append(
            "a phase starts when the one before has ended everywhere; --level full plays each message"
        )
    return tuple(lines)


def _next(outcome: Outcome, other: Crosscheck | None) -> tuple[str, ...]:
    ask = f"datahall simulate fabric {outcome.scenario.path}"
    level = "" if outcome.level == "symmetric" else " --level full"
    check = () if other else (f"{ask}{level} --check-with closed-form",)
    return (*check, f"{ask}{level} -o run.perfetto-trace")

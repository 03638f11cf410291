"""Jobs, background traffic and failures on a fabric, simulated flow by flow."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from datahall.answer import Answer, Cell
from datahall.answers.fabric.idle import idle_in_run, said_of_run
from datahall.answers.fabric.simulation_tables import chart, difference_table, job_table, link_table, timeline
from datahall.answers.follow import follow
from datahall.answers.reply import Traced
from datahall.breakdown import Source
from datahall.cluster.used import used_by_wires
from datahall.counted import with_article
from datahall.fabric.flows.crosscheck import Crosscheck, crosscheck, level_named
from datahall.fabric.flows.detours import usual_reroute
from datahall.fabric.flows.early import Fidelity, check_levels
from datahall.fabric.flows.idle import idle_inputs
from datahall.fabric.flows.outcome import FlowScenario, Outcome, flow_scenario, simulate_flows
from datahall.fabric.flows.summary import (
    JobRow,
    LastFlow,
    Sent,
    fullest,
    job_rows,
    last_flow,
    makespan_s,
    num_locked,
    trace_of,
)
from datahall.fabric.routing.policies import SPRAY_EFFICIENCY
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign, FabricJob
from datahall.scenario.sections.failure import Failure
from datahall.scenario.sections.views import Simulation
from datahall.units import fmt

MOST_CHARTED = 300_000  # flows

AGAIN = {
    "go-back-n": "with all that is under way behind it",
    "selective": "alone",
    "halving": "at half the rate",
}


def simulate_fabric(scenario: Scenario) -> Traced:
    """Simulate a scenario; `check_with` does it in another detail too and shows the difference."""
    flows, levels = _asked(scenario)
    outcome = simulate_flows(flows, level_named(scenario.one(Simulation).detail))
    other = crosscheck(outcome.scenario, *levels, known=outcome) if levels else None
    return Traced(_answer(scenario, outcome, other), partial(trace_of, outcome))


def prepare(scenario: Scenario) -> None:
    """Make the fabric, the jobs and what fails, without simulating them."""
    _asked(scenario)


def _asked(scenario: Scenario) -> tuple[FlowScenario, tuple[Fidelity, Fidelity] | None]:
    asked = scenario.one(Simulation)
    levels = check_levels(asked.detail, asked.check_with) if asked.check_with else None
    return flow_scenario(scenario), levels


def _answer(scenario: Scenario, outcome: Outcome, other: Crosscheck | None) -> Answer:
    """What happened, in the order a person asks."""
    run, sent, last = outcome.run, Sent(outcome), last_flow(outcome)
    jobs = job_rows(outcome, sent)
    done = run.num_stuck == 0
    idle = idle_inputs(outcome, scenario.one(FabricDesign), scenario.catalog, said_of_run(scenario))
    rerouted, sources = ([], []) if "failure" in idle else _rerouted(scenario, outcome)
    drawn = done and 0 < sent.num_flows <= MOST_CHARTED and run.makespan_s > 0
    return Answer(
        kind="fabric simulation",
        inputs={**used_by_wires(scenario, outcome.scenario.wired.num_hosts)},
        headline=_headline(scenario, outcome, sent, jobs),
        binding=_binding(outcome, last),
        verdict="yes" if done else "no",
        results=_results(outcome, sent, jobs, other),
        tables=(
            job_table(jobs),
            *((difference_table(other),) if other else ()),
            link_table(outcome),
            timeline(outcome),
        ),
        figure=last.figure if done and last is not None else None,
        charts=(chart(outcome, sent),) if drawn else (),
        notes=(
            *_notes(outcome),
            *_unasked(scenario, outcome),
            *rerouted,
            *idle_in_run(scenario, idle, sprays=outcome.scenario.net.routing.rule.sprays),
        ),
        sources=tuple(sources),
        next_commands=_next(scenario, other),
    )


def _headline(scenario: Scenario, outcome: Outcome, sent: Sent, jobs: Sequence[JobRow]) -> str:
    run, fabric = outcome.run, outcome.scenario.net.fabric
    if run.num_stuck:
        ends = "flow never ends" if run.num_stuck == 1 else "flows never end"
        return (
            f"{run.num_stuck:,} of {run.num_flows:,} {ends}: "
            "the path goes over a link that stays out, or waits for one that does."
        )
    first, *others = [_repeated(job) for job in jobs[:3]]
    alone = len(outcome.scenario.asks) == 1
    if alone:
        first = _repeated(jobs[0], f"{jobs[0].name} of {fmt(jobs[0].size_bytes, 'bytes')}")
    name = scenario.root.name or " + ".join((first, *others))
    each = (
        f" ({fmt(jobs[0].run_s, 's')} each)"
        if alone and jobs[0].num_runs > 1 and jobs[0].run_s is not None
        else ""
    )
    return (
        f"{name} on {with_article(fabric.name)} takes {fmt(run.makespan_s, 's')}{each}; flows get "
        f"{fmt(sent.mean_fraction, 'fraction')} of what their ports allow on average, "
        f"the slowest {fmt(sent.slowest_fraction, 'fraction')}."
    )


def _repeated(job: JobRow, name: str = "") -> str:
    """A job, and how often it runs if more than once."""
    return f"{f'{job.num_runs:,} × ' if job.num_runs > 1 else ''}{name or job.name}"


def _binding(outcome: Outcome, last: LastFlow | None) -> str:
    link = fullest(outcome)
    text = f"The last flow to end is {_flow(last)}." if last is not None else ""
    if link is None or link.load_fraction <= 0:
        return text
    return f"{text} The fullest link is {link.name}, busy {fmt(link.load_fraction, 'fraction')} of the time."


def _flow(last: LastFlow) -> str:
    ends = f"chip {last.source} → {last.target} of {last.job}"
    if not last.ends:
        return f"{ends}, which never ends"
    return f"{ends}, {fmt(last.time_s, 's')} until {fmt(last.end_s, 's')}"


def _results(
    outcome: Outcome, sent: Sent, jobs: Sequence[JobRow], other: Crosscheck | None
) -> dict[str, Cell]:
    run = outcome.run
    found: dict[str, Cell] = {
        "makespan_s": makespan_s(outcome),
        "mean_fraction": sent.mean_fraction,
        "slowest_fraction": sent.slowest_fraction,
        "mean_bytes_per_s": sent.mean_bytes_per_s,
        "slowest_bytes_per_s": sent.slowest_bytes_per_s,
        "num_flows": sent.num_flows,
        "num_stuck": run.num_stuck,
        "num_events": run.num_events,
        "num_solves": run.num_solves,
    }
    if len(outcome.scenario.asks) == 1:
        found |= {"size_bytes": jobs[0].size_bytes, "num_runs": jobs[0].num_runs, "run_s": jobs[0].run_s}
    carrier = outcome.scenario.net.carrier
    if carrier.loss_fraction:
        found["resent_fraction"] = carrier.resent_fraction(outcome.traffic.kept_fraction)
    if other:
        found["worst_difference_fraction"] = other.worst_fraction
    return found


def _notes(outcome: Outcome) -> tuple[str, ...]:
    net = outcome.scenario.net
    parts, transport = net.routing.num_parts, net.carrier.transport.name
    split = f", each flow in {parts} queue pairs, which count as flows" if parts > 1 else ""
    lines = [
        f"{net.routing.policy} routing{split}; {transport}; rates are max-min fair; bytes are those on the wire",
        *_transport(outcome),
    ]
    if net.routing.rule.sprays:
        kept = fmt(SPRAY_EFFICIENCY, "fraction")
        lines.append(f"sprayed packets come out of order: flows keep {kept} of their rate, as vendors report")
    if outcome.run.num_stuck:
        lines.append(
            "no way is left around what is out: give the failure a duration, or leave those chips out"
        )
    locked = num_locked(outcome)
    if locked:
        lines.append(f"{locked:,} links wait for each other in a circle: one lane can lock up; use two lanes")
    if outcome.grain_fraction:
        share = fmt(outcome.grain_fraction, "fraction")
        lines.append(f"many flows: ends within {share} of a flow's own time are taken together")
    if outcome.level == "symmetric":
        lines.append(
            "a phase starts when the one before has ended everywhere; full detail simulates each message"
        )
    return tuple(lines)


def _unasked(scenario: Scenario, outcome: Outcome) -> tuple[str, ...]:
    """What runs of jobs whose algorithm nobody said, and the array of those whose size nobody did."""
    pairs = list(zip(scenario.all(FabricJob), outcome.scenario.asks, strict=True))
    lines = [f"by default {ran.collective} is {ran.algorithm}" for job, ran in pairs if not job.algorithm]
    for (_, ran), said in zip(pairs, scenario.said.get("job", ()), strict=False):
        if "size" not in said:
            lines.append(f"by default the array of {ran.collective} is {fmt(ran.size_bytes, 'bytes')}")
    return tuple(dict.fromkeys(lines))


def _rerouted(scenario: Scenario, outcome: Outcome) -> tuple[list[str], list[Source]]:
    """When flows go around what fails, and where the time is from if nobody said it."""
    known = [
        one.at_s
        for one in outcome.scenario.net.known_later
        if one.at_s < outcome.run.makespan_s or outcome.run.num_stuck
    ]
    lines = [f"from {fmt(at_s, 's')} on flows take the ways that are left then" for at_s in known]
    transport, unsaid = outcome.scenario.net.carrier.transport, {}
    for failure in scenario.all(Failure):
        usual = usual_reroute(failure, transport, scenario.catalog)
        if failure.reroute_s is None and failure.start_s + usual.reroute_s in known:
            unsaid[usual.name] = usual.facts["reroute_s"]
    for name, fact in unsaid.items():
        within = f", {fmt(fact.low, 's')} to {fmt(fact.high, 's')}" if fact.low and fact.high else ""
        lines.append(
            f"rerouting takes {fmt(fact.value, 's')}, which nobody said ({scenario.catalog.reroute(name).title}"
            f"{within}; {fact.note}); a failure's reroute says another"
        )
    return lines, [fact.source for fact in unsaid.values()]


def _transport(outcome: Outcome) -> tuple[str, ...]:
    """What the transport did to flows that no link is to blame for."""
    carrier, new = outcome.scenario.net.carrier, fmt(outcome.traffic.kept_fraction, "fraction")
    transport = carrier.transport
    if transport.settles or transport.steady_fraction < 1.0:
        waits = ", and wait while it settles" if transport.settles else ""
        return (f"{transport.title} marks and slows down: flows keep {new} of their rate{waits}",)
    if not carrier.loss_fraction:
        return ()
    lost, wait = fmt(carrier.loss_fraction, "fraction"), fmt(carrier.wait_s, "s", 3)
    return (
        f"{lost} of packets are lost, and each is sent again {AGAIN[carrier.repeat]}: flows keep {new} of their rate; "
        f"a message waits {wait} on average for the timeout that tells of its last packet",
    )


def _next(scenario: Scenario, other: Crosscheck | None) -> tuple[str, ...]:
    check = () if other else (follow(scenario, changes={"check_with": "closed-form"}),)
    return (*check, follow(scenario, tail="-o run.perfetto-trace"))

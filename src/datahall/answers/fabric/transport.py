"""Transports on one network: what each makes of a message, of load, of a loss, of an incast and of a stuck receiver."""

from __future__ import annotations

from math import isfinite

from datahall.answer import Answer, Axis, Cell, Column, LineChart, Series, Table, keyed
from datahall.answers.follow import explained, follow
from datahall.cluster.used import used_by_design
from datahall.counted import counted, with_article
from datahall.fabric.design.asked import design_of
from datahall.fabric.design.design import Design
from datahall.fabric.transport.compare import Behaviour, Comparison, Ladder, compare, loss_curves, time_curves
from datahall.fabric.transport.early import network
from datahall.scenario.kinds import Plain
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.transports import Transports
from datahall.units import fmt

MOST_TO_ALL = 256  # chips that a command offers to let send to all others: with more it takes long


def show_transport(scenario: Scenario) -> Answer:
    """Transports side by side on the same ports and cables; with one alone, what binds it."""
    asked, design = scenario.one(Transports), network(scenario.one(FabricDesign))
    made = design_of(design, scenario.catalog)
    chosen = [scenario.catalog.transport(name) for name in asked.transports]
    compared = compare(made, chosen, asked, scenario.catalog, scenario.root.seed)
    found, best = compared.behaviours, compared.best
    return Answer(
        kind="transports",
        inputs={**used_by_design(scenario, design.topology, made)},
        headline=_headline(made, compared),
        binding=_binding(compared),
        results=_results(found),
        tables=(_idle_and_loaded(found, asked, best), _gone_wrong(found, asked), _routed(compared.rungs)),
        figure=found[best].slowest,
        charts=_charts(found),
        notes=(*made.notes, *_notes(found, asked)),
        sources=tuple(dict.fromkeys(fact.source for one in found for fact in one.transport.facts.values())),
        next_commands=_next(scenario, made, compared),
    )


def _headline(made: Design, compared: Comparison) -> str:
    first, *rest = compared.ranked
    port = fmt(first.path.port_bytes_per_s, "bytes_per_s", 3)
    others = ", ".join(
        f"{one.transport.name} {fmt(one.kept.slowest_fraction, 'fraction', 3)}" for one in rest
    )
    beside = f" ({others})" if others else ""
    return (
        f"When all {made.counts.num_hosts:,} chips of {with_article(made.fabric.name)} send at once, "
        f"{first.transport.name} leaves the slowest {fmt(first.kept.slowest_fraction, 'fraction', 3)} of its port of "
        f"{port}{beside}."
    )


def _binding(compared: Comparison) -> str:
    found, most, spray = compared.behaviours, compared.most_paths, compared.sprayed
    hashed = [one.transport.name for one in compared.collided]
    words = []
    if compared.hashing_binds:
        words.append(
            f"Flows that are hashed onto the same cable bind {' and '.join(hashed)}: over "
            f"{counted(most.num_paths, 'queue pair')} the slowest would keep "
            f"{fmt(most.kept.slowest_fraction, 'fraction', 3)}, with another path for each packet "
            f"{fmt(spray.kept.slowest_fraction, 'fraction', 3)}, before headers."
        )
    elif compared.forwarding_binds and not all(one.is_core_bound for one in found):
        words.append(
            "Ports that chips of one host share bind: what goes to another rail leaves by the port of the chip on that "
            f"rail, and the slowest keeps {fmt(spray.kept.slowest_fraction, 'fraction', 3)} even with another path for "
            "each packet, before headers."
        )
    elif not all(one.is_core_bound for one in found):
        words.append(
            f"Routing leaves the slowest {fmt(spray.kept.slowest_fraction, 'fraction', 3)} of its port; headers and "
            "finding the rate take the rest."
        )
    words += [_of_cores(one) for one in found if one.num_cores]
    return " ".join(words)


def _of_cores(one: Behaviour) -> str:
    """What cores of a host let through, and how many a full port takes."""
    name, needed = one.transport.name, fmt(one.num_cores, "count", 3)
    if not one.is_core_bound:
        return f"To receive a full port, {name} needs {needed} cores."
    taken = fmt(one.cores_bytes_per_s, "bytes_per_s", 3)
    flows = (
        f"one flow is received by one, which takes {taken}"
        if one.num_flows == 1
        else f"{one.num_flows:,} flows are received by one each, which together take {taken}"
    )
    return f"Cores bind {name}: {flows}; a full port needs {needed} of them and as many flows."


def _results(found: tuple[Behaviour, ...]) -> dict[str, Cell]:
    results: dict[str, Cell] = {}
    for one in found:
        figures: dict[str, Cell] = {
            "small_message_s": one.small.value,
            "message_s": one.message.value,
            "alone_fraction": one.kept_alone_fraction,
            "all_send_mean_fraction": one.kept.mean_fraction,
            "all_send_slowest_fraction": one.kept.slowest_fraction,
            "at_loss_fraction": one.at_loss_fraction,
            "slowest_bytes_per_s": one.slowest.value,
            "one_loss_s": one.one_loss_s,
            "timeout_s": one.transport.timeout_s,
            "bystander_fraction": one.incast.bystander_fraction,
            "held_fraction": one.storm.held_fraction,
            "held_s": one.storm.stuck_s,
            "cores": one.num_cores,
            "host_memory_bytes_per_s": one.memory_bytes_per_s,
        }
        results |= {f"{keyed(one.transport.name)}_{name}": value for name, value in figures.items()}
    return results


def _idle_and_loaded(found: tuple[Behaviour, ...], asked: Transports, best: int) -> Table:
    size = fmt(asked.size_bytes, "bytes", 3)
    return Table(
        title="one message on an idle network, and what is left of a port when all send",
        columns=(
            Column("transport"),
            Column("8 B", "s", "small_message_s"),
            Column(size, "s", "message_s"),
            Column("alone", "fraction"),
            Column("all send: mean", "fraction", "mean_fraction"),
            Column("slowest", "fraction"),
            Column("cores a port", "count", "cores"),
        ),
        rows=tuple(
            (
                one.transport.name, one.small.value, one.message.value, one.kept_alone_fraction, one.kept.mean_fraction,
                one.kept.slowest_fraction, one.num_cores,
            )
            for one in found
        ),
        marked=best if len(found) > 1 else None,
    )  # fmt: skip


def _gone_wrong(found: tuple[Behaviour, ...], asked: Transports) -> Table:
    loss = fmt(asked.loss_fraction, "fraction", 3)
    return Table(
        title=f"when something goes wrong: a loss, {asked.senders:,} senders to one chip, a chip that stops receiving",
        columns=(
            Column("transport"),
            Column("one packet lost", "s", "one_loss_s"),
            Column("the last one", "s", "timeout_s"),
            Column(f"kept at {loss} lost", "fraction", "at_loss_fraction"),
            Column("bystanders keep", "fraction", "bystander_fraction"),
            Column("flows held", "fraction", "held_fraction"),
            Column("for", "s", "held_s"),
        ),
        rows=tuple(
            (
                one.transport.name, one.one_loss_s, one.transport.timeout_s, one.at_loss_fraction,
                one.incast.bystander_fraction, one.storm.held_fraction, one.storm.stuck_s,
            )
            for one in found
        ),
        note="bystanders: flows between other chips while senders are held back, all in one lane or class",
    )  # fmt: skip


def _routed(rungs: tuple[Ladder, ...]) -> Table:
    return Table(
        title="what routing alone leaves of a port when every chip sends to one other",
        columns=(
            Column("routing"),
            Column("queue pairs", "count"),
            Column("mean", "fraction"),
            Column("slowest", "fraction"),
        ),
        rows=tuple(
            (rung.title, rung.num_paths, rung.kept.mean_fraction, rung.kept.slowest_fraction)
            for rung in rungs
        ),
        note="a message waits for the last of its queue pairs",
    )


def _charts(found: tuple[Behaviour, ...]) -> tuple[LineChart, ...]:
    sizes, times = time_curves(found)
    losses, left = loss_curves(found)
    names = [one.transport.name for one in found]
    return (
        LineChart(
            title="one message on an idle network",
            x=Axis("size", "bytes", log=True),
            y=Axis("time", "s", log=True),
            series=tuple(Series(name, sizes, one) for name, one in zip(names, times, strict=True)),
        ),
        LineChart(
            title="what loss leaves of a long message's rate",
            x=Axis("share of packets lost", "fraction", log=True),
            y=Axis("kept", "fraction"),
            series=tuple(Series(name, losses, one) for name, one in zip(names, left, strict=True)),
        ),
    )


def _notes(found: tuple[Behaviour, ...], asked: Transports) -> tuple[str, ...]:
    lines = [f"{one.transport.title}: {one.transport.note}" for one in found if one.transport.note]
    for one in found:
        most = one.incast.most_senders
        if not isfinite(most):
            continue
        name = one.transport.title
        lines.append(
            f"{name}: {asked.senders:,} senders leave each too few packets under way, so that losses wait for a "
            f"timeout of {fmt(one.transport.timeout_s, 's', 3)}"
            if one.times_out
            else f"{name}: senders to one chip time out when there are more than {fmt(most, 'count', 3)}, by the "
            "buffer of an Ethernet switch with such ports"
        )
    return tuple(lines)


def _next(scenario: Scenario, made: Design, compared: Comparison) -> tuple[str, ...]:
    sends = "all-to-all" if made.counts.num_hosts <= MOST_TO_ALL else "all-reduce"
    job = {"collective": sends, "size": "64MB"}
    num_paths = compared.num_paths_to_fill
    same: dict[str, Plain | None] = {"on": made.topology, "chips": made.counts.num_hosts}
    return (
        explained(follow(scenario)),
        *([follow(scenario, changes={"paths": num_paths})] if num_paths is not None else []),
        follow(scenario, "show fabric", {"topologies": [made.topology], "chips": made.counts.num_hosts}),
        follow(scenario, "simulate fabric", same, tables={"job": [job]}),
    )

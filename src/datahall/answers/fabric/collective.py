"""One collective on one machine: how long it takes, what runs and why, what binds, and where the answer flips."""

from __future__ import annotations

import msgspec

from datahall.answer import Answer, Axis, Cell, LineChart, Mark, Series
from datahall.answers.fabric.collective_table import algorithms, crossings, every_collective, phases
from datahall.answers.fabric.idle import idle_in_collective
from datahall.answers.fabric.words import sentence
from datahall.answers.follow import explained, follow, our_error
from datahall.answers.slices import slice_notes, slices
from datahall.cluster.cluster import Cluster, cluster_from
from datahall.cluster.collective import (
    CollectiveTime,
    check_level,
    refuse_on_torus,
    time_collective,
)
from datahall.cluster.used import used_by_machine
from datahall.cluster.wiring import wiring_of
from datahall.counted import counted, with_article
from datahall.fabric.collectives.algorithms.dispatch import Dispatch, array_of, dispatch_of
from datahall.fabric.collectives.algorithms.table import name_of, spoken
from datahall.fabric.collectives.choice import Choice
from datahall.fabric.collectives.system import DEFAULT_VERSION
from datahall.fabric.design.asked import possible
from datahall.fabric.design.chips import is_built
from datahall.fabric.topology.grids.tpu_pod import written
from datahall.scenario.kinds import Plain
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import CollectiveCall, FabricDesign
from datahall.scenario.sections.failure import Failure
from datahall.scenario.words import LEVEL_OF
from datahall.units import fmt

LINKS_OF_A_TORUS: dict[str | None, str] = {
    "buckets": "The links of all axes bind",
    "bisection": "The bisection binds",
    "link": "The link to the next chip binds",
}


def show_collective(scenario: Scenario) -> Answer:
    """Time, bandwidths and algorithm of a collective; experts and their companions size an MoE all-to-all."""
    call, wiring = scenario.one(CollectiveCall), wiring_of(scenario)
    kind = call.collective
    moe = dispatch_of(call, kind, wiring.design.chips or 0)
    cluster = cluster_from(
        wiring.design,
        scenario.catalog,
        num_chips=moe.num_experts if moe else 0,
        failures=wiring.failures,
        in_order=True,
        version=call.version or DEFAULT_VERSION,
        level=call.level,
    )
    refuse_on_torus(
        cluster, [name for name in ("algorithm", "version", "level", "all") if scenario.given(name)]
    )
    check_level(cluster, call.level)
    only = (name_of(call.algorithm),) if call.algorithm else ()
    found = time_collective(cluster, kind, array_of(call, kind, moe), only=only)
    says_chips = moe is not None or wiring.design.chips is not None
    idle = idle_in_collective(scenario, cluster, found, only, says_chips=says_chips)
    return _answer(scenario, found, cluster, moe, idle, every=call.all)


def _answer(
    scenario: Scenario,
    found: CollectiveTime,
    cluster: Cluster,
    moe: Dispatch | None,
    idle: tuple[str, ...],
    *,
    every: bool,
) -> Answer:
    choice = found.choice
    tables = (
        (every_collective(found),)
        if cluster.system.torus
        else (algorithms(found, every=every), *phases(found, cluster.system), *crossings(choice))
    )
    results: dict[str, Cell] = {
        "time_s": choice.time_s, "algbw_bytes_per_s": choice.algbw_bytes_per_s,
        "busbw_bytes_per_s": choice.busbw_bytes_per_s, "algorithm": choice.algorithm, "protocol": choice.protocol,
        "num_steps": found.num_steps, "low_s": found.band.low, "high_s": found.band.high, "level": choice.level,
        "bound": found.bound.cut.name if found.bound.cut else found.bound.kind,
    }  # fmt: skip
    if moe:
        results["sent_bytes"] = moe.sent_bytes
    return Answer(
        kind="collective",
        inputs=_inputs(scenario, found, cluster),
        headline=_headline(found, cluster, moe, scenario.one(FabricDesign).topology),
        binding=_binding(found),
        results=results,
        tables=tables,
        figure=found.figure,
        charts=(_chart(found),) if choice.moves.is_sized else (),
        notes=(*_notes(scenario, found, cluster), *idle),
        sources=found.figure.citations(),
        next_commands=_next(scenario, choice, cluster, moe),
    )


def _inputs(scenario: Scenario, found: CollectiveTime, cluster: Cluster) -> dict[str, Cell]:
    """What it is timed with where nobody says it; no NCCL runs on a torus."""
    own: dict[str, Cell] = {"chips": found.choice.num_ranks, **used_by_machine(scenario, cluster)}
    if cluster.system.torus:
        return own
    return {
        **own,
        "version": ".".join(map(str, cluster.system.version)),
        "level": LEVEL_OF[found.choice.level],
    }


def _headline(timed: CollectiveTime, cluster: Cluster, moe: Dispatch | None, topology: str) -> str:
    found, band = timed.choice, timed.band
    what = f"{found.num_ranks:,} × {cluster.chip.title}{_on(cluster, topology)}"
    time = f"{fmt(found.time_s, 's', 3)} ({fmt(band.low, 's', 3)} – {fmt(band.high, 's', 3)})"
    if moe:
        return (
            f"Each device sends {moe.sent_bytes:,.0f} bytes to the other {moe.num_others}: {time} on {what}."
        )
    if not found.moves.is_sized:
        return f"{sentence(with_article(found.collective))} of {what} takes {time}."
    return (
        f"{sentence(found.collective)} of {fmt(found.size_bytes, 'bytes')} on {what} takes {time} with "
        f"{spoken((found.algorithm, found.protocol))}: algbw {fmt(found.algbw_bytes_per_s, 'bytes_per_s', 3)}, "
        f"busbw {fmt(found.busbw_bytes_per_s, 'bytes_per_s', 3)}."
    )


def _on(cluster: Cluster, topology: str) -> str:
    """The topology as it was asked for, which may be a fabric by its name; of a torus with its sides."""
    if cluster.design is None:
        own = slices(cluster)
        return f" on {own}" if own else ""
    if not cluster.system.torus:
        return f" on {topology}"
    sides = "×".join(map(str, cluster.design.fabric.traits.grid))
    return f" on a {sides} {topology}" if topology == cluster.design.topology else f" on {topology} ({sides})"


def _binding(found: CollectiveTime) -> str:
    choice, cut, passing = found.choice, found.bound.cut, found.bound.passing
    if cut is not None and passing is not None:
        rate = fmt(passing.bytes_per_s, "bytes_per_s", 3)
        if passing.between:
            moved = found.figure.at(f"from a {cut.name} to the next", f"bytes from a {cut.name} to the next")
            return (
                f"The links from a {cut.name} to the next bind: {fmt(moved.value, 'bytes', 3)} pass them, and they "
                f"carry {rate} one way."
            )
        moved = found.figure.at(f"out of a {cut.name}", f"bytes that leave a {cut.name}")
        return (
            f"The way out of a {cut.name} binds: {fmt(moved.value, 'bytes', 3)} leave its "
            f"{counted(cut.num_below, 'chip')}, and it carries {rate} one way."
        )
    waits = fmt(choice.latency_fraction, "fraction", 2)
    if found.bound.kind == "latency":
        return (
            f"Latency binds: {found.num_steps:,.0f} steps are {waits} of the time, so a faster "
            "wire would not help."
        )
    if found.bound.kind == "links":
        return f"{LINKS_OF_A_TORUS[choice.moves.on_torus]}."
    link = {"NIC": "the NICs", "scale-up": "the scale-up links"}[found.bound.kind]
    moves, steps = (
        fmt(choice.moving_fraction, "fraction", 2),
        counted(int(found.num_steps), "step"),
    )
    return f"Bandwidth of {link} binds: {moves} of the time moves bytes, {waits} is {steps}."


def _chart(found: CollectiveTime) -> LineChart:
    choice = found.choice
    return LineChart(
        title=f"{choice.collective} of {choice.num_ranks:,} ranks",
        x=Axis("size", "bytes", log=True),
        y=Axis("time", "s", log=True),
        series=tuple(
            Series(curve.name, curve.size_bytes, curve.time_s, dashed=index > 0)
            for index, curve in enumerate(found.curves)
        ),
        marks=tuple(Mark(one.after, one.size_bytes) for one in choice.crossovers),
    )


def _notes(scenario: Scenario, found: CollectiveTime, cluster: Cluster) -> tuple[str, ...]:
    system, design = cluster.system, cluster.design
    if system.torus:
        lines = ["datasheet only: two public measurements of a torus stand behind the band"]
    else:
        low, high = found.ratios
        network = f"; network: {system.across.fitted_on}" if system.across else ""
        lines = [
            f"{found.choice.level}: {system.inside.fitted_on}{network}",
            f"band: measured over predicted was {low:.2f} to {high:.2f} in eight of ten runs of the ledger that no "
            "other constant was fitted on",
            _why(found.choice, asked=scenario.given("algorithm")),
        ]
    lines += slice_notes(cluster)
    if design is None and system.nic_bytes_per_s and not system.torus:
        lines.append("no topology is named: the network is as wide as the ports of the chips")
    return (*lines, *(design.notes if design is not None else ()))


def _why(found: Choice, *, asked: bool) -> str:
    """Why this algorithm: it has the smallest estimate of NCCL's own, unless our times make that implausible."""
    others = sorted(
        (one.estimate_s, spoken((one.algorithm, one.protocol)))
        for one in found.candidates
        if one.estimate_s is not None
    )
    chosen = spoken((found.algorithm, found.protocol))
    rest = [(time, name) for time, name in others if name != chosen]
    if not rest:
        return f"{chosen} is all there is for {found.collective}"
    own = next(time for time, name in others if name == chosen)
    best = found.candidates[0]
    faster = best.time_s < next(
        one.time_s for one in found.candidates if spoken((one.algorithm, one.protocol)) == chosen
    )
    better = f"; {spoken((best.algorithm, best.protocol))} would be faster by our times" if faster else ""
    if not (asked or found.is_estimated_least):
        return (
            f"{chosen} is taken: NCCL's own estimate is smaller for {rest[0][1]}, {fmt(rest[0][0], 's', 3)} against "
            f"{fmt(own, 's', 3)}, which by our times is slower than NCCL was ever seen to choose, or rests on no "
            "measurement"
        )
    if asked:
        least = f"NCCL's own estimate is {fmt(own, 's', 3)}, and {fmt(rest[0][0], 's', 3)} of {rest[0][1]}"
        return f"{chosen} as asked; {least}{better}"
    return (
        f"NCCL takes {chosen} because its own estimate is the smallest, {fmt(own, 's', 3)} against "
        f"{fmt(rest[0][0], 's', 3)} of {rest[0][1]}{better}"
    )


def _next(scenario: Scenario, found: Choice, cluster: Cluster, moe: Dispatch | None) -> tuple[str, ...]:
    lines = []
    if moe is None and found.moves.is_sized:
        lines.append(follow(scenario, changes={"size": "64KB" if found.size_bytes != 64e3 else "1GB"}))
    return (*lines, _next_of_fabric(scenario, cluster), our_error(scenario, "collectives"))


def _next_of_fabric(scenario: Scenario, cluster: Cluster) -> str:
    """The fabric that was named, or one for the same chips; the chain where neither would be what was asked about."""
    asked, again = scenario.one(FabricDesign), explained(follow(scenario))
    if cluster.design is None:
        same = msgspec.structs.replace(asked, chips=cluster.num_chips)
        if cluster.system.torus:
            sides = written(cluster.system.torus)
            laid: dict[str, Plain | None] = {"topologies": ["torus" if cluster.system.is_wrapped else "mesh"]}
            laid["sides"] = sides
            laid |= dict.fromkeys(("chips", "nic", "domain"))
            return follow(scenario, "show fabric", laid)
        wired = possible(same, ("fat-tree",), scenario.catalog)
        return follow(scenario, changes={"on": wired[0]}) if wired else again
    if scenario.all(Failure):
        return again
    chips = None if is_built(asked.topology, scenario.catalog) else cluster.design.counts.num_hosts
    return follow(scenario, "show fabric", {"topologies": [asked.topology], "chips": chips})

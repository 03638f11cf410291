"""One collective on one fabric: how long it takes, what runs and why, and where the answer flips."""

from __future__ import annotations

from math import isfinite

import numpy as np

from datahall.answer import Answer, Axis, Cell, LineChart, Mark, Series
from datahall.answers.bounds import opened
from datahall.answers.fabric.collective_question import (
    Moe,
    read_chips,
    read_kind,
    read_moe,
    read_only,
    read_size,
    read_version,
)
from datahall.answers.fabric.collective_table import algorithms, crossings, phases, steps_of
from datahall.answers.fabric.collective_torus import show_on_torus
from datahall.breakdown import Band, Breakdown
from datahall.catalog import Catalog
from datahall.fabric.collectives.algorithms.bus import Collective
from datahall.fabric.collectives.choice import Choice, band_name, choose_collective, collective_times, spoken
from datahall.fabric.collectives.constants import library
from datahall.fabric.collectives.nccl import network
from datahall.fabric.collectives.system import System, system_of
from datahall.fabric.design.design import DIRECT, DOMAINS, Design, design
from datahall.units import fmt

SMALLEST_BYTES, LARGEST_BYTES, POINTS = 1e3, 64e9, 120


def show_collective(
    collective: str,
    *,
    on: str = "fat-tree",
    chips: str | int | None = None,
    chip: str = "",
    size: str | float = "",
    experts: str | int | None = None,
    tokens: str | int | None = None,
    topk: str | int | None = None,
    hidden: str | int | None = None,
    precision: str = "bf16",
    algorithm: str = "",
    version: str = "",
    oversubscription: str = "1:1",
    sides: str = "",
    level: str | None = None,
    every: bool = False,
    catalog: Catalog | None = None,
) -> Answer:
    """Time, bandwidths and algorithm of a collective; `experts` and its companions size an MoE all-to-all."""
    shelf = opened(catalog)
    kind = read_kind(collective)
    moe = read_moe(kind, experts, tokens, topk, hidden, precision)
    count = read_chips(chips, moe)
    size_bytes = moe.array_bytes if moe else read_size(kind, size)
    made = design(on, count, catalog=shelf, chip=chip, oversubscription=oversubscription, sides=sides)
    inputs: dict[str, Cell] = {
        "collective": kind, "on": made.topology, "num_chips": count, "chip": made.parts.chip.name,
        "size_bytes": size_bytes, "algorithm": algorithm or None, "version": version or None,
        "oversubscription": oversubscription, "level": level, "every": every,
    }  # fmt: skip
    if moe:
        inputs |= {"experts": moe.num_experts, "tokens": moe.num_tokens, "topk": moe.top_k,
                   "hidden": moe.hidden, "precision": moe.precision}  # fmt: skip
    if made.topology in DIRECT and made.topology != "full-mesh":
        return show_on_torus(kind, made, size_bytes, inputs, moe.sent_bytes if moe else None)
    system = system_on(made, kind, version=version, level=level, catalog=shelf)
    found = choose_collective(system, kind, size_bytes, count, only=read_only(algorithm))
    return _answer(found, system, made, moe, inputs, every)


def system_on(
    made: Design,
    kind: Collective,
    *,
    version: str = "",
    level: str | None = None,
    catalog: Catalog | None = None,
) -> System:
    """The system of a design: its chips, its domains, and what of its ports a collective of this kind gets."""
    port, alone = made.parts.port, made.topology in DOMAINS and not made.counts.num_switches
    rate = made.injection_bytes_per_s if port is not None else 0.0
    if kind == "all-to-all" and rate > 0:
        rate = made.all_to_all_bytes_per_s
    return system_of(
        made.parts.chip,
        num_domain=made.parts.server.num_scale_up_domain,
        nic_bytes_per_s=0.0 if alone or not isfinite(rate) else rate,
        fabric=_network(port.name if port is not None else ""),
        version=read_version(version),
        level=level,
        catalog=catalog,
    )


def _network(port: str) -> str:
    if port.startswith("efa"):
        return "efa-1" if port == "efa-100" else "efa"
    return "roce" if port.startswith("ethernet") else port.partition("-")[0] or "infiniband"


def _answer(
    found: Choice, system: System, made: Design, moe: Moe | None, inputs: dict[str, Cell], every: bool
) -> Answer:
    chip = made.parts.chip
    tables = (algorithms(found, system, every=every), *phases(found, system), *crossings(found))
    results: dict[str, Cell] = {
        "time_s": found.time_s, "algbw_bytes_per_s": found.algbw_bytes_per_s,
        "busbw_bytes_per_s": found.busbw_bytes_per_s, "algorithm": found.algorithm, "protocol": found.protocol,
        "num_steps": steps_of(found.algorithm, found.collective, system, found.num_ranks),
        "low_s": found.low_s, "high_s": found.high_s, "level": found.level,
    }  # fmt: skip
    if moe:
        results["sent_bytes"] = moe.sent_bytes
    return Answer(
        kind="collective",
        inputs=inputs,
        headline=_headline(found, made, chip.title, moe),
        binding=_binding(found, system),
        results=results,
        tables=tables,
        figure=_figure(found, system),
        charts=(_chart(found, system),) if found.collective != "barrier" else (),
        notes=_notes(found, system, made),
        sources=(system.inside.source, *((system.across.source,) if system.across else ())),
        next_commands=_next(found, made),
    )


def _headline(found: Choice, made: Design, chip: str, moe: Moe | None) -> str:
    what = f"{found.num_ranks:,} × {chip} on {made.topology}"
    band = f"{fmt(found.low_s, 's', 3)} – {fmt(found.high_s, 's', 3)}"
    if moe:
        return (
            f"Each device sends {moe.sent_bytes:,.0f} bytes to the other {moe.num_experts - 1}: "
            f"{fmt(found.time_s, 's', 3)} ({band}) on {what}."
        )
    if found.collective == "barrier":
        return f"A barrier of {what} takes {fmt(found.time_s, 's', 3)} ({band})."
    kind = found.collective[0].upper() + found.collective[1:]
    return (
        f"{kind} of {fmt(found.size_bytes, 'bytes')} on {what} takes {fmt(found.time_s, 's', 3)} ({band}) with "
        f"{spoken((found.algorithm, found.protocol))}: algbw {fmt(found.algbw_bytes_per_s, 'bytes_per_s', 3)}, "
        f"busbw {fmt(found.busbw_bytes_per_s, 'bytes_per_s', 3)}."
    )


def _binding(found: Choice, system: System) -> str:
    waits = found.latency_s / found.time_s
    count = steps_of(found.algorithm, found.collective, system, found.num_ranks)
    _, domains = system.shape(found.num_ranks)
    if waits >= 0.5:
        return (
            f"Latency binds: {count:,.0f} steps are {waits:.0%} of the time, so a faster wire would not help."
        )
    link = (
        "the network" if domains > 1 and _network_is_narrow(system, found.num_ranks) else "the scale-up links"
    )
    return f"Bandwidth of {link} binds: {1 - waits:.0%} of the time moves bytes, {waits:.0%} is {count:,.0f} steps."


def _network_is_narrow(system: System, num_ranks: int) -> bool:
    inside, _ = system.shape(num_ranks)
    return (
        system.nic_bytes_per_s * inside * network(system).share[2] < system.inside.simple.bytes_per_s
        or inside == 1
    )


def _figure(found: Choice, system: System) -> Breakdown:
    waiting = Breakdown(
        name="latency", value=found.latency_s, unit="s", formula="what 8 bytes take with the same algorithm"
    )
    moving = Breakdown(
        name="transfer",
        value=found.time_s - found.latency_s,
        unit="s",
        formula="time − latency",
        sources=(system.inside.source,),
    )
    return Breakdown(
        name=f"{found.collective} of {found.num_ranks:,} ranks",
        value=found.time_s,
        unit="s",
        formula="latency + transfer",
        parts=(waiting, moving),
        band=Band(found.low_s, found.high_s, "eight of ten public runs of such a machine fell in it"),
        basis=found.level,
    )


def _chart(found: Choice, system: System) -> LineChart:
    sizes = np.geomspace(SMALLEST_BYTES, LARGEST_BYTES, POINTS)
    taken, _ = collective_times(system, found.collective, sizes, found.num_ranks)
    series = [Series("as NCCL chooses", tuple(sizes.tolist()), tuple(taken.tolist()))]
    names = dict.fromkeys(one.algorithm for one in found.candidates)
    for name in names:
        alone, _ = collective_times(system, found.collective, sizes, found.num_ranks, only=(name,))
        series.append(Series(name, tuple(sizes.tolist()), tuple(alone.tolist()), dashed=True))
    return LineChart(
        title=f"{found.collective} of {found.num_ranks:,} ranks",
        x=Axis("size", "bytes", log=True),
        y=Axis("time", "s", log=True),
        series=tuple(series),
        marks=tuple(Mark(one.after, one.size_bytes) for one in found.crossovers),
    )


def _notes(found: Choice, system: System, made: Design) -> tuple[str, ...]:
    low, high = library().bands[band_name(system, found.num_ranks)]
    lines = [
        f"{found.level}: {system.inside.fitted_on}"
        + (f"; network: {system.across.fitted_on}" if system.across else ""),
        f"band: measured over predicted was {low:.2f} to {high:.2f} in eight of ten runs that nothing was fitted on",
        _why(found),
    ]
    if set(made.oversubscription) != {1.0} and found.collective != "all-to-all":
        lines.append("a ring crosses a tapered tier once, so oversubscription is counted for all-to-all only")
    return (*lines, *made.notes)


def _why(found: Choice) -> str:
    """Why this algorithm: it has the smallest estimate of NCCL's own, which need not be the truth."""
    others = sorted((one.estimate_s, spoken((one.algorithm, one.protocol))) for one in found.candidates)
    chosen = spoken((found.algorithm, found.protocol))
    rest = [(time, name) for time, name in others if name != chosen]
    if not rest:
        return f"{chosen} is all there is for {found.collective}"
    own = next(time for time, name in others if name == chosen)
    fastest = spoken((found.candidates[0].algorithm, found.candidates[0].protocol))
    better = "" if fastest == chosen else f"; {fastest} would be faster by our times"
    return (
        f"NCCL takes {chosen} because its own estimate is the smallest, {fmt(own, 's', 3)} against "
        f"{fmt(rest[0][0], 's', 3)} of {rest[0][1]}{better}"
    )


def _next(found: Choice, made: Design) -> tuple[str, ...]:
    ask = f"datahall show collective {found.collective} --on {made.topology} --chips {found.num_ranks}"
    small = f"{ask} --chip {made.parts.chip.name} --size 64KB"
    return (
        small,
        f"datahall show fabric {made.topology} --chips {found.num_ranks}",
        "datahall validate collectives",
    )

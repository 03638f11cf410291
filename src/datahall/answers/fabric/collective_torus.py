"""A collective on a torus or mesh: buckets along the axes, bounded by hops, links or the bisection."""

from __future__ import annotations

from datahall.answer import Answer, Cell, Column, Table
from datahall.breakdown import Band, Breakdown
from datahall.errors import UnsupportedError
from datahall.fabric.collectives.algorithms.bus import Collective, bus_bandwidth
from datahall.fabric.collectives.algorithms.torus import (
    bucket_all_gather_time,
    bucket_all_reduce_time,
    torus_all_to_all_time,
)
from datahall.fabric.collectives.constants import library
from datahall.fabric.design.design import Design
from datahall.units import fmt

MODELS = {
    "all-reduce": bucket_all_reduce_time,
    "all-gather": bucket_all_gather_time,
    "reduce-scatter": bucket_all_gather_time,
    "all-to-all": torus_all_to_all_time,
}


def show_on_torus(
    kind: Collective, made: Design, size_bytes: float, inputs: dict[str, Cell], sent_bytes: float | None
) -> Answer:
    """Answer for a fabric without switches."""
    shape = made.fabric.shape
    sides: tuple[int, ...] = getattr(shape, "sides", ())
    if kind not in MODELS or not sides:
        raise UnsupportedError(
            f"{kind} on a {made.topology} is not modelled",
            hint=f"one of {', '.join(MODELS)}, or --on fat-tree",
        )
    wire = float(made.fabric.link_bytes_per_s.max())
    hop = max(float(made.fabric.link_latency_s.max()), 1e-6)
    wrapped = made.topology != "mesh"
    time = float(MODELS[kind](size_bytes, sides, hop_s=hop, bytes_per_s=wire, wrapped=wrapped))
    waiting = float(MODELS[kind](0.0, sides, hop_s=hop, bytes_per_s=wire, wrapped=wrapped))
    low, high = library().bands["torus"]
    ranks = made.counts.num_hosts
    bus = float(bus_bandwidth(kind, size_bytes, time, float(ranks)))
    shown = "×".join(map(str, sides))
    payload = f"each device sends {sent_bytes:,.0f} bytes; " if sent_bytes else ""
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, float(model(size_bytes, sides, hop_s=hop, bytes_per_s=wire, wrapped=wrapped)))
        for name, model in MODELS.items()
    )
    return Answer(
        kind="collective",
        inputs=inputs,
        headline=(
            f"{kind[0].upper()}{kind[1:]} of {fmt(size_bytes, 'bytes')} on a {shown} {made.topology} of "
            f"{made.parts.chip.title} takes {fmt(time, 's', 3)}: {payload}algbw "
            f"{fmt(size_bytes / time, 'bytes_per_s', 3)}, busbw {fmt(bus, 'bytes_per_s', 3)}."
        ),
        binding=(
            "Latency of the hops binds."
            if waiting >= 0.5 * time
            else ("The bisection binds." if kind == "all-to-all" else "The links of all axes bind.")
        ),
        results={
            "time_s": time,
            "algbw_bytes_per_s": size_bytes / time,
            "busbw_bytes_per_s": bus,
            "algorithm": "bucket" if kind != "all-to-all" else "direct",
            "sent_bytes": sent_bytes,
        },
        tables=(
            Table(
                title="the same array",
                columns=(Column("collective"), Column("time", "s")),
                rows=rows,
                marked=list(MODELS).index(kind),
            ),
        ),
        figure=Breakdown(
            name=f"{kind} on {shown}",
            value=time,
            unit="s",
            formula="max(hops × latency, bytes / links)"
            if kind != "all-to-all"
            else "hops × latency + bytes / bisection",
            parts=(
                Breakdown(name="latency of the hops", value=waiting, unit="s"),
                Breakdown(name="one link, one way", value=wire, unit="bytes_per_s"),
            ),
            band=Band(time * low, time * high, "two published figures of a TPU v5e"),
            basis="datasheet only",
        ),
        notes=("datasheet only: two public measurements of a torus stand behind the band", *made.notes),
        next_commands=(
            f"datahall show fabric {made.topology} --chips {ranks}",
            "datahall validate collectives",
        ),
    )

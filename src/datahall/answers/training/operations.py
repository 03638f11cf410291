"""Words of what a training plan comes to over weeks: failures, spares, checkpoints, data, power and energy."""

from __future__ import annotations

from math import inf

from datahall.answer import Cell, Column, Quantity, Table
from datahall.counted import counted
from datahall.datapath.sections.text import TextNeed
from datahall.planner.training.plan import TrainingPlan
from datahall.power.account import energy_of
from datahall.power.assessment import Assessment
from datahall.reliability.sections.goodput import Goodput
from datahall.units import fmt, short

Row = tuple[str, Quantity, str]


def operations_table(plan: TrainingPlan) -> Table:
    """What the run takes beside its steps."""
    goodput, text, site = plan.part(Goodput), plan.part(TextNeed), plan.section(Assessment)
    power = _power(site, plan.num_tokens) if site is not None else ()
    chip = plan.cluster.chip.title
    return Table(
        title="over the whole run",
        columns=(Column("what"), Column("value"), Column("which is")),
        rows=(*_reliability(goodput), *_storage(goodput, text), *power),
        note=f"failures as often as in {goodput.preset.title}, the usual restart, storage and building: the commands "
        "below take others; "
        + (
            "power while it works"
            if site is not None
            else f"what {chip} or its network may draw is not published"
        ),
    )


def operations_results(plan: TrainingPlan) -> dict[str, Cell]:
    """The same as numbers, under the names that `simulate run` and `show power` have for them."""
    goodput, text, site = plan.part(Goodput), plan.part(TextNeed), plan.section(Assessment)
    run = goodput.run
    return {
        "ettr_fraction": goodput.ettr,
        "elapsed_s": _finite(goodput.elapsed_s),
        "num_interruptions": _finite(goodput.num_interruptions),
        "mttf_s": _finite(run.mttf_s),
        "restart_s": run.restart_s,
        "num_spares": goodput.spares.num,
        "checkpoint_bytes": run.job.size.total_bytes,
        "checkpoint_interval_s": run.plan.last.interval_s,
        "checkpoint_bytes_per_s": goodput.storage.needs_bytes_per_s,
        "dataset_bytes": text.dataset_bytes,
        "read_bytes_per_s": text.read_bytes_per_s,
        **({} if site is None else _power_results(site, plan.num_tokens)),
    }


def _power_results(site: Assessment, num_tokens: float) -> dict[str, Cell]:
    energy = energy_of(site, num_tokens)
    return {
        "provisioned_w": site.provisioned.value,
        "site_w": site.site_w,
        "peak_w": site.trace.peak_w,
        "swing_w": site.trace.swing_w,
        "token_j": energy.token_j,
        "run_j": energy.run_j,
        "run_kg": energy.run_kg,
    }


def with_interruptions(plan: TrainingPlan) -> str:
    """How long the run is, interrupted as it will be."""
    goodput = plan.part(Goodput)
    if goodput.elapsed_s == inf:
        return "interrupted too often to end"
    return f"{fmt(goodput.elapsed_s, 's', 3)} with interruptions"


def _finite(value: float) -> float | None:
    return value if value < inf else None


def _reliability(goodput: Goodput) -> tuple[Row, ...]:
    run, spares = goodput.run, goodput.spares
    node = counted(run.job.num_node_chips, "chip")
    every = f"an interruption every {fmt(run.mttf_s, 's', 3)}, and a restart of {fmt(run.restart_s, 's', 3)}"
    rows = [("time that moves it forward", Quantity(goodput.ettr, "fraction"), every)]
    if goodput.elapsed_s < inf:
        times = counted(goodput.num_whole_interruptions, "interruption")
        rows.append(("time of the run", Quantity(goodput.elapsed_s, "s"), f"expected, with {times}"))
    rows.append(
        (
            "spare nodes",
            Quantity(spares.num, "count"),
            f"of {node} each for those in repair, enough {fmt(goodput.enough_fraction, 'fraction')} of the time",
        )
    )
    return tuple(rows)


def _storage(goodput: Goodput, text: TextNeed) -> tuple[Row, ...]:
    run, need = goodput.run, goodput.storage
    last = run.plan.last
    return (
        (
            "checkpoint",
            Quantity(run.job.size.total_bytes, "bytes"),
            f"to {last.tier.title} every {fmt(last.interval_s, 's', 3)}",
        ),
        (
            "storage for checkpoints",
            Quantity(need.needs_bytes_per_s, "bytes_per_s"),
            f"at least, to write one in that time; {fmt(need.has_bytes_per_s, 'bytes_per_s', 3)} are usual",
        ),
        ("data", Quantity(text.dataset_bytes, "bytes"), f"read at {fmt(text.read_bytes_per_s, 'bytes_per_s', 3)}"),
    )  # fmt: skip


def _power(site: Assessment, num_tokens: float) -> tuple[Row, ...]:
    energy, trace = energy_of(site, num_tokens), site.trace
    assert energy.run_j is not None
    assert energy.run_kg is not None
    grid = site.catalog.grid(site.asked.grid)
    return (
        (
            "power to be provisioned",
            Quantity(site.provisioned.value, "w"),
            f"nameplates of {counted(site.machines.num_servers, site.machines.server.form)}"
            f"{', network' if site.machines.network.value else ''} and storage, PUE {short(site.building.pue.value)}",
        ),
        ("power drawn", Quantity(site.site_w, "w"), f"{fmt(site.chip_site_w, 'w', 3)} for each chip"),
        ("peak", Quantity(trace.peak_w, "w"), "of a step"),
        ("swing", Quantity(trace.swing_w, "w"), f"up and down in each step of {fmt(site.run.step_s, 's', 3)}"),
        (
            "energy of the steps",
            Quantity(energy.run_j, "j"),
            f"{fmt(energy.token_j, 'j_per_token', 3)}; in {grid.title} {fmt(energy.run_kg, 'kg', 3)} of CO₂",
        ),
    )  # fmt: skip

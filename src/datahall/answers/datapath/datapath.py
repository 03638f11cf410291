"""`show datapath`: does storage starve the chips, where it is narrowest, and what mends it."""

from __future__ import annotations

from datahall.answer import Answer, Axis, Cell, LineChart, Mark, Point, Series
from datahall.answers.datapath.idle import idle_memory
from datahall.answers.datapath.tables import (
    by_storage,
    checkpoint_table,
    limit_table,
    load_table,
    remedy_table,
)
from datahall.answers.datapath.words import BINDS, of_storage
from datahall.answers.follow import explained, follow, our_error
from datahall.breakdown import Breakdown
from datahall.counted import counted
from datahall.datapath.asked import Asked
from datahall.datapath.figure import utilisation_figure
from datahall.datapath.scaling import curve, drawn_to
from datahall.datapath.verdict import Verdict, best, cheapest, judged
from datahall.planner.datapath import asked_of
from datahall.scenario.kinds import Plain
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import MOST_CHIPS
from datahall.units import fmt


def show_datapath(scenario: Scenario) -> Answer:
    """What each storage delivers of what chips need; exit code 1 where none keeps them at work."""
    asked = asked_of(scenario)
    rows = judged(asked)
    chosen = best(rows)
    figure = utilisation_figure(asked, chosen.store, chosen.supply)
    return Answer(
        kind="data path",
        inputs=_inputs(asked),
        headline=_headline(asked, chosen, figure),
        binding=_binding(asked, rows, chosen),
        verdict="yes" if chosen.keeps else "no",
        results=_results(asked, chosen, figure),
        tables=(
            by_storage(asked, rows, chosen),
            *limit_table(chosen),
            *remedy_table(rows),
            *checkpoint_table(asked, rows),
            *load_table(asked, rows),
        ),
        figure=figure,
        charts=(_chart(asked, rows, chosen),),
        notes=(*_notes(asked, chosen), *idle_memory(scenario, rows)),
        next_commands=_next(scenario, cheapest(rows) or chosen),
    )


def _inputs(asked: Asked) -> dict[str, Cell]:
    job = asked.job
    return {
        "workload": asked.name,
        "chips": job.num_chips,
        "chip": asked.chip.name,
        "batch": job.batch,
        "step_s": job.step_s,
        "sample_bytes": job.sample_bytes,
        "dataset_bytes": job.dataset_bytes,
        "stored_as": job.format,
        "shuffle": job.shuffle,
        "readers": job.num_readers,
        "prepare_s": job.prepare_s,
        "checkpoint_bytes": asked.checkpoint_bytes,
        "host_memory_bytes": asked.host_memory_bytes or None,
    }


def _headline(asked: Asked, chosen: Verdict, figure: Breakdown) -> str:
    job, found = asked.job, chosen.supply
    who = f"{asked.name} on {counted(job.num_chips, 'chip')} ({asked.chip.name})"
    share = fmt(found.utilisation_fraction, "fraction")
    if figure.band and figure.band.low < found.utilisation_fraction:
        share += f" ({fmt(figure.band.low, 'fraction')} to {fmt(figure.band.high, 'fraction')})"
    needs = f"{fmt(found.needed_bytes_per_s, 'bytes_per_s', 3)}"
    comes = fmt(found.available_bytes_per_s, "bytes_per_s", 3)
    if chosen.keeps:
        return (
            f"{of_storage(chosen.store)} does not starve {who}: they work {share} of their time; they need {needs}, "
            f"and {comes} would come through."
        )
    return (
        f"{of_storage(chosen.store)} starves {who}: they work {share} of their time, where "
        f"{fmt(asked.promised_fraction, 'fraction')} are asked for; they need {needs}, and {comes} come "
        "through."
    )


def _binding(asked: Asked, rows: tuple[Verdict, ...], chosen: Verdict) -> str:
    words = f"What binds: {BINDS[chosen.supply.binding]}."
    promised = fmt(asked.promised_fraction, "fraction")
    if chosen.num_chips_fed:
        words += f" It feeds {counted(chosen.num_chips_fed, 'chip')} at {promised}."
    elif chosen.keeps:
        any_number = (
            f"{MOST_CHIPS:,} chips and more" if chosen.store.storage.is_shared else "any number of chips"
        )
        words += f" It feeds {any_number} at {promised}, in hosts like these."
    mended = cheapest(rows) or chosen
    if mended.mended_by is None:
        return words
    which = (
        "Nothing is enough; what helps most"
        if mended is not cheapest(rows)
        else "The cheapest change that is enough"
    )
    reached = fmt(mended.mended_by.utilisation_fraction, "fraction")
    return f"{words} {which}: with {mended.store.storage.name}, {mended.mended_by.what}, for {reached}."


def _results(asked: Asked, chosen: Verdict, figure: Breakdown) -> dict[str, Cell]:
    found, band = chosen.supply, figure.band
    return {
        "storage": chosen.store.storage.name,
        "utilisation_fraction": found.utilisation_fraction,
        "utilisation_low_fraction": band.low if band else None,
        "utilisation_high_fraction": band.high if band else None,
        "stall_fraction": found.stall_fraction,
        "needed_bytes_per_s": found.needed_bytes_per_s,
        "available_bytes_per_s": found.available_bytes_per_s,
        "delivered_bytes_per_s": found.delivered_bytes_per_s,
        "margin_ratio": found.margin_ratio,
        "binding": found.binding,
        "hit_fraction": found.hit_fraction,
        "chips_fed": chosen.num_chips_fed,
        "promised_fraction": asked.promised_fraction,
        "checkpoint_bytes": asked.checkpoint_bytes,
        "drain_s": chosen.drain_s,
        "busy_fraction": chosen.busy_fraction,
        "written_bytes_per_s": chosen.written_bytes_per_s,
    }


def _chart(asked: Asked, rows: tuple[Verdict, ...], chosen: Verdict) -> LineChart:
    last = drawn_to(asked.job, [row.num_chips_fed for row in rows])
    drawn = [(row, curve(asked.job, row.store, last)) for row in rows]
    return LineChart(
        title="utilisation over the number of chips",
        x=Axis("chips", "count", log=True),
        y=Axis("utilisation", "fraction"),
        series=tuple(Series(row.store.storage.name, *points) for row, points in drawn),
        marks=tuple(
            Mark(f"{row.store.storage.name} feeds no more", float(row.num_chips_fed))
            for row in rows
            if row.num_chips_fed
        ),
        points=(Point("asked", float(asked.job.num_chips), chosen.supply.utilisation_fraction),),
    )


def _notes(asked: Asked, chosen: Verdict) -> tuple[str, ...]:
    job = asked.job
    lines = [
        "utilisation is AU as MLPerf Storage has it: work over time, with the step itself never slower",
        f"read as {job.format}, {'in random order' if job.shuffle == 'random' else 'one after the other'}, by "
        f"{counted(job.num_readers, 'reader')} for each chip and {counted(job.num_prefetch, 'batch')} ahead",
    ]
    if asked.training is not None:
        rate = fmt(asked.training.tokens_per_s, "tokens_per_s", 3)
        lines.append(
            f"it trains on {rate} at {fmt(asked.training.mfu_fraction, 'fraction', 3)} MFU, laid out as "
            f"{asked.training.layout.words}, the fastest"
        )
    if asked.model is not None:
        lines.append(
            f"text is {fmt(chosen.supply.needed_bytes_per_s, 'bytes_per_s', 3)} for all chips; checkpoints write "
            f"{fmt(chosen.written_bytes_per_s, 'bytes_per_s', 3)} on average"
        )
    if not chosen.holds:
        size = fmt(job.dataset_bytes, "bytes", 3)
        lines.append(
            f"{chosen.store.storage.name} does not hold all {size}: each host has a part, or shuffles less"
        )
    if not job.prepare_s:
        lines.append("nothing is decoded or tokenised on the way: say what a sample takes if it is")
    return tuple(lines)


def _next(scenario: Scenario, chosen: Verdict) -> tuple[str, ...]:
    same, mends = follow(scenario), chosen.mended_by
    if mends is None:
        return (explained(same), our_error(scenario, "storage"))
    changes: dict[str, Plain | None] = {**mends.changes, "storage": [chosen.store.storage.name]}
    return (follow(scenario, changes=changes), explained(same), our_error(scenario, "storage"))

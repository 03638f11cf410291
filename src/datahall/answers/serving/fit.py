"""`show fit`: does a model fit on a chip, how many sequences of a context, which precision makes it fit."""

from __future__ import annotations

from datahall.answer import Answer, Cell, Column, StackChart, Table
from datahall.answers.context import context_notes
from datahall.answers.follow import follow
from datahall.answers.serving.words import percent
from datahall.counted import counted
from datahall.inference.memory.figure import parts_of, sequences_figure, shares_of
from datahall.inference.memory.fit import Fit, legal_groups, why_not
from datahall.inference.memory.formats import Formats, formats_of
from datahall.inference.memory.remedy import remedies
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import Deployment
from datahall.scenario.sections.views import Sequences
from datahall.units import fmt

SMALLEST = "the fewest that hold what was asked"
TOO_SMALL = "the group that comes nearest; none holds what was asked"
ASKED = "the group asked for, which holds too few"
MOST_SHOWN = 32  # sequences of the pass that is offered next


def show_fit(scenario: Scenario) -> Answer:
    """How many sequences each precision and each group of chips holds; "no" where the asked one holds too few."""
    deployment, sequences = scenario.one(Deployment), scenario.one(Sequences)
    model = scenario.model()
    asked = formats_of(
        deployment, model, scenario.catalog, context=sequences.context, num_sequences=sequences.batch
    )
    found = asked.smallest(asked.precision)
    shown = found or asked.nearest()
    return Answer(
        kind="fit",
        inputs={"model": model.name, **({"tp": found.tp} if found is not None else {})},
        headline=_headline(asked, found, shown),
        binding=_binding(asked, found, shown),
        verdict="yes" if found is not None else "no",
        results=_results(asked, found, shown),
        tables=(_by_precision(asked), _by_part(shown)),
        figure=sequences_figure(shown, SMALLEST if found else ASKED if asked.tp else TOO_SMALL),
        charts=(_chart(shown),),
        notes=_notes(asked),
        sources=(asked.replica.engine.source,),
        next_commands=(
            *((_roofline(scenario, asked, found),) if found is not None else ()),
            follow(scenario, "show model", {"chips": [shown.chip.name]}),
        ),
    )


def _roofline(scenario: Scenario, asked: Formats, found: Fit) -> str:
    """Where a step of what fits lies under the roofline."""
    held = max(1, min(MOST_SHOWN, found.num_sequences))
    batch = asked.num_sequences if scenario.given("batch") else held
    return follow(scenario, "show roofline", {"chip": found.chip.name, "tp": found.tp, "batch": batch})


def _results(asked: Formats, found: Fit | None, shown: Fit) -> dict[str, Cell]:
    return {
        "num_chips": found.tp if found is not None else None,
        "num_sequences": shown.num_sequences,
        "cache_tokens": shown.capacity.tokens if shown.free_bytes > 0 else 0,
        "num_blocks": shown.capacity.num_blocks,
        "weight_bytes": shown.weight_bytes,
        "cache_bytes": parts_of(shown)["cache"],
        "missing_bytes": max(0.0, shown.missing_bytes(asked.num_sequences)),
        "sequence_bytes": shown.sequence_bytes,
        **({"adapter_bytes": shown.capacity.adapter_bytes} if asked.replica.adapters else {}),
    }


def _words(asked: Formats) -> str:
    many = "one sequence" if asked.num_sequences == 1 else f"{asked.num_sequences:,} sequences"
    return f"{many} of {counted(asked.context, 'token')}"


def _headline(asked: Formats, found: Fit | None, shown: Fit) -> str:
    model, chip = asked.replica.model, asked.replica.chip
    title = model.title or model.name
    if found is not None:
        return (
            f"Yes: {title} in {asked.precision} fits on {found.tp} × {chip.name} and holds "
            f"{counted(found.num_sequences, 'sequence')} of {counted(asked.context, 'token')} at once."
        )
    why = why_not(chip, asked.replica.precision)
    if why:
        return f"No: {chip.title} {why}, so {title} does not run on it in {asked.precision}."
    largest = legal_groups(model)[-1]
    where = f"{shown.tp} × {chip.name}" if asked.tp else f"any group of up to {largest} × {chip.name}"
    lacking = f"; each chip of {shown.tp} lacks {fmt(shown.missing_bytes(asked.num_sequences), 'bytes')}"
    return f"No: {title} in {asked.precision} with {_words(asked)} does not fit on {where}{lacking}."


def _binding(asked: Formats, found: Fit | None, shown: Fit) -> str:
    if found is None:
        changes = remedies(
            shown.replica, asked.context, asked.num_sequences, context_field="context", memory_only=True
        )
        return changes[:1].upper() + changes[1:] + "."
    more = ""
    if better := asked.better(found):
        name, other = better
        more = f" In {name}, {other.tp} × {found.chip.name} would hold {other.num_sequences:,}."
    if asked.replica.adapters is not None:
        more = f" Adapters take {fmt(found.capacity.adapter_bytes, 'bytes')} of each chip.{more}"
    share = percent(found.weight_fraction)
    return f"Weights take {share} of what the engine hands out on each chip, the cache the rest.{more}"


def _by_precision(asked: Formats) -> Table:
    """Sequences held, by precision and chips."""
    chip = asked.replica.chip
    groups = asked.groups()
    rows: list[tuple[Cell, ...]] = []
    for name in asked.replicas:
        single = asked.on(1, name)
        held = (asked.held(tp, name) for tp in groups)
        rows.append((name, single.weight_bytes, single.sequence_bytes, *held))
    columns = (
        Column("precision"),
        Column("weights", "bytes"),
        Column("cache of a sequence", "bytes", "sequence_bytes"),
        *(Column(f"on {counted(tp, 'chip')}", "count", f"num_sequences_tp{tp}") for tp in groups),
    )
    return Table(
        title=f"sequences of {counted(asked.context, 'token')} held at once by {chip.name}",
        columns=columns,
        rows=tuple(rows),
        marked=0,
        note="0: the weights, or one sequence beside them, do not fit; –: the chip cannot multiply in it",
    )


def _by_part(shown: Fit) -> Table:
    shares = shares_of(shown)
    rows: list[tuple[Cell, ...]] = [(name, size, shares[name]) for name, size in parts_of(shown).items()]
    return Table(
        title=f"memory of one chip of {shown.tp}" if shown.tp > 1 else "memory of the chip",
        columns=(Column("part"), Column("memory", "bytes"), Column("of the chip", "fraction")),
        rows=tuple(rows),
        note=f"{shown.capacity.num_blocks:,} blocks of {counted(shown.capacity.block_tokens, 'token')}",
    )


def _chart(shown: Fit) -> StackChart:
    return StackChart(
        title=f"memory of one chip of {shown.tp} × {shown.chip.name}",
        unit="bytes",
        rows=(shown.chip.name,),
        parts={name: (size,) for name, size in parts_of(shown).items()},
        limits=(shown.capacity.memory_bytes,),
    )


def _notes(asked: Formats) -> tuple[str, ...]:
    engine, adapters = asked.replica.engine, asked.replica.adapters
    share = "what weights and activations leave" if engine.fraction_of_free else "the memory"
    inside = (
        f"activations for {engine.token_budget:,} tokens and {engine.max_sequences:,} sequences"
        if engine.activations_inside
        else "activations in the rest"
    )
    lines = [
        f"divided as {engine.title} does it at start: {percent(engine.memory_fraction)} of {share}, {inside}",
        "activations and buffers vary by 1 to 2 GB between versions; near the edge, start the engine and read its log",
    ]
    if adapters is not None:
        lines.append(
            f"{adapters.resident:,} of {adapters.num:,} adapters of rank {adapters.rank}, beside attention and dense "
            "MLPs, are on the chips"
        )
    return (*lines, *context_notes(asked.replica.model, asked.context))

"""`datahall show fit`: does a model fit on a chip, how many sequences of a context, which precision makes it fit."""

from __future__ import annotations

import msgspec

from datahall.answer import Answer, Cell, Column, StackChart, Table
from datahall.answers.bounds import find_model, opened, whole
from datahall.answers.serving.words import adapters_from
from datahall.breakdown import Breakdown
from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.inference.engine.engine import engine_on
from datahall.inference.engine.replica import Adapters, Replica
from datahall.inference.memory.fit import Fit, legal_groups, on_group, why_not
from datahall.inference.memory.remedy import remedies
from datahall.units import fmt
from datahall.workload.precision import Precision
from datahall.workload.sharding import Sharding

PRECISIONS = ("bf16", "fp8", "fp8-kv8", "w4a16", "nvfp4")
SHOWN_GROUPS = 4


class _Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The question, read."""

    model: Model
    chip: Chip
    context: int
    sequences: int
    engine: str
    precision: str
    groups: tuple[int, ...]
    tp: int  # 0: the smallest that does
    adapters: Adapters | None = None

    def on(self, tp: int, precision: str) -> Fit:
        return on_group(
            self.model, self.chip, tp, self.context, Precision.named(precision), self.engine, self.adapters
        )

    def smallest(self, precision: str) -> Fit | None:
        """The asked group, or the smallest one, where it holds what was asked."""
        if why_not(self.chip, Precision.named(precision)):
            return None
        for tp in (self.tp,) if self.tp else self.groups:
            found = self.on(tp, precision)
            if found.free_bytes > 0 and found.num_sequences >= self.sequences:
                return found
        return None


def show_fit(
    model: str,
    *,
    chip: str = "h100-sxm",
    context: int | str = 8192,
    sequences: int | str = 1,
    precision: str = "bf16",
    tp: int | str | None = None,
    engine: str = "vllm",
    adapters: int | str | None = None,
    adapter_rank: int | str = 16,
    catalog: Catalog | None = None,
) -> Answer:
    """How many sequences each precision and each group of chips holds; "no" where the asked one holds too few."""
    shelf = opened(catalog)
    known, part = find_model(model, shelf), shelf.chip(chip)
    Precision.named(precision)
    asked = _Asked(
        model=known,
        chip=part,
        context=whole("context", context),
        sequences=whole("sequences", sequences),
        engine=engine_on(engine, part).name,
        precision=precision,
        groups=tuple(legal_groups(known)),
        tp=whole("tp", tp) if tp is not None else 0,
        adapters=adapters_from(adapters, adapter_rank),
    )
    if asked.tp:
        Sharding(tp=float(asked.tp)).check(known)
    found = asked.smallest(precision)
    shown = found or asked.on(asked.tp or 1, precision)
    return Answer(
        kind="fit",
        inputs={
            "model": known.name,
            "chip": part.name,
            "context_tokens": asked.context,
            "num_sequences": asked.sequences,
            "precision": precision,
            "tp": asked.tp or None,
            "engine": asked.engine,
        },
        headline=_headline(asked, found, shown),
        binding=_binding(asked, found, shown),
        verdict="yes" if found is not None else "no",
        results={
            "num_chips": found.tp if found is not None else None,
            "num_sequences": shown.num_sequences,
            "cache_tokens": shown.capacity.tokens if shown.free_bytes > 0 else 0,
            "num_blocks": shown.capacity.num_blocks,
            "weight_bytes": shown.weight_bytes,
            "cache_bytes": shown.free_bytes,
            "sequence_bytes": shown.sequence_bytes,
            **({"adapter_bytes": shown.capacity.adapter_bytes} if asked.adapters else {}),
        },
        tables=(_by_precision(asked), _by_part(shown)),
        figure=_figure(shown),
        charts=(_chart(shown),),
        notes=_notes(asked),
        sources=(engine_on(engine, part).source,),
        next_commands=(
            f"datahall show roofline {part.name} --model {model} --phase decode --context {asked.context} "
            f"--batch {max(1, min(32, shown.num_sequences))} --precision {precision} --tp {shown.tp}",
            f"datahall show model {model} --seq {asked.context}",
        ),
    )


def _words(asked: _Asked) -> str:
    many = "one sequence" if asked.sequences == 1 else f"{asked.sequences:,} sequences"
    return f"{many} of {asked.context:,} tokens"


def _headline(asked: _Asked, found: Fit | None, shown: Fit) -> str:
    title = asked.model.title or asked.model.name
    if found is not None:
        return (
            f"Yes: {title} in {asked.precision} fits on {found.tp} × {found.chip.name} and holds "
            f"{found.num_sequences:,} sequence{'s' if found.num_sequences != 1 else ''} of {asked.context:,} tokens "
            f"at once."
        )
    why = why_not(asked.chip, Precision.named(asked.precision))
    if why:
        return f"No: {asked.chip.title} {why}, so {title} does not run on it in {asked.precision}."
    needed = shown.weight_bytes + asked.sequences * shown.sequence_bytes - shown.usable_bytes
    where = (
        f"{shown.tp} × {asked.chip.name}"
        if asked.tp
        else f"any group of up to {asked.groups[-1]} × {asked.chip.name}"
    )
    lacking = f"; each chip of {shown.tp} lacks {fmt(needed, 'bytes')}"
    return f"No: {title} in {asked.precision} with {_words(asked)} does not fit on {where}{lacking}."


def _binding(asked: _Asked, found: Fit | None, shown: Fit) -> str:
    if found is None:
        replica = Replica(
            model=asked.model, chip=asked.chip, engine=engine_on(asked.engine, asked.chip),
            precision=Precision.named(asked.precision), tp=shown.tp, max_context=asked.context,
            adapters=asked.adapters,
        )  # fmt: skip
        return remedies(replica, asked.context, asked.sequences).capitalize() + "."
    better = next(
        (
            (name, one)
            for name in PRECISIONS
            if (one := asked.smallest(name)) is not None
            and (one.tp, -one.num_sequences) < (found.tp, -found.num_sequences)
        ),
        None,
    )
    share = found.weight_bytes / found.usable_bytes
    more = (
        f" In {better[0]}, {better[1].tp} × {found.chip.name} would hold {better[1].num_sequences:,}."
        if better
        else ""
    )
    if asked.adapters is not None:
        more = f" Adapters take {fmt(found.capacity.adapter_bytes, 'bytes')} of each chip.{more}"
    return f"Weights take {share:.0%} of what the engine hands out on each chip, the cache the rest.{more}"


def _by_precision(asked: _Asked) -> Table:
    """Sequences held, by precision and chips."""
    groups = [tp for tp in asked.groups if tp <= 8][-SHOWN_GROUPS:]
    if asked.tp and asked.tp not in groups:
        groups = [*groups[1:], asked.tp]
    names = list(dict.fromkeys((asked.precision, *PRECISIONS)))
    rows: list[tuple[Cell, ...]] = []
    for name in names:
        why = why_not(asked.chip, Precision.named(name))
        one = asked.on(1, name)
        held: list[Cell] = [None if why else max(0, asked.on(tp, name).num_sequences) for tp in groups]
        rows.append((name, one.weight_bytes, one.sequence_bytes, *held))
    columns = (
        Column("precision"),
        Column("weights", "bytes"),
        Column("cache of a sequence", "bytes", "sequence_bytes"),
        *(Column(f"on {tp} chip{'s' if tp > 1 else ''}", "count", f"num_sequences_tp{tp}") for tp in groups),
    )
    return Table(
        title=f"sequences of {asked.context:,} tokens held at once by {asked.chip.name}",
        columns=columns,
        rows=tuple(rows),
        marked=0,
        note="0: the weights, or one sequence beside them, do not fit; –: the chip cannot multiply in it",
    )


def _parts(shown: Fit) -> dict[str, float]:
    capacity = shown.capacity
    kept = capacity.memory_bytes - capacity.usable_bytes
    return {
        "weights": capacity.weight_bytes,
        **({"adapters": capacity.adapter_bytes} if capacity.adapter_bytes else {}),
        "activations": capacity.activation_bytes,
        "context, graphs and buffers": capacity.reserved_bytes,
        "cache": max(capacity.pool_bytes, 0.0),
        "kept back": max(0.0, min(kept, capacity.memory_bytes - capacity.weight_bytes)),
    }


def _by_part(shown: Fit) -> Table:
    memory = shown.capacity.memory_bytes
    rows: list[tuple[Cell, ...]] = [(name, size, size / memory) for name, size in _parts(shown).items()]
    return Table(
        title=f"memory of one chip of {shown.tp}" if shown.tp > 1 else "memory of the chip",
        columns=(Column("part"), Column("memory", "bytes"), Column("of the chip", "fraction")),
        rows=tuple(rows),
        note=f"{shown.capacity.num_blocks:,} blocks of {shown.capacity.block_tokens} tokens",
    )


def _figure(shown: Fit) -> Breakdown:
    capacity = shown.capacity
    rest = tuple(
        Breakdown(name=name, value=value, unit="bytes")
        for name, value in (
            ("the engine's share of the memory", capacity.usable_bytes),
            ("weights", capacity.weight_bytes),
            *((("adapters", capacity.adapter_bytes),) if capacity.adapter_bytes else ()),
            ("activations", capacity.activation_bytes),
            ("reserved", capacity.reserved_bytes),
        )
    )
    formula = " − ".join(("the engine's share", *(part.name for part in rest[1:])))
    pool = Breakdown(
        name="memory for the cache", value=capacity.pool_bytes, unit="bytes",
        formula=formula, parts=rest,
    )  # fmt: skip
    each = Breakdown(
        name=f"cache of a sequence of {shown.seq:,} tokens", value=shown.sequence_bytes, unit="bytes",
        formula="blocks it touches × bytes of a block",
    )  # fmt: skip
    return Breakdown(
        name="sequences held at once", value=float(shown.num_sequences), unit="count",
        formula="memory for the cache / cache of a sequence, whole blocks", parts=(pool, each),
    )  # fmt: skip


def _chart(shown: Fit) -> StackChart:
    return StackChart(
        title="memory of one chip",
        unit="bytes",
        rows=(f"{shown.tp} × {shown.chip.name}",),
        parts={name: (size,) for name, size in _parts(shown).items()},
        limits=(shown.capacity.memory_bytes,),
    )


def _notes(asked: _Asked) -> tuple[str, ...]:
    engine = engine_on(asked.engine, asked.chip)
    share = "what weights and activations leave" if engine.fraction_of_free else "the memory"
    inside = (
        f"activations for {engine.token_budget:,} tokens and {engine.max_sequences:,} sequences"
        if engine.activations_inside
        else "activations in the rest"
    )
    lines = [
        f"divided as {engine.title} does it at start: {engine.memory_fraction:.0%} of {share}, {inside}",
        "activations and buffers vary by 1 to 2 GB between versions; near the edge, start the engine and read its log",
    ]
    if asked.adapters is not None:
        lines.append(
            f"{asked.adapters.num:,} adapters of rank {asked.adapters.rank}, beside attention and dense MLPs, are "
            "all on the chips"
        )
    if asked.context > asked.model.max_context:
        lines.append(
            f"{asked.context:,} tokens is beyond the {asked.model.max_context:,} the model was made for"
        )
    return tuple(lines)

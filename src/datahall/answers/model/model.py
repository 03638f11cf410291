"""One model: its parameters, arithmetic and bytes per token, its cache, and what it fits on."""

from __future__ import annotations

from collections.abc import Sequence

from datahall.answer import Answer, Cell
from datahall.answers.context import context_notes
from datahall.answers.follow import explained, follow
from datahall.answers.model.model_table import charts, fit_table, parts_table, precision_table, token_table
from datahall.breakdown import Breakdown
from datahall.catalog.entries.model import Model
from datahall.counted import counted
from datahall.inference.memory.fit import OFTEN_ASKED, Fit, best, smallest_fit
from datahall.scenario.kinds import Plain
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import Deployment
from datahall.scenario.sections.views import Sequences
from datahall.scenario.sections.wanted.candidates import Candidates
from datahall.units import fmt
from datahall.workload.flops import TokenWork, token_work
from datahall.workload.memory.figure import memory_figure
from datahall.workload.parameters import ParameterCount, count_parameters, published_difference
from datahall.workload.precision import Precision


def show_model(scenario: Scenario) -> Answer:
    """What a model is made of, what a token of it costs, and the smallest group of each chip that holds it."""
    model, sequences = scenario.model(), scenario.one(Sequences)
    precision = scenario.one(Deployment).precision
    formats, counts = Precision.named(precision), count_parameters(model)
    chips = scenario.one(Candidates).chips or OFTEN_ASKED
    fits = [
        smallest_fit(
            model,
            scenario.catalog.chip(chip),
            context=sequences.context,
            num_sequences=sequences.batch,
            precision=precision,
            catalog=scenario.catalog,
        )
        for chip in chips
    ]
    memory = memory_figure(
        model,
        formats,
        name=f"memory of one copy in {precision}",
        context=sequences.context,
        batch=sequences.batch,
    )
    work = token_work(model, sequences.context, formats)
    smallest = best(fits)
    group: dict[str, Plain | None] = {"chip": chips[0]}
    if smallest is not None:
        group = {"chip": fits[smallest].chip.name, "tp": fits[smallest].tp}
    return Answer(
        kind="model",
        headline=_headline(model, counts, memory, precision, sequences),
        binding=_binding(fits, sequences, precision),
        results=_results(counts, memory, work),
        tables=(
            fit_table(fits, sequences, precision, len(scenario.catalog.chips())),
            parts_table(counts),
            token_table(work, sequences.context),
            precision_table(model, counts, sequences.context),
        ),
        figure=memory,
        charts=charts(fits, sequences.batch),
        notes=_notes(model, counts, sequences.context),
        next_commands=(
            follow(scenario, "show fit", group),
            follow(scenario, "show roofline", group),
            explained(follow(scenario)),
        ),
    )  # fmt: skip


def _headline(
    model: Model, counts: ParameterCount, memory: Breakdown, precision: str, sequences: Sequences
) -> str:
    active = f", {fmt(counts.active, 'parameters')} active per token" if counts.active < counts.total else ""
    weights, cache = (fmt(part.value, "bytes") for part in memory.parts)
    tokens = counted(sequences.context, "token")
    held = f"a sequence of {tokens}" if sequences.batch == 1 else f"{sequences.batch:,} sequences of {tokens}"
    return (
        f"{model.title or model.name} has {fmt(counts.total, 'parameters')} parameters{active}: "
        f"in {precision} its weights take {weights} and {held} {cache} of cache."
    )


def _binding(fits: Sequence[Fit], sequences: Sequences, precision: str) -> str:
    row = best(fits)
    if row is None:
        return f"No group of up to 64 of these chips holds it in {precision}."
    group = fits[row]
    asked = f"{sequences.batch:,} sequences" if sequences.batch > 1 else "one sequence"
    return (
        f"Memory decides: the smallest group that holds it and {asked} is {group.tp} × {group.chip.name}, with "
        f"room for {group.num_sequences:,} of {counted(sequences.context, 'token')}."
    )


def _results(counts: ParameterCount, memory: Breakdown, work: TokenWork) -> dict[str, Cell]:
    return {
        "num_parameters": counts.total,
        "num_active_parameters": counts.active,
        "memory_bytes": memory.value,
        "weight_bytes": memory.at("weights").value,
        "kv_cache_bytes": memory.at("KV cache").value,
        "kv_bytes_per_token": work.kv_bytes,
        "forward_flop_per_token": work.forward_flop,
        "training_flop_per_token": work.training_flop,
        "decode_bytes_per_token": work.decode_bytes,
    }


def _notes(model: Model, counts: ParameterCount, context: int) -> tuple[str, ...]:
    lines = [
        "memory is divided as vLLM does it at start: 90 % of what the runtime sees, less activations and buffers",
        "groups are powers of two that the heads divide by; where KV heads are fewer they are repeated",
        *_published(model),
    ]
    if model.published_parameters:
        off = 100 * published_difference(model, counts)
        lines.append(
            f"its maker says {fmt(model.published_parameters, 'parameters')}; our count is {off:+.2f} % off"
        )
    lines += context_notes(model, context)
    if model.note:
        lines.append(model.note)
    return tuple(lines)


def _published(model: Model) -> list[str]:
    """The number format of its checkpoint, where that is a narrow one."""
    own = model.quantisation
    if own is None:
        return []
    rows, columns = own.block
    scales = f", with a scale per {rows} × {columns} weights" if columns else ""
    return [f"its weights are published in {own.format}{scales}"]

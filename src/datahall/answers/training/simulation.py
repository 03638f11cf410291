"""`datahall simulate train`: one step of a training run, stage by stage and micro-batch by micro-batch."""

from __future__ import annotations

import numpy as np

from datahall.answer import Answer, Cell
from datahall.answers.training.imbalance_option import imbalance_notes
from datahall.answers.training.offload_table import offload_table
from datahall.answers.training.simulation_run import simulated
from datahall.answers.training.simulation_tables import (
    communication_table,
    difference_table,
    memory_of,
    stage_chart,
    stage_table,
    synchronisation_table,
)
from datahall.breakdown import Band, Breakdown
from datahall.catalog import Catalog
from datahall.events import perfetto
from datahall.training.memory.bookkeeping import bookkeeping_of
from datahall.training.memory.remedy import layout_offload
from datahall.training.pipeline.execution import OF_WHICH, PART_NAMES, Execution
from datahall.training.pipeline.simulate import KIND_NAMES, timeline, track_names
from datahall.training.step.compression import CAVEAT
from datahall.training.step.step import step_band
from datahall.units import fmt

FRAMEWORK = "nemo"


def simulate_train(
    model: str,
    *,
    chips: int | str,
    chip: str,
    seq: int | str = 8192,
    batch: int | str,
    tp: int | str = 1,
    pp: int | str = 1,
    vpp: int | str = 1,
    cp: int | str = 1,
    ep: int | str = 1,
    etp: int | str | None = None,
    dp: int | str | None = None,
    zero: int | str = 1,
    shard: int | str | None = None,
    micro_batch: int | str = 1,
    schedule: str = "",
    recompute: str = "none",
    modules: str | None = None,
    context: str | None = None,
    split: str | None = None,
    offload: str | None = None,
    compress: str | None = None,
    imbalance: float | str | None = None,
    precision: str = "bf16",
    framework: str = FRAMEWORK,
    domain: int | str = 0,
    nic: float | str = 0.0,
    slow_hosts: float | str = 0.0,
    slow_by: float | str = 0.1,
    jitter: float | str = 0.0,
    seed: int = 0,
    catalog: Catalog | None = None,
) -> Answer:
    """One step: time, MFU, bubble, exposed and hidden exchange, memory, and the closed form beside it."""
    return train_answer(
        simulated(
            model, chips=chips, chip=chip, seq=seq, batch=batch, tp=tp, pp=pp, vpp=vpp, cp=cp, ep=ep, dp=dp,
            zero=zero, micro_batch=micro_batch, schedule=schedule, recompute=recompute, precision=precision,
            framework=framework, domain=domain, nic=nic, slow_hosts=slow_hosts, slow_by=slow_by, jitter=jitter,
            seed=seed, etp=etp, shard=shard, modules=modules, context=context, split=split, offload=offload,
            compress=compress, imbalance=imbalance, catalog=catalog,
        )
    )  # fmt: skip


def train_trace(run: Execution) -> bytes:
    """The slowest replica's step as a Perfetto trace: two tracks a stage, kernels and exchange beside them."""
    return perfetto(timeline(run.slowest, run.stages.work), KIND_NAMES, track_names(run.plan))


def train_answer(run: Execution) -> Answer:
    """What happened, in the order a person asks."""
    memory = memory_of(run)
    outside = layout_offload(run.job, run.cluster, run.layout, run.framework, bookkeeping_of(run.framework))
    return Answer(
        kind="training step",
        inputs=_inputs(run),
        headline=_headline(run) + memory.sentence,
        binding=_binding(run),
        results=_results(run) | memory.results,
        tables=(
            difference_table(run),
            communication_table(run),
            synchronisation_table(run),
            stage_table(run, memory),
            *offload_table(outside, run.cluster.host),
        ),
        figure=_figure(run),
        charts=(stage_chart(run),),
        notes=(*_notes(run, fits=memory.fits), *(line.sentence for line in outside)),
        sources=(run.framework.source,),
        next_commands=_next(run),
    )


def _inputs(run: Execution) -> dict[str, Cell]:
    layout, who = run.layout, run.stragglers
    return {
        "model": run.job.model.name, "chip": run.cluster.chip.name, "chips": run.cluster.num_chips,
        "seq_tokens": run.job.seq, "batch_sequences": run.job.global_batch, "tp": layout.tp, "pp": layout.pp,
        "vpp": layout.vpp, "cp": layout.cp, "ep": layout.ep, "dp": layout.dp, "zero": layout.zero,
        "micro_batch": layout.micro_batch, "schedule": run.plan.name, "recompute": layout.recompute,
        "etp": layout.etp, "shard": layout.shard, "context": layout.context, "modules": " ".join(layout.modules),
        "split": " ".join(map(str, layout.split)), "offload": " ".join(layout.offload),
        "compression": layout.compression, "framework": run.framework.name, "imbalance_ratio": run.job.imbalance,
        "slow_hosts_fraction": who.slow_hosts_fraction,
        "slow_by_fraction": who.slow_by_fraction, "jitter_fraction": who.jitter_fraction,
    }  # fmt: skip


def _headline(run: Execution) -> str:
    model, chip = run.job.model, run.cluster.chip
    low, high = step_band(run.job, run.cluster, run.framework)
    return (
        f"A step of {model.title or model.name} on {run.cluster.num_chips:,} × {chip.title} takes "
        f"{fmt(run.step_s, 's', 3)} ({fmt(run.step_s * low, 's', 3)} to {fmt(run.step_s * high, 's', 3)}): "
        f"{run.mfu_fraction:.1%} MFU, {run.tokens_per_s:,.0f} tokens/s."
    )


def _binding(run: Execution) -> str:
    parts = run.parts
    lost = {
        label: getattr(parts, name)
        for name, label in PART_NAMES.items()
        if name not in ("kernels_s", *OF_WHICH)
    }
    label, most_s = max(lost.items(), key=lambda pair: pair[1])
    closed_s = run.closed_parts.step_s
    return (
        f"Kernels take {parts.kernels_s / run.step_s:.0%} of the step; most of the rest goes to {label} "
        f"({most_s / run.step_s:.0%}). The closed form says {fmt(closed_s, 's', 3)}, "
        f"{closed_s / run.step_s - 1:+.1%} from what was played."
    )


def _results(run: Execution) -> dict[str, Cell]:
    parts, hidden = run.parts, run.hidden_s
    exposed_s = parts.exchange_s + parts.messages_s + parts.data_s
    low, high = step_band(run.job, run.cluster, run.framework)
    return {
        "step_s": run.step_s,
        "step_low_s": run.step_s * low,
        "step_high_s": run.step_s * high,
        "mfu_fraction": run.mfu_fraction,
        "tokens_per_s": run.tokens_per_s,
        "chip_tokens_per_s": run.tokens_per_s / run.cluster.num_chips,
        "bubble_fraction": parts.bubble_s / run.step_s,
        "exposed_s": exposed_s,
        "hidden_s": sum(hidden.values()),
        "slowest_s": parts.slowest_s,
        "uneven_s": parts.uneven_s,
        "closed_form_s": run.closed_parts.step_s,
        "difference_fraction": run.closed_parts.step_s / run.step_s - 1.0,
        "num_micro": run.plan.num_micro,
        "num_slots": int(run.plan.kind.size),
        "num_replicas_played": run.num_played,
    }


def _figure(run: Execution) -> Breakdown:
    low, high = step_band(run.job, run.cluster, run.framework)
    parts = tuple(
        Breakdown(name=label, value=getattr(run.parts, name), unit="s")
        for name, label in PART_NAMES.items()
        if name not in OF_WHICH and getattr(run.parts, name)
    )
    return Breakdown(
        name="step",
        value=run.step_s,
        unit="s",
        formula=" + ".join(part.name for part in parts),
        parts=parts,
        band=Band(run.step_s * low, run.step_s * high, f"{run.framework.title}: {run.framework.fitted_on}"),
        sources=(run.framework.source,),
    )


def _notes(run: Execution, *, fits: bool) -> tuple[str, ...]:
    num_chips = run.layout.tp * run.layout.cp
    lines = [
        "MFU counts three forwards, attention causal, nothing recomputed, over the dense "
        f"{run.job.precision.compute} peak",
        f"the range holds eight of ten measured runs ({run.framework.title}; {run.framework.fitted_on})",
    ]
    if run.stragglers.jitter_fraction:
        spread = np.quantile(run.steps_s, [0.1, 0.9])
        lines.append(
            f"mean of {run.steps_s.size} steps drawn, {fmt(float(spread[0]), 's')} to {fmt(float(spread[1]), 's')}; a "
            f"stage waits for the slowest of {num_chips} chips, a step for the slowest of {run.layout.dp:,} replicas"
        )
    elif run.layout.dp > 1:
        lines.append(
            f"{run.layout.dp:,} replicas, of which {run.num_played} had to be played to know the slowest"
        )
    if run.layout.compression != "none":
        lines.append(f"gradients {run.layout.compression}: {CAVEAT}")
    lines += imbalance_notes(run.job, run.layout)
    if not fits:
        lines.append(
            "the step is played as if it fitted; --recompute, more --pp, --tp or --zero 2 take less memory"
        )
    return tuple(lines)


def _next(run: Execution) -> tuple[str, ...]:
    layout, job = run.layout, run.job
    ask = (
        f"datahall simulate train {job.model.name} --chips {run.cluster.num_chips} --chip {run.cluster.chip.name} "
        f"--tp {layout.tp} --pp {layout.pp} --dp {layout.dp} --seq {job.seq} --batch {job.global_batch}"
    )
    ask += f" --vpp {layout.vpp}" if layout.vpp > 1 else ""
    ask += f" --cp {layout.cp}" if layout.cp > 1 else ""
    ask += f" --ep {layout.ep}" if layout.ep > 1 else ""
    ask += f" --etp {layout.etp}" if layout.etp else ""
    ask += f" --zero {layout.zero}" if layout.zero != 1 else ""
    ask += f" --shard {layout.shard}" if layout.shard else ""
    ask += f" --context {layout.context}" if layout.context != "ring" else ""
    ask += f' --split "{" ".join(map(str, layout.split))}"' if layout.split else ""
    ask += f" --modules {','.join(layout.modules)}" if layout.modules else ""
    ask += f" --offload {','.join(layout.offload)}" if layout.offload else ""
    ask += f" --compress {layout.compression}" if layout.compression != "none" else ""
    ask += f" --imbalance {job.imbalance:g}" if job.imbalance is not None else ""
    other = f"{ask} --schedule zb" if layout.vpp == 1 and run.plan.name != "zb" and layout.pp > 1 else ""
    slow = "" if run.stragglers.any else f'{ask} --slow-hosts "0.5 %" --jitter "1 %"'
    return tuple(
        one for one in (f"{ask} -o step.perfetto-trace", other, slow, "datahall validate training") if one
    )

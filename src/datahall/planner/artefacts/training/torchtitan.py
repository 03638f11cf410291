"""torchtitan's job file for the layout of a plan, as the last release that reads TOML has it."""

from __future__ import annotations

import re

from datahall.catalog.entries.model import Model
from datahall.catalog.entries.tool import Flavour, Tool, tool
from datahall.planner.artefacts.options import Options, Value, tables_of, words_of
from datahall.planner.artefacts.refused import refuse
from datahall.planner.artefacts.script import head
from datahall.planner.artefacts.toml import toml
from datahall.planner.artefacts.training.run import Run, beyond_state, check_launch, expert_degree, state_of

CONVERTERS = {"bf16": [], "fp8": ["quantize.linear.float8"], "mxfp8": ["quantize.linear.mx"]}
STATES = {
    "megatron": None,
    "fp32": None,
    "pure-bf16": "bfloat16",
}  # by the formats of a plan, of weights and moments
# the models that a family of its own declares, by what our names of them begin with
GENERATIONS = {
    "llama3": ("llama-3",), "llama4": ("llama-4",), "qwen3": ("qwen3-",), "gpt_oss": ("gpt-oss",),
    "deepseek_v3": ("deepseek-v2", "deepseek-v3"),
}  # fmt: skip
CPU = ("optimizer", "parameters")  # it moves both or none


def torchtitan_job(run: Run) -> str:
    """The file, and above it how it is started."""
    known, torchrun = tool("torchtitan"), tool("torchrun")
    check_launch(run, known)
    options = job_options(run, known)
    launch: dict[str, Value | None] = {
        "--nnodes": str(run.num_nodes),
        "--nproc-per-node": str(run.num_beside),
    }
    start = f"torchrun {' '.join(words_of(torchrun, launch))} -m torchtitan.train --job.config_file THIS_FILE"
    notes = [
        *run.notes,
        f"on each node: {start}, with rendezvous as on your cluster",
        "optimizer.lr, training.dataset and model.hf_assets_path are no part of the plan: say them here or behind it",
    ]
    return "\n".join([*head(run.origin, (known, torchrun), notes), "", toml(tables_of(known, options))])


def job_options(run: Run, known: Tool) -> Options:
    """All keys of the run."""
    layout, job = run.layout, run.plan.job
    refuse(known, _beyond(run))
    name, flavour = flavour_of(run.model, known).split("/")
    shared = layout.shard or layout.dp
    sharded = layout.zero >= 2 and layout.dp > 1
    return {
        "model.name": name,
        "model.flavor": flavour,
        "model.converters": CONVERTERS[run.precision] or None,
        "training.dtype": state_of(run, STATES),
        "training.seq_len": job.seq,
        # of a replica: with a pipeline all of its micro-batches, which it cuts itself
        "training.local_batch_size": layout.micro_batch * (run.num_micro if layout.pp > 1 else 1),
        "training.global_batch_size": job.global_batch,
        "training.steps": run.plan.num_steps,
        "training.enable_cpu_offload": True if layout.offload else None,
        "parallelism.data_parallel_shard_degree": shared if sharded else 1,
        "parallelism.data_parallel_replicate_degree": layout.dp // shared if sharded else layout.dp,
        "parallelism.fsdp_reshard_after_forward": ("always" if layout.zero == 3 else "never")
        if sharded
        else None,
        "parallelism.tensor_parallel_degree": layout.tp,
        "parallelism.context_parallel_degree": layout.cp,
        "parallelism.context_parallel_rotate_method": "alltoall" if layout.cp > 1 else None,
        "parallelism.expert_parallel_degree": layout.ep if run.model.moe is not None else None,
        "parallelism.expert_tensor_parallel_degree": expert_degree(layout)
        if run.model.moe is not None
        else None,
        **_stages(run, known),
        "activation_checkpoint.mode": layout.recompute,
        "activation_checkpoint.selective_ac_option": "op" if layout.recompute == "selective" else None,
        "checkpoint.enable": True if run.save_steps else None,
        "checkpoint.interval": run.save_steps,
    }


def _beyond(run: Run) -> list[str]:
    """Choices that it has no key for."""
    layout = run.layout
    tiers = {*layout.offload} - {*CPU} or ({*layout.offload} and {*layout.offload} ^ {*CPU})
    return [
        f"the format {run.precision}" if run.precision not in CONVERTERS else "",
        f"ZeRO {layout.zero} among {layout.dp:,} replicas" if layout.zero == 1 and layout.dp > 1 else "",
        "an exchange of context all to all" if layout.cp > 1 and layout.context_exchange != "ring" else "",
        f"recomputing {', '.join(layout.modules)} alone" if layout.modules else "",
        f"gradients in {layout.compression}" if layout.compression != "none" else "",
        "tensor parallelism that keeps whole sequences"
        if layout.tp > 1 and not layout.sequence_parallel
        else "",
        f"offload of {', '.join(layout.offload)} alone" if tiers else "",
        beyond_state(run, STATES),
    ]


def _stages(run: Run, known: Tool) -> dict[str, Value | None]:
    """Chunks of stages that are all alike but the first and the last, which may be shorter."""
    layout, parts = run.layout, run.parts
    if layout.pp == 1:
        return {}
    most = max(parts)
    refuse(
        known,
        ("stages of " + " ".join(map(str, parts)) + " layers",)
        if any(one != most for one in parts[1:-1])
        else (),
    )
    return {
        "parallelism.pipeline_parallel_degree": layout.pp,
        "parallelism.pipeline_parallel_schedule": "Interleaved1F1B" if layout.vpp > 1 else "1F1B",
        "parallelism.pipeline_parallel_microbatch_size": layout.micro_batch,
        "parallelism.pipeline_parallel_layers_per_stage": most,
        "parallelism.pipeline_parallel_first_stage_less_layers": most - parts[0],
        "parallelism.pipeline_parallel_last_stage_less_layers": most - parts[-1],
    }


def flavour_of(model: Model, known: Tool) -> str:
    """The model that torchtitan has of the same sizes, as family/flavour."""
    found = [name for name, one in known.models.items() if _is_like(name, one, model)]
    found.sort(
        key=lambda name: known.models[name].attn_type not in ("", "sdpa")
    )  # a plain one before its variants
    what = f"a model of {model.num_layers} layers {model.hidden:,} wide like {model.name}"
    refuse(known, () if found else (what,))
    return found[0]


def _is_like(name: str, one: Flavour, model: Model) -> bool:
    """Whether a declaration is of a model's generation, and all that it states of sizes is the model's."""
    family, _, flavour = name.partition("/")
    experts = re.search(r"x(\d+)e", flavour)
    ffn = one.hidden_dim or one.inter_dim
    stated = (
        (one.dim, model.hidden),
        (one.n_layers, model.num_layers),
        (one.n_heads, model.num_heads),
        (one.n_kv_heads, model.num_kv_heads),
        (one.vocab_size, model.vocab),
        (ffn if model.moe is None or one.inter_dim else 0, model.ffn),
        (int(experts[1]) if experts else 0, model.moe.num_experts if model.moe is not None else 0),
    )
    return model.name.startswith(GENERATIONS.get(family, family)) and all(
        said in (0, has) for said, has in stated
    )

"""DeepSpeed's configuration for the layout of a plan: ZeRO, batches and formats; the rest is its script's."""

from __future__ import annotations

import json

from datahall.catalog.entries.tool import tool
from datahall.errors import option
from datahall.planner.artefacts.options import Options, tables_of
from datahall.planner.artefacts.refused import refuse
from datahall.planner.artefacts.training.run import Run, beyond_state, check_launch
from datahall.training.layout.codes import offload_parts

FORMATS = {"bf16": "bf16", "fp16": "fp16", "fp32": ""}
STATES = ("megatron", "bf16-gradients", "fp32")  # that its own optimizers keep


def deepspeed_config(run: Run) -> str:
    """The file; JSON has no comments, so what it is stands under a key of ours, which DeepSpeed passes over."""
    known = tool("deepspeed")
    check_launch(run, known)
    refuse(known, _beyond(run), "another framework's file, or fewer ways of splitting")
    whole = tables_of(known, config_options(run))
    about = [
        f"made by datahall {run.origin.version}: {run.origin.question}",
        f"options as in {known.title} {known.release}",
    ]
    about += [
        *run.notes,
        f"sequences of {run.plan.job.seq:,} tokens: the script that reads this has to make them so",
    ]
    return json.dumps({"datahall": about, **whole}, indent=2, ensure_ascii=False) + "\n"


def config_options(run: Run) -> Options:
    """All keys of the run."""
    layout, wide = run.layout, FORMATS.get(run.precision, "")
    offloaded = dict(map(offload_parts, layout.offload))
    return {
        "train_batch_size": run.plan.job.global_batch,
        "train_micro_batch_size_per_gpu": layout.micro_batch,
        "gradient_accumulation_steps": run.num_micro,
        "zero_optimization.stage": layout.zero,
        "zero_optimization.offload_optimizer.device": "cpu" if "optimizer" in offloaded else None,
        "zero_optimization.offload_param.device": "cpu" if "parameters" in offloaded else None,
        **({f"{wide}.enabled": True} if wide else {}),
        "tensor_parallel.autotp_size": layout.tp if layout.tp > 1 else None,
    }


def _beyond(run: Run) -> list[str]:
    """What the script decides and the file cannot say, and what the file has no key for."""
    layout = run.layout
    offloaded = dict(map(offload_parts, layout.offload))
    return [
        *(
            f"{option(name, getattr(layout, name))}"
            for name in ("pp", "cp", "ep")
            if getattr(layout, name) > 1
        ),
        f"{option('shard', layout.shard)}" if 0 < layout.shard < layout.dp else "",
        f"recomputing ({layout.recompute})" if layout.recompute != "none" else "",
        f"the format {run.precision}" if run.precision not in FORMATS else "",
        f"gradients in {layout.compression}" if layout.compression != "none" else "",
        "activations off the chips" if "activations" in offloaded else "",
        "offload to drives, whose path the plan does not know" if "nvme" in offloaded.values() else "",
        beyond_state(run, STATES),
    ]

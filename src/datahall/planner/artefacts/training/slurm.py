"""A job for Slurm: the nodes that the plan takes, and on each the command of Megatron-LM."""

from __future__ import annotations

import re

from datahall.catalog.entries.tool import tool
from datahall.planner.artefacts.options import Shell, Value, words_of
from datahall.planner.artefacts.script import head, script
from datahall.planner.artefacts.training.megatron import PORT, environment, pretrain, variables
from datahall.planner.artefacts.training.run import Run, check_launch


def slurm_script(run: Run) -> str:
    """What `sbatch` takes: it is queued again when a node fails, and goes on from the last copy."""
    known, slurm = tool("megatron"), tool("slurm")
    check_launch(run, known)
    name = re.sub(r"[^\w.-]+", "-", run.model.name)
    asked: dict[str, Value | None] = {
        "--job-name": name,
        "--nodes": str(run.num_nodes),
        "--ntasks-per-node": "1",
        "--gpus-per-node": str(run.num_beside),
        "--exclusive": True if run.num_beside == run.plan.cluster.num_host_chips else None,
        "--requeue": True,
        "--open-mode": "append",
        "--output": f"{name}-%j.log",
    }
    options = [f"#SBATCH {word.replace(' ', '=', 1)}" for word in words_of(slurm, asked)]
    launch: dict[str, Value | None] = {
        "--nnodes": Shell('"$SLURM_NNODES"'),
        "--rdzv-id": Shell('"$SLURM_JOB_ID"'),
        "--rdzv-backend": "c10d",
        "--rdzv-endpoint": Shell('"$first:$MASTER_PORT"'),
    }
    body = [
        *environment(run),
        'first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
        "",
        *pretrain(run, known, launch, "srun"),
    ]
    comments = [*options, *head(run.origin, (slurm, known, tool("torchrun")), run.notes)]
    return script(comments, [PORT, *variables(run)], body)

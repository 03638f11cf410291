"""Megatron-LM's arguments for the layout of a plan, and the command that starts them on each node."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from datahall.catalog.entries.tool import Tool, tool
from datahall.errors import option
from datahall.planner.artefacts.options import Shell, Value, words_of
from datahall.planner.artefacts.refused import refuse
from datahall.planner.artefacts.script import Variable, command, head, script
from datahall.planner.artefacts.training.megatron_model import model_options
from datahall.planner.artefacts.training.run import Run, beyond_state, check_launch, expert_degree, state_of

NODE_RANK = Variable("NODE_RANK", about="of this node, from 0")
ADDRESS = Variable("MASTER_ADDR", about="address of the first node")
PORT = Variable("MASTER_PORT", "29500")
SHARDED = {2: "optim_grads", 3: "optim_grads_params"}
FORMATS: dict[str, dict[str, Value | None]] = {
    "bf16": {"--bf16": True},
    "fp16": {"--fp16": True},
    "fp32": {},
    "fp8": {"--bf16": True, "--fp8-format": "hybrid"},
    "mxfp8": {"--bf16": True, "--fp8-format": "e4m3", "--fp8-recipe": "mxfp8"},
    "nvfp4": {"--bf16": True, "--fp4-format": "e2m1"},
}
STATES: dict[str, dict[str, Value | None]] = {
    "megatron": {},
    "fp32": {},
    "bf16-gradients": {"--grad-reduce-in-bf16": True},
    "precision-aware": {
        "--use-precision-aware-optimizer": True,
        "--exp-avg-dtype": "bf16",
        "--exp-avg-sq-dtype": "bf16",
    },
}


def variables(run: Run) -> list[Variable]:
    """What the environment says of any run: where things are, and how fast it learns, of which no plan knows."""
    return [
        Variable("MEGATRON", about="folder of Megatron-LM"),
        Variable("DATA_PATH", about="prefix of the tokenised data"),
        Variable("TOKENIZER", run.hub, "" if run.hub else "hub id or folder of the tokeniser"),
        Variable("CHECKPOINTS", about="folder that copies are written to and read from"),
        Variable("LR", about="highest rate of learning: it is no part of the plan"),
    ]


def training_options(run: Run, known: Tool) -> dict[str, Value | None]:
    """All arguments of the run: the layout, the job and the model."""
    layout, job = run.layout, run.plan.job
    refuse(known, (f"the format {run.precision}",) if run.precision not in FORMATS else ())
    return {
        "--tensor-model-parallel-size": layout.tp,
        "--pipeline-model-parallel-size": layout.pp,
        "--context-parallel-size": layout.cp,
        "--sequence-parallel": True if layout.sequence_parallel and layout.tp > 1 else None,
        "--cp-comm-type": ["a2a" if layout.context_exchange == "all-to-all" else "p2p"]
        if layout.cp > 1
        else None,
        **_stages(run),
        **_experts(run),
        **_replicas(run, known),
        **_recomputed(run),
        "--micro-batch-size": layout.micro_batch,
        "--global-batch-size": job.global_batch,
        "--seq-length": job.seq,
        "--max-position-embeddings": job.seq,
        "--train-iters": run.plan.num_steps,
        **FORMATS[run.precision],
        **_state(run, known),
        **model_options(run.model, known),
        "--tokenizer-type": "HuggingFaceTokenizer",
        "--tokenizer-model": Shell('"$TOKENIZER"'),
        "--data-path": Shell('"$DATA_PATH"'),
        "--lr": Shell('"$LR"'),
        "--save": Shell('"$CHECKPOINTS"'),
        "--load": Shell('"$CHECKPOINTS"'),
        "--save-interval": run.save_steps,
    }


def _stages(run: Run) -> dict[str, Value | None]:
    """Chunks of stages: by number where all are alike, else layer by layer."""
    layout = run.layout
    if len(set(run.parts)) == 1:
        return {"--num-virtual-stages-per-pipeline-rank": layout.vpp if layout.vpp > 1 else None}
    return {"--pipeline-model-parallel-layout": layout_text(run.parts)}


def layout_text(parts: Sequence[int]) -> str:
    """Layers of each chunk as Megatron-LM writes them: the table of tokens, layers, bars between chunks, the loss.

    >>> layout_text((7, 8, 8, 8, 7)), layout_text((0, 1, 1, 0))
    ('Et*7|(t*8|)*3t*7L', 'E|(t|)*2L')
    """
    *before, last = ("t" * layers if layers < 2 else f"t*{layers}" for layers in parts)
    runs = ((chunk, len(list(alike))) for chunk, alike in groupby(before))
    return (
        "E"
        + "".join(f"({chunk}|)*{times}" if times > 1 else f"{chunk}|" for chunk, times in runs)
        + f"{last}L"
    )


def _experts(run: Run) -> dict[str, Value | None]:
    if run.model.moe is None:
        return {}
    return {
        "--expert-model-parallel-size": run.layout.ep,
        "--expert-tensor-parallel-size": expert_degree(run.layout),
        "--moe-token-dispatcher-type": "alltoall",
        "--moe-grouped-gemm": True,
    }


def _replicas(run: Run, known: Tool) -> dict[str, Value | None]:
    """What replicas share of their state; with gradients or parameters it takes Megatron-FSDP and its own copies."""
    layout = run.layout
    alone = layout.dp * layout.cp == 1
    offloaded = [one for one in layout.offload if one != "optimizer"]
    refuse(known, (
        *(f"{one} off the chips" for one in offloaded),
        f"gradients in {layout.compression}" if layout.compression not in ("none", "bf16") else "",
    ), f"leave {option('offload')} out" if offloaded else "")  # fmt: skip
    copies = layout.dp // layout.shard if 0 < layout.shard < layout.dp else None
    sharded = layout.zero in SHARDED
    return {
        "--use-distributed-optimizer": True if layout.zero >= 1 else None,
        "--use-megatron-fsdp": True if sharded else None,
        "--data-parallel-sharding-strategy": SHARDED[layout.zero] if sharded else None,
        "--ckpt-format": "fsdp_dtensor" if sharded else None,
        "--num-distributed-optimizer-instances": copies,
        "--overlap-grad-reduce": None if alone else True,
        "--overlap-param-gather": True if layout.zero >= 1 and not alone else None,
        "--grad-reduce-in-bf16": True if layout.compression == "bf16" else None,
        "--optimizer-cpu-offload": True if "optimizer" in layout.offload else None,
    }


def _recomputed(run: Run) -> dict[str, Value | None]:
    layout = run.layout
    if layout.recompute == "none":
        return {}
    if layout.recompute == "full":
        return {
            "--recompute-granularity": "full",
            "--recompute-method": "uniform",
            "--recompute-num-layers": 1,
        }
    return {"--recompute-granularity": "selective", "--recompute-modules": list(layout.modules) or None}


def _state(run: Run, known: Tool) -> dict[str, Value | None]:
    """The formats of the state, where Megatron has them."""
    refuse(known, (beyond_state(run, STATES),), option("state", "megatron"))
    return state_of(run, STATES)


def pretrain(run: Run, known: Tool, launch: dict[str, Value | None], before: str) -> list[str]:
    """The command: torchrun, and behind it the script with its arguments."""
    torchrun = tool("torchrun")
    there: dict[str, Value | None] = {"--nproc-per-node": str(run.num_beside), **launch}
    script_of = '"$MEGATRON/pretrain_gpt.py"'
    words = [*words_of(torchrun, there), script_of, *words_of(known, training_options(run, known))]
    return command(f"{before} torchrun", words)


def environment(run: Run) -> list[str]:
    """Where tensor or context parallelism wants one queue to a chip, as Megatron checks; its FSDP wants several."""
    one = max(run.layout.tp, run.layout.cp) > 1 and run.layout.zero not in SHARDED
    return ["export CUDA_DEVICE_MAX_CONNECTIONS=1", ""] if one else []


def megatron_script(run: Run) -> str:
    """What to start on every node."""
    known = tool("megatron")
    check_launch(run, known)
    launch: dict[str, Value | None] = {
        "--nnodes": str(run.num_nodes),
        "--node-rank": Shell('"$NODE_RANK"'),
        "--master-addr": Shell('"$MASTER_ADDR"'),
        "--master-port": Shell('"$MASTER_PORT"'),
    }
    place = [NODE_RANK, ADDRESS, PORT] if run.num_nodes > 1 else [
        Variable("NODE_RANK", "0"), Variable("MASTER_ADDR", "127.0.0.1"), PORT]  # fmt: skip
    body = [*environment(run), *pretrain(run, known, launch, "exec")]
    return script(head(run.origin, (known, tool("torchrun")), run.notes), [*place, *variables(run)], body)

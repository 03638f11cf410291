"""Verbs about a training run: its plan, its memory, and one step of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from datahall.answers.verb import Verb
from datahall.answers.verbs.model import MODEL, MODEL_DETAILS
from datahall.scenario.takes import OPERATED, OWNED, PRICED, SUPPLIED, Takes
from datahall.scenario.usual import LADDER_CHIPS, LADDER_WHERE_UNSAID, USUAL_PRECISION, USUAL_SEQ

# files that run a plan, by their names: the module and its function, loaded when it is asked for
OF_RUN: Mapping[str, str] = MappingProxyType({
    "megatron.sh": "planner.artefacts.training.megatron:megatron_script",
    "torchtitan.toml": "planner.artefacts.training.torchtitan:torchtitan_job",
    "deepspeed.json": "planner.artefacts.training.deepspeed:deepspeed_config",
    "slurm.sh": "planner.artefacts.training.slurm:slurm_script",
})  # fmt: skip

VERBS = (
    Verb(
        name="plan train",
        about="the fastest layout on so many chips, or the chips that keep a deadline at the least cost",
        answer="training.plan:plan_train",
        check="planner.training.early:check_plan",
        prepare="training.plan:prepare",
        takes=(
            MODEL,
            Takes("training"),
            Takes("fabric", only=("chips", "chip", "wiring…"), several=("on",)),
            Takes("failure", only=("fabric…",)),
            Takes("layout", only=("layout", "offload")),
            *OPERATED,
            Takes("checkpoint", only=("storage", "tier")),
            Takes("candidates", only=("available",)),
            Takes("goal"),
            PRICED,
            SUPPLIED,
            OWNED,
        ),
        arguments=("model",),
        required=("model", "tokens"),
        artefacts=tuple(OF_RUN),
        means=(
            (
                "chips",
                "How many chips to lay it out on (default: all of a fabric that was built, as a deadline takes, or of "
                "adapters the fewest that hold them).",
            ),
            (
                "available",
                "Chips of another kind that are there beside these: what they add to the run, the batch split evenly "
                "or by speed, e.g. a100-80gb=512.",
            ),
            ("on", "Topology, or a fabric that was built; several side by side: tree,fat-tree,torus."),
            ("seq", f"Tokens of a sequence (default {USUAL_SEQ})."),
            ("precision", f"Number format: bf16, fp8, mxfp8, … (default {USUAL_PRECISION})."),
            (
                "layout",
                "The layout you have, to be set beside the best: Megatron-LM arguments, torchtitan TOML or DeepSpeed "
                "JSON; what it says of sequence, batch and format holds.",
            ),
            (
                "offload",
                "What may leave the chips where it does not fit else, e.g. optimizer, or optimizer:nvme.",
            ),
        ),
        leads=(
            "least elapsed_s",
            "least cost_usd",
            "least num_chips",
            "most mfu_fraction",
            "most tokens_per_s",
            "least site_w",
            "least run_j",
            "most headroom_bytes",
        ),
        examples=(
            "llama-3.1-70b --tokens 15T --chips 2048 --chip h200",
            "llama-3.1-405b --tokens 15T --chips 16384 --chip h100-sxm --global-batch 2048",
            "path/to/config.json --tokens 2T --deadline 30d",
            "llama-3.1-70b --tokens 2T --chips 512 --layout run.sh",
            "llama-3.1-70b --tokens 1T --chips 512 --chip h100-sxm --on tree,fat-tree,rail",
            "llama-3.1-70b --tokens 1T --chips 512 --chip h100-sxm --available a100-80gb=512 --global-batch 1024",
            "llama-3.1-8b --tokens 1T --chips 64 -o megatron.sh",
            "llama-3.1-70b --lora 16 --quantised --tokens 50M --chips 8",
        ),
        details=MODEL_DETAILS,
    ),
    Verb(
        name="show memory",
        about="what takes the memory of a chip in training: state, activations by tensor, buffers",
        answer="training.memory:show_memory",
        check="training.early:check_run",
        takes=(
            MODEL,
            Takes("training", only=("seq", "global_batch", "precision", "framework", "state", "adapters…")),
            Takes("fabric", only=("chips", "chip", "wiring…")),
            Takes("layout"),
        ),
        arguments=("model",),
        required=("model",),
        means=(
            (
                "chips",
                "How many chips (default: all of a fabric that was built, or as few as the layout needs).",
            ),
        ),
        leads=(
            "least total_bytes",
            "most headroom_bytes",
        ),
        examples=(
            "deepseek-v3 --chip h800 --pp 16 --ep 64 --recompute full",
            "llama-3.1-70b --layout run.sh --chips 512",
        ),
        details="Exit code 1 where it does not fit, with the cheapest change. For serving: datahall show fit.",
    ),
    Verb(
        name="simulate train",
        about="one training step, stage by stage: time, MFU, bubble, exchange, memory; closed form beside it",
        answer="training.simulation:simulate_train",
        check="training.early:check_step",
        prepare="training.simulation:prepare",
        takes=(
            Takes("", needs=(("seed", ("jitter", "slow_hosts")),)),
            Takes("training", without=("tokens", "deadline", "memory_margin")),
            Takes("fabric", only=("chips", "chip", "wiring…")),
            Takes("failure", only=("fabric…",)),
            Takes("layout"),
            Takes("stragglers"),
        ),
        arguments=("model",),
        required=("model",),
        traced=True,
        means=(("seed", "Seed of which hosts are slow, and of how much chips jitter."),),
        leads=(
            "least step_s",
            "most mfu_fraction",
            "most tokens_per_s",
            "least bubble_fraction",
            "least exposed_s",
            "most headroom_bytes",
        ),
        examples=(
            "llama-3.1-405b --chips 16384 --tp 8 --pp 16 --zero 2 --global-batch 2048",
            "llama-3.1-70b --chips 512 --chip h200 --tp 4 --pp 8 --vpp 5",
            'llama-3.1-8b --chips 64 --chip h200 --global-batch 128 --jitter "2 %"',
            "llama-3.1-8b --chips 64 --global-batch 128 -o step.perfetto-trace",
        ),
    ),
    Verb(
        name="show training-techniques",
        about="the ladder of training: compiled, flash attention, formats, overlap, ZeRO, compression, several sites",
        answer="ladder.techniques:show_training_techniques",
        check="planner.training.early:check_ladder",
        prepare="ladder.techniques:prepare",
        takes=(
            MODEL,
            Takes("training", only=("tokens", "seq", "global_batch", "framework", "imbalance")),
            Takes("fabric", only=("chips", "chip", "wiring…")),
            Takes("layout", without=("zero", "shard", "recompute", "modules", "compress", "offload")),
            Takes("sites"),
            Takes("purchase", only=("provider", "price")),
        ),
        arguments=("model",),
        required=("model",),
        means=(
            (
                "chips",
                f"How many chips (default: those of a fabric that was built, of a layout, or {LADDER_CHIPS}).",
            ),
            ("tokens", f"Tokens that are priced (default: {LADDER_WHERE_UNSAID})."),
        ),
        leads=(
            "least step_s",
            "most gain_ratio",
            "most mfu_fraction",
            "most headroom_bytes",
            "least cost_usd",
        ),
        examples=(
            "llama-3.1-70b",
            "llama-3.1-8b --chips 8 --chip h200 --global-batch 64",
            "llama-3.1-405b --chips 16384 --tp 8 --pp 16 --vpp 4 --global-batch 2048",
            "llama-3.1-8b --chips 64 --dp 64 --global-batch 256 --sites 4 --wan 10Gb/s",
        ),
        details=f"Each one on top of the other, and each alone. {MODEL_DETAILS}",
    ),
)

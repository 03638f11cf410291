"""`datahall show`: one question, answered from closed forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from datahall.cli.layout_options import layout_options
from datahall.cli.names import chip_names, fabric_names, model_names
from datahall.cli.question import question
from datahall.cli.verbs import Verbs

if TYPE_CHECKING:
    from datahall.answer import Answer
    from datahall.catalog import Catalog

GROUP_EXAMPLES = """
datahall show chip h100-sxm
datahall show model llama-3.1-70b --seq 8192
datahall show fit llama-3.1-70b --chip h100-sxm --context 32k
datahall show roofline h200 --model llama-3.1-8b --phase decode --batch 32 --context 4096
datahall show hierarchy h100-sxm
datahall show fabric fat-tree --chips 16384 --chip h100-sxm
datahall show memory deepseek-v3 --train --chip h800 --pp 16 --ep 64 --recompute full
"""


@click.group("show", cls=Verbs, examples=GROUP_EXAMPLES)
def command() -> None:
    """One question, answered at once."""


@question(
    command,
    "chip",
    examples="""
    datahall show chip h100-sxm
    datahall show chip h100-sxm --claim "peak.fp8=3958 TFLOP/s"
    """,
)
@click.argument("name", metavar="CHIP", shell_complete=chip_names)
@click.option(
    "--claim", default="", metavar="QUANTITY=VALUE", help="Is this number right? Exit code 1 if not."
)
def chip(name: str, claim: str, catalog: Catalog) -> Answer:
    """Every value with unit, source, date and kind."""
    from datahall.show.chip import show_chip

    return show_chip(name, claim=claim, catalog=catalog)


@question(
    command,
    "model",
    examples="""
    datahall show model llama-3.1-70b --seq 8192
    datahall show model path/to/config.json --precision fp8 --batch 64
    datahall show model qwen3-32b --chip l40s --chip rtx-4090
    """,
)
@click.argument("name", metavar="MODEL", shell_complete=model_names)
@click.option("--seq", default="8192", show_default=True, metavar="TOKENS", help="Length of a sequence.")
@click.option("--batch", default="1", show_default=True, metavar="N", help="Sequences that must fit.")
@click.option("--precision", default="bf16", show_default=True, help="bf16, fp8, fp8-kv8, w4a16, nvfp4, …")
@click.option(
    "--chip", "chips", multiple=True, metavar="CHIP", shell_complete=chip_names, help="Chips to fit it on."
)
def model(
    name: str, seq: str, batch: str, precision: str, chips: tuple[str, ...], catalog: Catalog
) -> Answer:
    """Parameters, FLOPs and bytes, cache, and what it fits on.

    MODEL is a name of the catalogue or a config.json in the Hugging Face format.
    """
    from datahall.show.model import show_model

    return show_model(name, seq=seq, batch=batch, precision=precision, chips=chips, catalog=catalog)


@question(
    command,
    "fit",
    examples="""
    datahall show fit llama-3.1-70b --chip h100-sxm --context 32k
    datahall show fit deepseek-v3 --chip h200-sxm --precision fp8 --tp 8 --sequences 256
    """,
)
@click.argument("model", metavar="MODEL", shell_complete=model_names)
@click.option(
    "--chip", default="h100-sxm", show_default=True, metavar="CHIP", shell_complete=chip_names, help="Which."
)
@click.option("--context", default="8192", show_default=True, metavar="TOKENS", help="Length of a sequence.")
@click.option("--sequences", default="1", show_default=True, metavar="N", help="Sequences that must fit.")
@click.option("--precision", default="bf16", show_default=True, help="bf16, fp8, fp8-kv8, w4a16, nvfp4, …")
@click.option("--tp", metavar="N", help="Chips that share each layer (default: the fewest that do).")
@click.option("--engine", default="vllm", show_default=True, help="vllm, sglang, trtllm, …")
@click.option("--adapters", metavar="N", help="LoRA adapters on the chips beside the model.")
@click.option("--adapter-rank", default="16", show_default=True, metavar="N", help="Their rank.")
def fit(catalog: Catalog, **asked: str | None) -> Answer:
    """Does it fit, how many sequences, and which precision makes it fit.

    Exit code 1 where it does not, with the cheapest changes that would.
    """
    from datahall.show.serving_fit import show_fit

    return show_fit(**asked, catalog=catalog)  # type: ignore[arg-type]


@question(
    command,
    "roofline",
    examples="""
    datahall show roofline h200 --model llama-3.1-8b --phase decode --batch 32 --context 4096
    datahall show roofline h100-sxm --model llama-3.1-70b --phase prefill --tp 4 -o roofline.html
    """,
)
@click.argument("chip", metavar="CHIP", shell_complete=chip_names)
@click.option(
    "--model", required=True, metavar="MODEL", shell_complete=model_names, help="Name or config.json."
)
@click.option(
    "--phase",
    type=click.Choice(["prefill", "decode"]),
    default="decode",
    show_default=True,
    help="What runs.",
)
@click.option("--batch", default="1", show_default=True, metavar="N", help="Sequences at once.")
@click.option(
    "--context", default="4096", show_default=True, metavar="TOKENS", help="Prompt, or tokens already there."
)
@click.option("--precision", default="bf16", show_default=True, help="bf16, fp8, fp8-kv8, w4a16, nvfp4, …")
@click.option("--tp", default="1", show_default=True, metavar="N", help="Chips that share each layer.")
@click.option(
    "--level",
    type=click.Choice(["datasheet", "family", "measured"]),
    help="Constants to use (default: the best).",
)
@click.option("--eager", is_flag=True, help="Launch each kernel from the host instead of replaying a graph.")
def roofline(
    chip: str,
    model: str,
    phase: str,
    batch: str,
    context: str,
    precision: str,
    tp: str,
    level: str | None,
    eager: bool,
    catalog: Catalog,
) -> Answer:
    """A pass on one chip: time, bound and efficiency by operator."""
    from datahall.show.roofline import show_roofline

    return show_roofline(
        chip, model=model, phase=phase, batch=batch, context=context, precision=precision, tp=tp, level=level,
        eager=eager, catalog=catalog,
    )  # fmt: skip


@question(
    command,
    "hierarchy",
    examples="""
    datahall show hierarchy h100-sxm
    datahall show hierarchy h100-sxm --working-set "140 GB" --offload host --prefetch
    """,
)
@click.argument("chip", metavar="CHIP", shell_complete=chip_names)
@click.option("--working-set", default="", metavar="SIZE", help='What is read over and over, e.g. "2 GB".')
@click.option("--offload", type=click.Choice(["host", "nvme"]), help="Where to keep what does not fit.")
@click.option("--prefetch", is_flag=True, help="Fetch the next part while this one is used.")
def hierarchy(chip: str, working_set: str, offload: str | None, prefetch: bool, catalog: Catalog) -> Answer:
    """Memory levels, and what outgrowing each of them costs."""
    from datahall.show.hierarchy import show_hierarchy

    return show_hierarchy(chip, working_set=working_set, offload=offload, prefetch=prefetch, catalog=catalog)


@question(
    command,
    "fabric",
    examples="""
    datahall show fabric fat-tree --chips 16384 --chip h100-sxm --oversubscription 1:1
    datahall show fabric nvl72 fat-tree torus tree --chips 9216
    datahall show fabric meta-24k-roce
    """,
)
@click.argument("topologies", metavar="TOPOLOGY...", nargs=-1, required=True, shell_complete=fabric_names)
@click.option("--chips", metavar="N", help="Chips to join.")
@click.option(
    "--chip", default="", metavar="CHIP", shell_complete=chip_names, help="Which (default: the usual one)."
)
@click.option(
    "--switch", default="", metavar="SWITCH", help="Switch of the catalogue (default: of the port's speed)."
)
@click.option("--radix", metavar="N", help="Ports of a switch, instead of the catalogue's.")
@click.option("--tiers", metavar="N", help="Tiers of switches (default: the fewest).")
@click.option(
    "--oversubscription", default="1:1", show_default=True, metavar="DOWN:UP", help='By tier, e.g. "1:1,7:1".'
)
@click.option("--sides", default="", metavar="XxYxZ", help="Sides of a torus (default: the most cube-like).")
def fabric(
    topologies: tuple[str, ...],
    chips: str | None,
    chip: str,
    switch: str,
    radix: str | None,
    tiers: str | None,
    oversubscription: str,
    sides: str,
    catalog: Catalog,
) -> Answer:
    """Switches, cables, bisection, diameter, paths, power and price; several side by side.

    TOPOLOGY is tree, fat-tree, clos, rail-optimised, rail-only, dragonfly, dragonfly-plus, hyperx, torus,
    mesh, tpu-pod, full-mesh, hgx, nvl72, or a fabric that was built: meta-24k-roce, meta-24k-infiniband,
    xai-colossus, dgx-superpod-h100, tpu-v4-pod, tpu-v5p-pod, gb200-nvl72-superpod, gb200-nvl72-cluster.
    """
    from datahall.show.fabric import show_fabric

    return show_fabric(
        topologies, chips=chips, chip=chip, switch=switch, radix=radix, tiers=tiers,
        oversubscription=oversubscription, sides=sides, catalog=catalog,
    )  # fmt: skip


@question(
    command,
    "memory",
    examples="""
    datahall show memory deepseek-v3 --train --chip h800 --pp 16 --ep 64 --recompute full
    datahall show memory llama-3.1-70b --train --layout run.sh --chips 512
    """,
)
@click.argument("model", metavar="MODEL", shell_complete=model_names)
@click.option("--train", is_flag=True, help="Memory of a training step.")
@click.option(
    "--chip", default="h100-sxm", show_default=True, metavar="CHIP", shell_complete=chip_names, help="Which."
)
@click.option("--chips", metavar="N", help="Chips there are (default: what the degrees multiply to).")
@click.option("--tp", metavar="N", help="Tensor parallelism.")
@click.option("--pp", metavar="N", help="Pipeline stages.")
@click.option("--vpp", metavar="N", help="Virtual stages on each chip.")
@click.option("--cp", metavar="N", help="Context parallelism.")
@click.option("--ep", metavar="N", help="Expert parallelism.")
@click.option("--dp", metavar="N", help="Data parallelism (default: the chips left over).")
@click.option("--zero", metavar="N", help="ZeRO stage 0 to 3 (default 1; FSDP is 3).")
@click.option("--micro-batch", metavar="N", help="Sequences of a micro-batch (default 1).")
@click.option("--seq", metavar="TOKENS", help="Length of a sequence (default 4096).")
@click.option(
    "--global-batch", metavar="N", help="Sequences of a step (default: enough to fill the pipeline)."
)
@click.option(
    "--recompute", type=click.Choice(["none", "selective", "full"]), help="What backward computes again."
)
@click.option("--precision", metavar="NAME", help="bf16, fp8, mxfp8, … (default bf16).")
@click.option(
    "--framework", default="nemo", show_default=True, help="nemo, megatron-2022, megatron-deepspeed, fsdp."
)
@click.option(
    "--state", default="", metavar="RECIPE", help="Formats of the state: megatron, bf16-gradients, …"
)
@click.option(
    "--schedule",
    default="1f1b",
    show_default=True,
    help="gpipe, 1f1b, interleaved, zb or dualpipe.",
)
@click.option(
    "--layout", default="", metavar="FILE", help="Megatron-LM arguments, torchtitan TOML or DeepSpeed JSON."
)
@layout_options
def memory(catalog: Catalog, **asked: str | bool | None) -> Answer:
    """What takes the memory of a chip: state, activations by tensor, buffers, per stage.

    What is written here stands over what --layout says.  Exit code 1 where it does not fit, with the cheapest change.
    """
    from datahall.show.memory import show_memory

    return show_memory(**asked, catalog=catalog)  # type: ignore[arg-type]


@question(
    command,
    "collective",
    examples="""
    datahall show collective all-reduce --on fat-tree --chips 1024 --chip h100-sxm --size 1GB
    datahall show collective all-reduce --on nvl72 --chips 144 --size 64MB --all
    datahall show collective all-to-all --experts 64 --tokens 2^20 --topk 2 --hidden 4096
    """,
)
@click.argument("collective", metavar="COLLECTIVE")
@click.option(
    "--on",
    default="fat-tree",
    show_default=True,
    metavar="TOPOLOGY",
    shell_complete=fabric_names,
    help="Fabric.",
)
@click.option("--chips", metavar="N", help="Chips that take part (MoE: as many as experts).")
@click.option(
    "--chip", default="", metavar="CHIP", shell_complete=chip_names, help="Which (default: the usual one)."
)
@click.option("--size", default="", metavar="SIZE", help='The whole array, as in nccl-tests, e.g. "1GB".')
@click.option("--experts", metavar="N", help="MoE: experts, one a chip.")
@click.option("--tokens", metavar="N", help="MoE: tokens of all chips together.")
@click.option("--topk", metavar="N", help="MoE: experts of each token.")
@click.option("--hidden", metavar="N", help="MoE: hidden size.")
@click.option("--precision", default="bf16", show_default=True, help="MoE: format of the tokens.")
@click.option(
    "--algorithm", default="", metavar="NAME", help="ring, tree, nvls, nvls-tree or pat, like NCCL_ALGO."
)
@click.option("--version", default="", metavar="X.Y", help="Version of NCCL (default 2.27).")
@click.option("--oversubscription", default="1:1", show_default=True, metavar="DOWN:UP", help="By tier.")
@click.option("--sides", default="", metavar="XxYxZ", help="Sides of a torus.")
@click.option("--level", type=click.Choice(["datasheet", "family", "measured"]), help="Constants to use.")
@click.option("--all", "every", is_flag=True, help="Every protocol, and what textbooks add.")
def collective(catalog: Catalog, **asked: str | bool | None) -> Answer:
    """Time, algbw, busbw, the algorithm chosen and why, crossover sizes.

    COLLECTIVE is all-reduce, all-gather, reduce-scatter, all-to-all, broadcast, reduce, send-recv or barrier.
    """
    from datahall.show.collective import show_collective

    return show_collective(**asked, catalog=catalog)  # type: ignore[arg-type]


@question(
    command,
    "techniques",
    examples="""
    datahall show techniques llama-3.1-70b --chip h200 --rate 5
    datahall show techniques llama-3.1-8b --chip l40s --rate 2 --isl 2000 --osl 300 --cached "60 %"
    datahall show techniques deepseek-v3 --chip b200 --tp 8 --rate 4 --precision fp8 --draft mtp
    """,
)
@click.argument("model", metavar="MODEL", shell_complete=model_names)
@click.option("--chip", required=True, metavar="CHIP", shell_complete=chip_names, help="Which chip.")
@click.option("--rate", required=True, metavar="N", help="Requests per second that one replica gets.")
@click.option(
    "--tp", default="0", metavar="N", help="Chips of the replica (default: the fewest that carry it)."
)
@click.option("--isl", metavar="TOKENS", help="Tokens of a prompt (default 1000).")
@click.option("--osl", metavar="TOKENS", help="Tokens of an answer (default 250).")
@click.option(
    "--traffic", default="", metavar="NAME", help="Lengths by name: sharegpt, lmsys-chat, rag, agent, …"
)
@click.option("--ttft", default="1s", show_default=True, metavar="TIME", help="Most time to the first token.")
@click.option(
    "--tpot", default="50ms", show_default=True, metavar="TIME", help="Most time per token after it."
)
@click.option(
    "--percentile", default="95", show_default=True, metavar="%", help="Share of requests that keep both."
)
@click.option("--precision", default="bf16", show_default=True, help="As it is: bf16, fp8, …")
@click.option(
    "--cached",
    default="30 %",
    show_default=True,
    metavar="SHARE",
    help="Of a prompt that a prefix cache finds.",
)
@click.option(
    "--draft", default="ngram", show_default=True, metavar="HOW", help="ngram, mtp, or a draft model."
)
@click.option("--num-draft", default="3", show_default=True, metavar="N", help="Tokens drafted for a step.")
@click.option(
    "--acceptance", default="50 %", show_default=True, metavar="SHARE", help="Chance that one is kept."
)
@click.option("--engine", default="vllm", show_default=True, metavar="NAME", help="vllm, sglang, trtllm, …")
def techniques(model: str, catalog: Catalog, **asked: str | None) -> Answer:
    """Batching, chunked prefill, prefix cache, speculation, quantisation, disaggregation: alone and together."""
    from datahall.show.techniques import show_techniques

    return show_techniques(model, **asked, catalog=catalog)  # type: ignore[arg-type]

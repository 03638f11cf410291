"""`datahall plan`: what to build, and why not something else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from datahall.cli.names import chip_names, model_names
from datahall.cli.question import question
from datahall.cli.verbs import Verbs

if TYPE_CHECKING:
    from datahall.answer import Answer
    from datahall.catalog import Catalog

GROUP_EXAMPLES = """
datahall plan serve llama-3.1-70b --users 10000 --ttft 1s --tpot 50ms --chips h200,b200
datahall plan train llama-3.1-70b --tokens 15T --chips 2048 --chip h200
datahall plan train llama-3.1-70b --tokens 2T --deadline 30d
"""


@click.group("plan", cls=Verbs, examples=GROUP_EXAMPLES)
def command() -> None:
    """The best candidate of all, with its margin and why the others lost."""


@question(
    command,
    "train",
    examples="""
    datahall plan train llama-3.1-70b --tokens 15T --chips 2048 --chip h200
    datahall plan train llama-3.1-405b --tokens 15T --chips 16384 --chip h100-sxm --global-batch 2048
    datahall plan train path/to/config.json --tokens 2T --deadline 30d
    """,
)
@click.argument("model", metavar="MODEL", shell_complete=model_names)
@click.option("--tokens", required=True, metavar="N", help='Tokens to train on, e.g. "15T".')
@click.option("--chips", metavar="N", help="Chips there are.")
@click.option("--deadline", metavar="TIME", help='Instead of --chips: when it must be done, e.g. "30d".')
@click.option(
    "--chip", default="h100-sxm", show_default=True, metavar="CHIP", shell_complete=chip_names, help="Which."
)
@click.option("--seq", default="8192", show_default=True, metavar="TOKENS", help="Length of a sequence.")
@click.option("--global-batch", default="1024", show_default=True, metavar="N", help="Sequences of a step.")
@click.option("--precision", default="bf16", show_default=True, help="bf16, fp8, mxfp8, …")
@click.option(
    "--framework", default="nemo", show_default=True, help="nemo, megatron-2022, megatron-deepspeed, fsdp."
)
@click.option(
    "--state",
    default="",
    metavar="RECIPE",
    help="Formats of the state: megatron, bf16-gradients, pure-bf16, …",
)
@click.option(
    "--offload",
    default="",
    metavar="LIST",
    help="What may also go to the host: optimizer, parameters, activations; to drives as optimizer:nvme.",
)
@click.option(
    "--imbalance",
    metavar="RATIO",
    help="Load of the busiest rank that holds experts over the mean, e.g. 1.2 (default: chance alone).",
)
def train(
    model: str,
    tokens: str,
    chips: str | None,
    deadline: str | None,
    chip: str,
    seq: str,
    global_batch: str,
    precision: str,
    framework: str,
    state: str,
    offload: str,
    imbalance: str | None,
    catalog: Catalog,
) -> Answer:
    """The fastest layout that fits, or the fewest chips for a deadline.

    MODEL is a name of the catalogue or a config.json in the Hugging Face format.
    """
    from datahall.show.training_plan import plan_train

    return plan_train(
        model, tokens=tokens, chips=chips, deadline=deadline, chip=chip, seq=seq, global_batch=global_batch,
        precision=precision, framework=framework, state=state, offload=offload, imbalance=imbalance, catalog=catalog,
    )  # fmt: skip


@question(
    command,
    "serve",
    examples="""
    datahall plan serve llama-3.1-70b --users 10000 --ttft 1s --tpot 50ms --chips h200,b200
    datahall plan serve qwen3-32b --rate 20 --isl 2000 --osl 500 --ttft 2s --chips l40s,h100-sxm
    datahall plan serve path/to/config.json --users 500 --traffic azure-conversation --chips h200
    """,
)
@click.argument("model", metavar="MODEL", shell_complete=model_names)
@click.option(
    "--users", metavar="N", help="People who read answers at the pace promised, one after the other."
)
@click.option("--rate", metavar="N", help="Instead of --users: requests per second.")
@click.option("--ttft", default="1s", show_default=True, metavar="TIME", help="Most time to the first token.")
@click.option(
    "--tpot", default="50ms", show_default=True, metavar="TIME", help="Most time per token after it."
)
@click.option(
    "--percentile",
    default="95",
    show_default=True,
    metavar="%",
    help="Share of requests that must keep both.",
)
@click.option(
    "--chips", default="h100-sxm,h200,b200,mi300x", show_default=True, metavar="CHIPS", help="Kinds to weigh."
)
@click.option(
    "--traffic", default="", metavar="NAME", help="Lengths by name: sharegpt, lmsys-chat, rag, agent, …"
)
@click.option("--isl", metavar="TOKENS", help="Tokens of a prompt, where no --traffic is named.")
@click.option("--osl", metavar="TOKENS", help="Tokens of an answer.")
@click.option(
    "--think", default="0s", metavar="TIME", help="Pause of a user between answer and next request."
)
@click.option(
    "--precision", default="bf16,fp8", show_default=True, help="Formats to weigh: bf16, fp8, w4a16, …"
)
@click.option("--engine", default="vllm", show_default=True, metavar="NAME", help="vllm, sglang, trtllm, …")
@click.option(
    "--headroom", default="10 %", show_default=True, metavar="SHARE", help="Of a replica, left free."
)
@click.option("--tp", default="0", metavar="N", help="Only groups of this tensor parallelism.")
def serve(model: str, catalog: Catalog, **asked: Any) -> Answer:
    """The least hardware that keeps a promise to users: replicas and chips per kind, the knee, what binds.

    MODEL is a name of the catalogue or a config.json in the Hugging Face format.
    """
    from datahall.show.serving_plan import plan_serve

    return plan_serve(model, **asked, catalog=catalog)

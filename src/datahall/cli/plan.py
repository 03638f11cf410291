"""`datahall plan`: what to build, and why not something else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from datahall.cli.names import chip_names, model_names
from datahall.cli.question import question
from datahall.cli.verbs import Verbs

if TYPE_CHECKING:
    from datahall.answer import Answer
    from datahall.catalog import Catalog

GROUP_EXAMPLES = """
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
    catalog: Catalog,
) -> Answer:
    """The fastest layout that fits, or the fewest chips for a deadline.

    MODEL is a name of the catalogue or a config.json in the Hugging Face format.
    """
    from datahall.show.training_plan import plan_train

    return plan_train(
        model, tokens=tokens, chips=chips, deadline=deadline, chip=chip, seq=seq, global_batch=global_batch,
        precision=precision, framework=framework, state=state, catalog=catalog,
    )  # fmt: skip

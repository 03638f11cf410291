"""`datahall simulate`: watch it happen, event by event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from datahall.cli.names import chip_names, model_names
from datahall.cli.question import Traced, question
from datahall.cli.verbs import Verbs

if TYPE_CHECKING:
    from datahall.catalog import Catalog

GROUP_EXAMPLES = """
datahall simulate fabric scenario.toml
datahall simulate train llama-3.1-405b --chips 16384 --chip h100-sxm --tp 8 --pp 16 --batch 2048
"""


@click.group("simulate", cls=Verbs, examples=GROUP_EXAMPLES)
def command() -> None:
    """The same questions, answered by playing every event."""


@question(
    command,
    "fabric",
    examples="""
    datahall simulate fabric scenario.toml
    datahall simulate fabric scenario.toml --level full --check-with symmetric
    datahall simulate fabric scenario.toml -o run.perfetto-trace
    """,
    traced=True,
)
@click.argument("file", metavar="SCENARIO")
@click.option(
    "--level",
    default="symmetric",
    show_default=True,
    metavar="LEVEL",
    help="symmetric folds alike flows; full plays every message.",
)
@click.option(
    "--check-with",
    default="",
    metavar="LEVEL",
    help="Show the difference from closed-form, symmetric or full.",
)
def fabric(file: str, level: str, check_with: str, catalog: Catalog) -> Traced:
    """Jobs, background traffic and failures on a fabric, flow by flow."""
    from datahall.simulate.fabric import fabric_answer, fabric_trace, simulated

    outcome, other = simulated(file, level=level, check_with=check_with, catalog=catalog)
    return Traced(fabric_answer(outcome, other), lambda: fabric_trace(outcome))


@question(
    command,
    "train",
    examples="""
    datahall simulate train llama-3.1-405b --chips 16384 --chip h100-sxm --tp 8 --pp 16 --batch 2048
    datahall simulate train llama-3.1-70b --chips 512 --chip h200 --tp 4 --pp 8 --vpp 5 --batch 512
    datahall simulate train llama-3.1-8b --chips 64 --chip h200 --batch 128 --jitter "2 %"
    datahall simulate train llama-3.1-8b --chips 64 --chip h200 --batch 128 -o step.perfetto-trace
    """,
    traced=True,
)
@click.argument("model", metavar="MODEL", shell_complete=model_names)
@click.option("--chips", required=True, metavar="N", help="Chips of the job.")
@click.option("--chip", required=True, metavar="CHIP", shell_complete=chip_names, help="Which.")
@click.option("--batch", required=True, metavar="N", help="Sequences of a step, all replicas together.")
@click.option("--seq", default="8192", show_default=True, metavar="TOKENS", help="Length of a sequence.")
@click.option("--tp", default="1", show_default=True, metavar="N", help="Chips that share each layer.")
@click.option("--pp", default="1", show_default=True, metavar="N", help="Pipeline stages.")
@click.option("--vpp", default="1", show_default=True, metavar="N", help="Chunks of the model on each stage.")
@click.option("--cp", default="1", show_default=True, metavar="N", help="Chips that share each sequence.")
@click.option("--ep", default="1", show_default=True, metavar="N", help="Chips that share the experts.")
@click.option("--dp", metavar="N", help="Replicas (default: the chips left over).")
@click.option(
    "--zero", default="1", show_default=True, metavar="0-3", help="What replicas share of their state."
)
@click.option(
    "--micro-batch", default="1", show_default=True, metavar="N", help="Sequences at once on a replica."
)
@click.option("--schedule", default="", metavar="NAME", help="1f1b, interleaved, zb, gpipe or dualpipe.")
@click.option(
    "--recompute", default="none", show_default=True, metavar="WHAT", help="none, selective or full."
)
@click.option("--precision", default="bf16", show_default=True, help="bf16, fp8, …")
@click.option(
    "--framework", default="nemo", show_default=True, metavar="NAME", help="Whose overlap and overheads."
)
@click.option(
    "--domain", default="0", metavar="N", help="Chips that need no network (default: as the chip is sold)."
)
@click.option(
    "--nic", default="0", metavar="RATE", help='Network of a chip, e.g. "400 Gb/s" (default: its usual one).'
)
@click.option("--slow-hosts", default="0", metavar="SHARE", help='Hosts that are always slow, e.g. "0.5 %".')
@click.option("--slow-by", default="10 %", show_default=True, metavar="SHARE", help="By how much.")
@click.option("--jitter", default="0", metavar="SHARE", help="Standard deviation of a chip's time in a step.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of who is slow, and when.")
def train(model: str, catalog: Catalog, **asked: Any) -> Traced:
    """One training step, stage by stage: time, MFU, bubble, exchange, memory; closed form beside it."""
    from datahall.simulate.train import simulated, train_answer, train_trace

    run = simulated(model, **asked, catalog=catalog)
    return Traced(train_answer(run), lambda: train_trace(run))

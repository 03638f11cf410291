"""`datahall simulate`: watch it happen, event by event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from datahall.cli.layout_options import layout_options
from datahall.cli.names import chip_names, model_names
from datahall.cli.question import Traced, question
from datahall.cli.verbs import Verbs

if TYPE_CHECKING:
    from datahall.catalog import Catalog

GROUP_EXAMPLES = """
datahall simulate serve llama-3.1-70b --chip h100-sxm --tp 4 --replicas 45 --rate 80
datahall simulate fabric scenario.toml
datahall simulate train llama-3.1-405b --chips 16384 --chip h100-sxm --tp 8 --pp 16 --batch 2048
"""


def on_command_line(name: str) -> bool:
    """Whether a person wrote the option, and it is not its default."""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


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
@layout_options
@click.option(
    "--framework", default="nemo", show_default=True, metavar="NAME", help="Whose overlap and overheads."
)
@click.option(
    "--domain", default="0", metavar="N", help="Chips that need no network (default: as the chip is sold)."
)
@click.option(
    "--nic", default="0", metavar="RATE", help='Network of a chip, e.g. "400 Gb/s" (default: its usual one).'
)
@click.option(
    "--imbalance",
    metavar="RATIO",
    help="Load of the busiest rank that holds experts over the mean, e.g. 1.2 (default: chance alone).",
)
@click.option("--slow-hosts", default="0", metavar="SHARE", help='Hosts that are always slow, e.g. "0.5 %".')
@click.option("--slow-by", default="10 %", show_default=True, metavar="SHARE", help="By how much.")
@click.option("--jitter", default="0", metavar="SHARE", help="Standard deviation of a chip's time in a step.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of who is slow, and when.")
def train(model: str, catalog: Catalog, **asked: Any) -> Traced:
    """One training step, stage by stage: time, MFU, bubble, exchange, memory; closed form beside it."""
    from datahall.simulate.train import train_answer, train_trace
    from datahall.simulate.train_run import simulated

    run = simulated(model, **asked, catalog=catalog)
    return Traced(train_answer(run), lambda: train_trace(run))


@question(
    command,
    "serve",
    examples="""
    datahall simulate serve llama-3.1-70b --chip h100-sxm --tp 4 --replicas 45 --rate 80 --isl 1000
    datahall simulate serve llama-3.1-8b --chip l40s --users 32 --traffic azure-conversation
    datahall simulate serve llama-3.1-8b --disaggregated prefill=1xh200,decode=2xh200 --rate 20
    datahall simulate serve llama-3.1-8b --chip h100-sxm --trace requests.csv -o run.perfetto-trace
    datahall simulate serve service.toml
    """,
    traced=True,
)
@click.argument("model", metavar="MODEL", shell_complete=model_names)
@click.option(
    "--chip", default="h100-sxm", show_default=True, metavar="CHIP", shell_complete=chip_names, help="Which."
)
@click.option(
    "--tp", default="1", show_default=True, metavar="N", help="Chips that share each layer of a replica."
)
@click.option("--pp", default="1", show_default=True, metavar="N", help="Pipeline stages of a replica.")
@click.option(
    "--dp", default="1", show_default=True, metavar="N", help="Ranks that attend to sequences of their own."
)
@click.option("--ep", default="1", show_default=True, metavar="N", help="Chips that share the experts.")
@click.option("--replicas", default="1", show_default=True, metavar="N", help="Replicas behind the router.")
@click.option(
    "--disaggregated", default="", metavar="POOLS", help="Prompts apart: prefill=4xh200,decode=8xh200."
)
@click.option("--rate", metavar="N", help='Requests per second, or "inf": all at once.')
@click.option("--users", metavar="N", help="Instead: people who wait for their answers.")
@click.option("--trace", default="", metavar="FILE", help="Instead: recorded requests, CSV or JSONL.")
@click.option(
    "--traffic", default="", metavar="NAME", help="Lengths by name: sharegpt, lmsys-chat, rag, agent, …"
)
@click.option("--isl", metavar="TOKENS", help="Tokens of a prompt (default 1000).")
@click.option("--osl", metavar="TOKENS", help="Tokens of an answer (default 250).")
@click.option("--spread", metavar="RATIO", help="Standard deviation of lengths over their mean.")
@click.option("--burstiness", metavar="RATIO", help="The same of the gaps between requests (1: Poisson).")
@click.option("--turns", metavar="N", help="Mean turns of a conversation.")
@click.option("--think", metavar="TIME", help="Pause of a user between answer and next request.")
@click.option("--system", metavar="TOKENS", help="System prompt that all requests share.")
@click.option("--requests", metavar="N", help="Requests to play (default 10000).")
@click.option("--duration", metavar="TIME", help="Or for how long.")
@click.option("--speed", metavar="RATIO", help="Of a trace: 2 plays it twice as fast.")
@click.option("--sort", is_flag=True, help="Sort a trace by arrival.")
@click.option(
    "--ttft", default="1s", show_default=True, metavar="TIME", help="Limit of the time to the first token."
)
@click.option(
    "--tpot", default="50ms", show_default=True, metavar="TIME", help="Limit of the time per token after it."
)
@click.option("--precision", default="bf16", show_default=True, help="bf16, fp8, fp8-kv8, w4a16, …")
@click.option(
    "--engine", default="vllm", show_default=True, metavar="NAME", help="vllm, sglang, trtllm, static, …"
)
@click.option(
    "--routing",
    default="least-outstanding",
    show_default=True,
    metavar="NAME",
    help="round-robin, two-choices, prefix-affinity, session.",
)
@click.option("--draft", default="", metavar="HOW", help="Speculation: ngram, mtp, or a draft model.")
@click.option("--num-draft", default="3", show_default=True, metavar="N", help="Tokens drafted for a step.")
@click.option(
    "--acceptance", default="50 %", show_default=True, metavar="SHARE", help="Chance that one is kept."
)
@click.option("--nic", metavar="RATE", help='Network of a chip, e.g. "400 Gb/s" (default: its usual one).')
@click.option("--adapters", metavar="N", help="LoRA adapters that requests ask for (popularity: Zipf, 1).")
@click.option("--adapter-rank", default="16", show_default=True, metavar="N", help="Their rank.")
@click.option("--resident-adapters", metavar="N", help="How many are on the chips at once (default: all).")
@click.option(
    "--host-cache", metavar="SIZE", help="Memory of a replica's hosts for blocks that leave the chips."
)
@click.option("--drive-cache", metavar="SIZE", help="And drives for blocks that leave that memory.")
@click.option(
    "--drive-rate", metavar="RATE", help="Of a chip's share of them (default: as servers are sold)."
)
@click.option("--autoscale", default="", metavar="MIN..MAX", help="Replicas by load, e.g. 1..16, or 0..8:24.")
@click.option(
    "--cold-start", default="2min", show_default=True, metavar="TIME", help="Until a new replica serves."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of arrivals, lengths and routing.")
def serve(model: str, catalog: Catalog, **asked: Any) -> Traced:
    """A fleet under traffic, step by step: TTFT, TPOT, ITL, E2E, goodput, cache, queue; closed form beside it.

    Instead of MODEL, a scenario file (.toml) says all this and more: regions, outages, autoscaling, a cache of answers.
    """
    from datahall.simulate.serve import serve_answer, serve_trace
    from datahall.simulate.serve_run import simulated

    if model.endswith(".toml"):
        from datahall.simulate.serve_scenario import scenario_answer, scenario_served

        said = {name: value for name, value in asked.items() if on_command_line(name)}
        played, outcome = scenario_served(model, **said, catalog=catalog)
        return Traced(scenario_answer(played, outcome), lambda: serve_trace(played))
    service = simulated(model, **asked, catalog=catalog)
    return Traced(serve_answer(service), lambda: serve_trace(service))

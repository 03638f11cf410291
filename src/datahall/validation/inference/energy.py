"""Points of the ML.ENERGY benchmark: vLLM held at a concurrency until its power and throughput are steady."""

from __future__ import annotations

import re
from math import ceil

import msgspec

from datahall.inference.engine.engine import engine
from datahall.inference.engine.replica import Replica
from datahall.validation.inference.names import chip_of, model_of, precision_of
from datahall.validation.inference.run import MILLI, THROUGHPUT, TPOT, Run, Traffic
from datahall.validation.measurement import Row, RowError
from datahall.workload.precision import block_scaled

# Mean tokens of a prompt: not published.  Round guesses for the datasets (LMArena preferences, GPQA diamond with its
# instructions, Sourcegraph FIM); not fitted.
PROMPT = {"lm-arena-chat": 300.0, "gpqa": 250.0, "sourcegraph-fim": 1500.0}
# Mean tokens of an output: the benchmark publishes them with every point (avg_output_len, 2026-02); points of one model
# differ by a few per cent, so one number stands for each.  First match wins; "" stands for models whose own figure we
# have not read.
OUTPUT = {
    ("lm-arena-chat", "llama"): 400.0,
    ("lm-arena-chat", "qwen3-235b"): 868.0,
    ("lm-arena-chat", ""): 617.0,
    ("gpqa", "gpt-oss-120b"): 1740.0,
    ("gpqa", "gpt-oss-20b"): 2200.0,
    ("gpqa", "nemotron-nano-9b"): 5450.0,
    ("gpqa", "qwen3-235b"): 9200.0,
    ("gpqa", "qwen3-30b"): 8150.0,
    ("gpqa", "qwen3-8b"): 8050.0,
    ("gpqa", ""): 7000.0,
    ("sourcegraph-fim", ""): 250.0,
}
# Requests of a run and how many times as many as sequences at once there are at least: the benchmark's sweep files.
REQUESTS = {"lm-arena-chat": (1024, 2.9), "gpqa": (198, 1.16), "sourcegraph-fim": (1024, 1.3)}
REASONING_SPREAD = 0.53  # a Weibull law of the deviation of Qwen3-8B's published histogram: 0.55 of its mean


def read_energy(row: Row) -> Run:
    """A point: how many sequences ran at once and how many tokens per second came out."""
    split = re.search(r"(\w+); TP(\d+) EP(\d+) DP(\d+)", row.text("note"))
    if not split:
        raise RowError("the point does not state its split")
    task = row.text("workload")
    if task not in PROMPT:
        raise RowError(f'we do not know the lengths of "{task}"')
    num_chips, users = int(row.count("n_accelerators")), int(row.count("batch_or_concurrency"))
    ep, dp = int(split[3]), int(split[4])
    if dp < 1 or num_chips % dp:
        raise RowError("the chips do not divide into the attention ranks that are stated")
    chip = chip_of(row.text("accelerator"))
    model = model_of(row.text("system").removeprefix("vLLM "))
    precision = precision_of(split[1], "bf16", chip)
    replica = Replica(
        model=model,
        chip=chip,
        engine=msgspec.structs.replace(engine("vllm-0-11"), max_sequences=max(256, users), prefix_caching=False),
        precision=precision,
        block_scaled=block_scaled(model, precision),
        tp=num_chips // dp, dp=dp,
        ep=ep if model.moe is not None else 1,
    )  # fmt: skip
    output = next(
        one for (name, family), one in OUTPUT.items() if name == task and model.name.startswith(family)
    )
    num, least = REQUESTS[task]
    traffic = Traffic(
        kind="closed", prompt_tokens=PROMPT[task], output_tokens=output, users=users,
        spread_ratio=REASONING_SPREAD if task == "gpqa" else 1.0, num_requests=num * ceil(least * users / num),
    )  # fmt: skip
    measured = {THROUGHPUT: row.positive("output_tok_s")}
    if row.text("median_itl_ms") and PROMPT[task] < output:  # else most steps carry prompts too
        measured[TPOT] = row.positive("median_itl_ms") * MILLI
    return Run(row=row, replica=replica, num_replicas=1, traffic=traffic, measured=measured)

"""Points of the ML.ENERGY benchmark: vLLM held at a concurrency until its power and throughput are steady."""

from __future__ import annotations

import re

import msgspec

from datahall.inference.checkpoint import block_scaled
from datahall.inference.engine import engine
from datahall.inference.replica import Replica
from datahall.validation.inference.names import chip_of, model_of, precision_of
from datahall.validation.inference.run import THROUGHPUT, Run, Traffic
from datahall.validation.measurement import Row, RowError

# Mean tokens of a prompt: not published, one number per task that the fitted rows agree on.
PROMPT = {"lm-arena-chat": 300.0, "gpqa": 250.0, "sourcegraph-fim": 1500.0}
# Mean tokens of an output.  lm-arena-chat: the benchmark's published averages of Llama-3.1-8B, Qwen3-14B and
# Qwen3-235B-A22B (2026-02), which stand for their families; the other tasks as the prompts.
OUTPUT = {
    ("lm-arena-chat", "llama"): 400.0,
    ("lm-arena-chat", "qwen3-235b"): 868.0,
    ("lm-arena-chat", ""): 617.0,
    ("gpqa", "gpt-oss"): 1500.0,
    ("gpqa", ""): 4000.0,
    ("sourcegraph-fim", ""): 80.0,
}


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
    chip = chip_of(row.text("accelerator"))
    model = model_of(row.text("system").removeprefix("vLLM "))
    replica = Replica(
        model=model,
        chip=chip,
        engine=msgspec.structs.replace(engine("vllm-0-11"), max_sequences=max(256, users), prefix_caching=False),
        precision=precision_of(split[1], "bf16", chip),
        block_scaled=block_scaled(model, split[1]),
        tp=num_chips // dp, dp=dp,
        ep=ep if model.moe is not None else 1,
    )  # fmt: skip
    output = next(
        one for (name, family), one in OUTPUT.items() if name == task and model.name.startswith(family)
    )
    traffic = Traffic(
        kind="closed", prompt_tokens=PROMPT[task], output_tokens=output, users=users, spread=True, rounds=4
    )
    return Run(
        row=row, replica=replica, num_replicas=1, traffic=traffic,
        measured={THROUGHPUT: row.positive("output_tok_s")},
    )  # fmt: skip

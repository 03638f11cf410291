"""AIConfigurator's sample of InferenceX and of NVIDIA's own runs: closed loops at a fixed concurrency."""

from __future__ import annotations

import re

import msgspec

from datahall.catalog.entries.chip import Chip
from datahall.inference.engine.replica import Replica
from datahall.scenario.words import PHASES
from datahall.validation.inference.assumptions import (
    longest_ratio,
    shortest_fraction,
    unseen_tokens,
    warm_rounds,
)
from datahall.validation.inference.names import chip_of, engine_of, engine_on, model_of, precision_of
from datahall.validation.inference.run import Pools, Run, Traffic, latencies, lengths, whole
from datahall.validation.measurement import Row, RowError
from datahall.workload.precision import block_scaled

WIDEST = 16  # chips that tensor parallelism splits a layer over; exports that sum up two pools state 20 to 72
INFERENCEX_SHORTEST = 0.8  # of the longest, as its scripts ask for


def read_silicon(row: Row) -> Run:
    """A row of the sample: closed loop at a fixed concurrency.

    InferenceX draws lengths uniformly between 0.8 and 1 of the stated ones and sends ten requests per user
    (its benchmark scripts, 2025-10 to 2026-04); what is not stated of either: `assumptions.py`.
    """
    notes = row.text("notes")
    prompt, output = lengths(row)
    users = int(float(found[1])) if (found := re.search(r"silicon_concurrency=([\d.]+)", notes)) else 0
    users = users or whole(row, "concurrency_or_qps", 0)
    if users < 1:
        raise RowError("the row does not state its concurrency")
    chip = chip_of(row.text("hardware"))
    varied = _of_inferencex(notes)
    engine = row.text("engine")
    shortest = INFERENCEX_SHORTEST if varied else shortest_fraction(engine, chip)
    longest = (
        1.0 if varied else longest_ratio(shortest)
    )  # InferenceX states the longest, NVIDIA what all have
    traffic = Traffic(
        kind="closed", prompt_tokens=prompt * longest, output_tokens=output * longest, users=users,
        shortest_fraction=shortest,
        unseen_tokens=unseen_tokens(engine, chip) if varied else 0.0,
        warm_rounds=0 if varied else warm_rounds(engine, chip),
    )  # fmt: skip
    if "disagg" in row.text("workload"):
        replica, pools = _silicon_pools(row, chip, users)
        num = pools.num_decode
    else:
        pools, num = None, 1
        stated = _stated(row, notes)
        if not varied and (batch := row.text("batch").split(" ")[0]):  # several replicas behind one address
            num = max(1, round(users / (float(batch) * stated.dp)))
        replica = _silicon_replica(row, chip, stated, users)
    return Run(
        row=row, replica=replica, num_replicas=num, traffic=traffic, measured=latencies(row),
        pools=pools,
    )  # fmt: skip


def _of_inferencex(notes: str) -> bool:
    return bool(re.search(r"db-dump/|source_file=20\d\d-|gap-analysis", notes))


class Split(msgspec.Struct, frozen=True):
    """How a replica is cut, as AIConfigurator writes it."""

    tp: int
    pp: int
    dp: int
    moe_tp: int
    moe_ep: int


def _stated(row: Row, notes: str) -> Split:
    experts = re.search(r"moe_tp=(\d*) moe_ep=(\d*)", notes)
    moe_tp, moe_ep = (int(text or 1) for text in (experts[1], experts[2])) if experts else (1, 1)
    return Split(
        whole(row, "tp", 1),
        whole(row, "pp", 1),
        max(1, whole(row, "dp", 1)),
        max(1, moe_tp),
        max(1, moe_ep),
    )


def machine_of(split: Split, chip: Chip) -> Split:
    """Undo an export that multiplies the tensor and the expert width where both name the same chips.

    A box of eight with "TP 8, EP 8" appears as 64 chips with an expert split of 8 × 8, one of four with attention
    data parallelism as 16 chips; a box has no more chips than its scale-up domain.
    """
    tp, dp, width = split.tp, split.dp, split.moe_tp * split.moe_ep
    num = tp * dp
    if split.moe_tp == split.moe_ep > 1 and num == width:  # k x k: the same k chips twice
        k = split.moe_ep
        return Split(1, split.pp, k, 1, k) if dp > 1 else Split(k, split.pp, 1, 1, k)
    if (
        split.moe_tp == 1 and dp == tp > 1 and width == num
    ):  # attention data parallelism over the tensor group
        return Split(1, split.pp, tp, 1, tp)
    if num > chip.num_scale_up_domain:
        raise RowError("the export states more chips than one machine has, and not how they are split")
    return split


def _silicon_replica(row: Row, chip: Chip, stated: Split, users: int) -> Replica:
    split = machine_of(stated, chip)
    model = model_of(row.text("model"))
    if split.tp > WIDEST:
        raise RowError(f"a tensor width of {split.tp}: pools recorded as one replica")
    notes = row.text("notes")
    engine = engine_on(engine_of(row.text("engine"), told_asynchronous=_of_inferencex(notes)), chip)
    quant = found[1] if (found := re.search(r"gemm=([\w]*)", notes)) else ""
    experts = found[1] if (found := re.search(r" moe=([\w]*)", notes)) else ""
    linear = quant or row.text("precision")
    if model.moe is not None and experts:
        linear = experts
    if "gpt-oss" in model.name:
        linear = "mxfp4"  # as it is published, whatever the export says
    if "kimi" in model.name and row.text("precision") == "int4":
        linear = "int4"
    precision = precision_of(linear, _cache_format(engine.stack, linear, model.name, chip), chip)
    most = max(engine.max_sequences, users)
    budget = engine.token_budget
    if not engine.chunked_prefill:  # these runs raise the budget until a prompt and all decodes fit
        budget = max(budget, lengths(row)[0] + users + 64)
    # InferenceX's script for DeepSeek in FP8 on four B200 raises SGLang's share of memory: nothing would fit without
    tight = engine.name == "sglang" and model.mla is not None and precision.weights == "fp8" and split.tp == 4
    return Replica(
        model=model,
        chip=chip,
        engine=msgspec.structs.replace(
            engine,
            max_sequences=most,
            token_budget=budget,
            prefix_caching=False,
            memory_fraction=0.95 if tight else engine.memory_fraction,
        ),
        precision=precision,
        block_scaled=block_scaled(model, precision)
        or (precision.weights == "fp8" and "block" in f"{quant} {experts}"),
        tp=split.tp, pp=split.pp, dp=split.dp,
        ep=split.moe_ep if model.moe is not None else 1,
    )  # fmt: skip


def _cache_format(stack: str, linear: str, model: str, chip: Chip) -> str:
    """How the run kept its cache: InferenceX's scripts ask for fp8 wherever weights are quantised.

    Exceptions in those scripts: GPT-OSS under vLLM, and SGLang on Hopper.
    """
    if linear in {"", "bf16", "int4"}:
        return "bf16"
    if ("gpt-oss" in model and stack == "vllm") or (stack == "sglang" and "fp4" not in chip.peak_flop_per_s):
        return "bf16"
    return "fp8"


def _pool(notes: str, name: str) -> dict[str, int]:
    found = re.search(rf"{name}\[([^\]]*)\]", notes)
    if not found:
        raise RowError("the row does not state its pools")
    return {key: int(float(text)) for key, text in re.findall(r"(\w+)=([\d.]+)", found[1])}


def _silicon_pools(row: Row, chip: Chip, users: int) -> tuple[Replica, Pools]:
    notes = row.text("notes")
    replicas, counts = [], []
    for name in PHASES:
        pool = _pool(notes, name)
        split = Split(
            pool.get("tp_size", 1), pool.get("pp_size", 1), max(1, pool.get("attention_dp_size", 1)),
            max(1, pool.get("moe_tp_size", 1)), max(1, pool.get("moe_ep_size", 1)),
        )  # fmt: skip
        if "num_workers" not in pool:
            raise RowError("the row does not state how many workers each pool has")
        counts.append(pool["num_workers"])
        replicas.append(_silicon_replica(row, chip, split, users))
    pools = Pools(prefill=replicas[0], num_prefill=counts[0], num_decode=counts[1])
    return replicas[1], pools

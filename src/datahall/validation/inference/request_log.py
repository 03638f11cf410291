"""Logs of single requests: replayed with the arrivals, lengths and cache hits that were measured.

A file of this format belongs to others and is not shipped; it is scored where it is given with `--data`.  Each
configuration (hardware, model, split, limits) becomes one run, and six figures of it are scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from datahall.errors import DatahallError
from datahall.inference.engine.engine import engine
from datahall.inference.engine.replica import Replica
from datahall.validation.inference.names import chip_of, model_of
from datahall.validation.inference.replay import Served, replay_log
from datahall.validation.inference.run import TPOT, TTFT
from datahall.validation.measurement import Outcome, Row, RowError
from datahall.validation.scorecard import Fitted, Prediction, Unsupported
from datahall.workload.traffic.requests import Requests

CONFIGURATION = ("hardware", "model", "tp", "dp", "max_num_seqs", "max_num_batched_tokens")
# blocks of 16 tokens that vLLM reported, where memory does not tell them: LLMServingSim's configuration of the RTX 4090
# run has the share of memory (0.833919 of 24 GiB, weights included) that gives vLLM's number
REPORTED_BLOCKS = {("rtx-4090", "llama-3.1-8b"): 2588}
FITTED_ON = ("rtx-pro-6000", "llama-3.1-8b")  # the host's time per step was fitted on this configuration
# per step, in place of the preset's host times: the one constant of this log.  It stands for all that layers timed
# alone do not show, of which sequences of unequal length are a part
HOST_STEP_S = 1.55e-3
# vLLM 0.19 decides on a step while the one before it runs: a request that its loop takes in at the end of a step waits
# for a whole one, where a request of the simulation waits for the rest of one, half on average
AHEAD_STEPS = 0.5
LEAST_SHARE = 0.99  # of a log's requests that have to come out of the replay
SOURCE = "vLLM 0.19, request by request"


def predict_log(rows: Sequence[Row]) -> Iterable[Outcome]:
    """Replay each configuration of a log and score its mean and tail latencies."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.text(cell) for cell in CONFIGURATION), []).append(row)
    for members in groups.values():
        try:
            yield from _figures(members)
        except (RowError, DatahallError) as problem:
            reason = problem.message if isinstance(problem, DatahallError) else str(problem)
            yield from (Unsupported(reason, row.where) for row in members)


def replica_of(row: Row) -> Replica:
    """The replica of a configuration."""
    chip, model = chip_of(row.text("hardware")), model_of(row.text("model"))
    dp = int(row.count("dp"))
    served = msgspec.structs.replace(
        engine("vllm"),
        host_step_s=HOST_STEP_S,
        host_sequence_s=0.0,
        first_token_s=0.0,  # these times are the engine's own, without a front end
        max_sequences=int(row.count("max_num_seqs")),
        token_budget=int(row.count("max_num_batched_tokens")),
    )
    return Replica(
        peer_to_peer=False,  # cards of workstations: NCCL sends through host memory
        model=model, chip=chip, engine=served, tp=int(row.count("tp")), dp=dp,
        ep=dp if model.moe is not None else 1,
        kv_blocks=REPORTED_BLOCKS.get((chip.name, model.name), 0), max_context=32768,
    )  # fmt: skip


def _figures(rows: Sequence[Row]) -> Iterable[Outcome]:
    replica = replica_of(rows[0])
    column = {
        name: np.array([row.number(name) for row in rows])
        for name in ("input_toks", "output_toks", "queued_s", "first_token_s", "last_token_s")
    }
    hits = np.array([row.number("prefix_hit_toks_infinite_cache") for row in rows]).astype(np.int64)
    order = np.argsort(column["queued_s"], kind="stable")
    column = {name: values[order] for name, values in column.items()}
    requests = Requests.of(
        column["queued_s"] - column["queued_s"][0],
        column["input_toks"].astype(np.int64),
        column["output_toks"].astype(np.int64),
    )
    served = replay_log(replica, requests, hits[order])
    ttft_s = column["first_token_s"] - column["queued_s"]
    tpot_s = (column["last_token_s"] - column["first_token_s"]) / np.maximum(column["output_toks"] - 1, 1)
    ended = np.isfinite(served.ttft_s)
    if ended.mean() < LEAST_SHARE:
        raise RowError("requests of the log did not end in the replay")
    several = ended & (column["output_toks"] > 1)
    first_s = served.ttft_s + AHEAD_STEPS * np.nan_to_num(served.tpot_s)
    for metric, was, found in (
        (TPOT, tpot_s[several], served.tpot_s[several]),
        (TTFT, ttft_s[ended], first_s[ended]),
    ):
        for name, measured_s, predicted_s in (
            ("mean", was.mean(), found.mean()),
            ("P50", np.median(was), np.median(found)),
            ("P99", np.quantile(was, 0.99), np.quantile(found, 0.99)),
        ):
            yield _prediction(rows[0], replica, served, metric, name, float(measured_s), float(predicted_s))


def _prediction(
    row: Row, replica: Replica, served: Served, metric: str, name: str, measured_s: float, predicted_s: float
) -> Prediction | Fitted:  # fmt: skip
    figure = f"{metric} {name}"
    if (replica.chip.name, replica.model.name) == FITTED_ON:
        return Fitted(row.where, figure)
    low, high = replica.engine.band(metric)
    return Prediction(
        source=SOURCE, hardware=replica.chip.name, model=replica.model.name,
        label=f"{name} {metric} of {served.num_requests} requests, TP {replica.tp} DP {replica.dp}", where=row.where,
        measured=measured_s, predicted=predicted_s, low=predicted_s * low, high=predicted_s * high,
        metric=figure,
    )  # fmt: skip

"""Tables and logs of vendors: TensorRT-LLM's performance pages, MLPerf Inference, NVIDIA NIM."""

from __future__ import annotations

import re

import msgspec

from datahall.catalog.entries.chip import Chip
from datahall.inference.engine.engine import Engine
from datahall.inference.engine.replica import Replica
from datahall.scenario.sections.wanted.promise import Promise
from datahall.validation.inference.assumptions import PARTED, longest_ratio
from datahall.validation.inference.names import chip_of, engine_of, engine_on, model_of, precision_of
from datahall.validation.inference.run import THROUGHPUT, Run, Traffic, latencies, lengths, whole
from datahall.validation.measurement import Row, RowError

# Mean tokens of MLPerf's OpenOrca set (24,576 samples): 294.45 is the one figure published with it.  Logs that count
# tokens give outputs of 286 to 294; for prompts, whose mean no source states apart, the fitted offline rows agree with
# it within 10 %.
PROMPT_TOKENS, OUTPUT_TOKENS = 294.45, 294.45
NARROWEST = (("fp4", "nvfp4"), ("fp8", "fp8"))
LEAST_MEMORY_BYTES, WHOLE_MEMORY_BYTES = 75e9, 130e9  # a half, and all, of Llama-2-70B in FP8 with a cache
# MLPerf's rules for Server runs: 99 of 100 requests
LIMITS = (
    (r"llama2-70b-interactive", Promise(ttft_s=0.45, tpot_s=0.04, percentile=0.99)),
    (r"llama3\.1-405b", Promise(ttft_s=6.0, tpot_s=0.175, percentile=0.99)),
    (r"llama2-70b|mixtral", Promise(ttft_s=2.0, tpot_s=0.2, percentile=0.99)),
)

# TensorRT-LLM's performance pages: requests of a run by lengths (128/128 has 30,000, of which a part is enough), and
# the first version whose mixtures of experts run with attention data parallelism and expert parallelism
NUM_REQUESTS = {
    (128, 2048): 3000, (128, 4096): 1500, (1000, 2000): 1500, (2048, 128): 3000, (2048, 2048): 1500,
    (5000, 500): 1500, (1000, 1000): 3000, (500, 2000): 3000, (20000, 2000): 1000, (1024, 1024): 3000,
    (8192, 1024): 1500, (1024, 8192): 1500, (32768, 1024): 1000, (1024, 32768): 1000,
}  # fmt: skip
FIRST_SPREAD_OUT = (1, 0)
FIRST_PYTHON = (0, 19)
COMPILED_SEQUENCE_S = 5e-6  # host time for each sequence of a step; from the marked rows of 0.17


def read_tensorrt(row: Row) -> Run:
    """A row of the tables of greatest throughput: every request is there at the start, lengths are fixed."""
    found = re.search(r"v(\d+)\.(\d+)", row.text("source"))
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    if version < (0, 17):
        raise RowError("TensorRT-LLM before 0.17: kernels that we have no constants for")
    if "SUSPECT" in row.text("notes"):
        raise RowError("the document's figure is out of line with its neighbours")
    if not row.text("concurrency_or_qps").startswith("offline"):
        raise RowError("a static batch: not how engines serve")
    prompt, output = lengths(row)
    chip = chip_of(row.text("hardware"))
    linear = {"fp4": "nvfp4", "fp8": "fp8", "fp16": "fp16", "mixed": "fp8"}.get(
        row.text("precision").lower(), ""
    )
    if row.text("precision").lower() == "mixed":
        raise RowError('the document says "mixed" precision and not which')
    model, width = model_of(row.text("model")), whole(row, "tp", 1)
    spread_out = model.moe is not None and version >= FIRST_SPREAD_OUT
    replica = Replica(
        model=model,
        chip=chip,
        engine=_bench_engine(row, chip, version),
        precision=precision_of(linear, "fp8" if linear in {"fp8", "nvfp4"} else "fp16", chip),
        tp=1 if spread_out else width, dp=width if spread_out else 1, ep=width if spread_out else 1,
        pp=whole(row, "pp", 1),
    )  # fmt: skip
    traffic = Traffic(
        kind="offline", prompt_tokens=prompt, output_tokens=output,
        num_requests=NUM_REQUESTS.get((prompt, output), 0),
    )  # fmt: skip
    return Run(
        row=row, replica=replica, num_replicas=1, traffic=traffic,
        measured={THROUGHPUT: row.positive("throughput_tok_s_total")},
    )  # fmt: skip


def _bench_engine(row: Row, chip: Chip, version: tuple[int, int]) -> Engine:
    """The engine of `trtllm-bench`: before 0.19 no Python runs between the steps."""
    found = msgspec.structs.replace(
        engine_on(engine_of(row.text("engine")), chip), max_sequences=2048, prefix_caching=False
    )
    if version >= FIRST_PYTHON:
        return found
    return msgspec.structs.replace(found, host_step_s=0.0, host_sequence_s=COMPILED_SEQUENCE_S)


def read_mlperf(row: Row) -> Run:
    """A Server row (the greatest Poisson rate under the limits) or an Offline row, several replicas on one machine.

    The latencies of a Server row are not scored: it runs at the edge of what the machine can do, where they follow
    from a few per cent of capacity.
    """
    name = row.text("model")
    if name.startswith("mixtral"):
        raise RowError("MLPerf's mixture of three datasets: lengths not published as means")
    if name.startswith("gptj"):
        raise RowError("beams of four: not modelled")
    model = model_of(name)
    chip = chip_of(row.text("hardware"))
    engine = engine_of(row.text("engine"))
    if "TensorRT" not in row.text("engine"):
        raise RowError("an MLPerf harness other than TensorRT-LLM's")
    prompt, output = PROMPT_TOKENS, OUTPUT_TOKENS
    notes = row.text("notes")
    samples = float(found[1]) if (found := re.search(r"samples/s=([\d.]+)", notes)) else 0.0
    total = row.text("throughput_tok_s_total")
    if samples and total:
        output = float(total) / samples
    num_chips = whole(row, "n_gpus", 1)
    tp = _mlperf_width(row, chip, num_chips, name)
    # NVIDIA submits the narrowest format that a chip has: FP4 on Blackwell from its first round on
    linear = next((one for peak, one in NARROWEST if peak in chip.peak_flop_per_s), "fp16")
    replica = Replica(
        model=model, chip=chip,
        engine=msgspec.structs.replace(engine, max_sequences=1024, prefix_caching=False),
        precision=precision_of(linear, "fp16" if linear == "fp16" else "fp8", chip), tp=tp,
    )  # fmt: skip
    if "maxq" in notes.lower():
        raise RowError("a run under a power cap that is not stated")
    served = samples * output
    limits = None
    if "req/s" in row.text("concurrency_or_qps"):
        limits = next((limits for words, limits in LIMITS if re.search(words, name)), None)
        if limits is None:
            raise RowError("we do not know the limits of this Server run")
    if not total and not served:
        raise RowError("the log states no token rate")
    traffic = Traffic(
        kind="offline" if limits is None else "server", prompt_tokens=prompt,
        output_tokens=output if limits is None else round(output, -1), spread_ratio=1.0, limits=limits,
    )  # fmt: skip
    figures = {THROUGHPUT: row.positive("throughput_tok_s_total") if total else served}
    return Run(
        row=row, replica=replica, num_replicas=max(1, num_chips // tp), traffic=traffic, measured=figures
    )  # fmt: skip


def _mlperf_width(row: Row, chip: Chip, num_chips: int, name: str) -> int:
    """Tensor width as NVIDIA's configurations have it: the least that leaves the cache room.

    Cards without a link of their own may as well be split into stages: nothing settles it where the row does not.
    """
    if "tp" in row.cells and row.text("tp"):
        return whole(row, "tp", 1)
    if not name.startswith("llama2-70b"):
        return 1
    if chip.memory_bytes < LEAST_MEMORY_BYTES:
        raise RowError("the row does not state how the model was split over small cards")
    width = 1 if chip.memory_bytes >= WHOLE_MEMORY_BYTES else 2
    if num_chips < width:
        raise RowError("the model does not fit the chips stated")
    return width


def read_nim(row: Row) -> Run:
    """NVIDIA's NIM pages: a closed loop of fixed lengths (genai-perf), measured when it has settled."""
    prompt, output = lengths(row)
    chip = chip_of(row.text("hardware"))
    users = int(row.count("concurrency_or_qps"))
    replica = Replica(
        model=model_of(row.text("model")), chip=chip,
        engine=msgspec.structs.replace(engine_of(row.text("engine")), prefix_caching=False),
        precision=precision_of(row.text("precision"), "fp8", chip), tp=whole(row, "tp", 1),
    )  # fmt: skip
    figures = latencies(row)
    if row.text("throughput_tok_s_total"):
        figures[THROUGHPUT] = row.positive("throughput_tok_s_total")
    longest = longest_ratio(PARTED)
    traffic = Traffic(
        kind="closed", prompt_tokens=prompt * longest, output_tokens=output * longest, users=users,
        shortest_fraction=PARTED, warm_rounds=1,
    )  # fmt: skip
    return Run(row=row, replica=replica, num_replicas=1, traffic=traffic, measured=figures)

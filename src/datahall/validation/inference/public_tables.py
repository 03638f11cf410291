"""Tables and logs of vendors: TensorRT-LLM's performance pages, MLPerf Inference, NVIDIA NIM."""

from __future__ import annotations

import re

import msgspec

from datahall.catalog.chip import Chip
from datahall.inference.replica import Replica
from datahall.validation.inference.names import chip_of, engine_of, model_of, precision_of
from datahall.validation.inference.run import THROUGHPUT, Run, Traffic, latencies, lengths, whole
from datahall.validation.measurement import Row, RowError

# Mean tokens of MLPerf's OpenOrca subset.  Outputs: the reference run, where a log does not tell them; prompts: not
# published, the number that the fitted offline rows agree on.
PROMPT_TOKENS, OUTPUT_TOKENS = 200.0, 294.45


def read_tensorrt(row: Row) -> Run:
    """A row of the tables of greatest throughput: every request is there at the start, lengths are fixed."""
    version = found[1] if (found := re.search(r"v(\d+\.\d+)", row.text("source"))) else ""
    if not version or (float(version.split(".")[0]), float(version.split(".")[1])) < (0, 17):
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
    replica = Replica(
        model=model_of(row.text("model")),
        chip=chip,
        engine=msgspec.structs.replace(engine_of(row.text("engine")), max_sequences=2048, prefix_caching=False),
        precision=precision_of(linear, "fp8" if linear in {"fp8", "nvfp4"} else "fp16", chip),
        tp=whole(row, "tp", 1), pp=whole(row, "pp", 1),
    )  # fmt: skip
    return Run(
        row=row, replica=replica, num_replicas=1,
        traffic=Traffic(kind="offline", prompt_tokens=prompt, output_tokens=output),
        measured={THROUGHPUT: row.positive("throughput_tok_s_total")},
    )  # fmt: skip


def read_mlperf(row: Row) -> Run:
    """A Server row (Poisson at the scheduled rate) or an Offline row, several replicas on one machine."""
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
    linear = "fp8" if "fp8" in chip.peak_flop_per_s else "fp16"
    replica = Replica(
        model=model, chip=chip,
        engine=msgspec.structs.replace(engine, max_sequences=1024, prefix_caching=False),
        precision=precision_of(linear, "fp8" if linear == "fp8" else "fp16", chip), tp=tp,
    )  # fmt: skip
    figures = latencies(row)
    if found := re.search(r"([\d.]+) req/s", row.text("concurrency_or_qps")):
        traffic = Traffic(
            kind="poisson",
            prompt_tokens=prompt,
            output_tokens=output,
            rate_per_s=float(found[1]),
            spread=True,
        )
    else:
        traffic = Traffic(kind="offline", prompt_tokens=prompt, output_tokens=output, spread=True)
        figures = {}
        if total:
            figures[THROUGHPUT] = row.positive("throughput_tok_s_total")
        elif samples:
            figures[THROUGHPUT] = samples * output
    if not figures:
        raise RowError("the log states no token latencies and no token rate")
    return Run(
        row=row, replica=replica, num_replicas=max(1, num_chips // tp), traffic=traffic, measured=figures
    )  # fmt: skip


def _mlperf_width(row: Row, chip: Chip, num_chips: int, name: str) -> int:
    """Tensor width as NVIDIA's configurations have it: the least that leaves the cache room."""
    if "tp" in row.cells and row.text("tp"):
        return whole(row, "tp", 1)
    if not name.startswith("llama2-70b"):
        return 1
    fits = chip.memory_bytes >= 130e9
    width = 1 if fits else 2 if chip.memory_bytes >= 75e9 else 4
    if num_chips < width:
        raise RowError("the model does not fit the chips stated")
    return width


def read_nim(row: Row) -> Run:
    """NVIDIA's NIM pages: a closed loop of fixed lengths (genai-perf)."""
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
    traffic = Traffic(kind="closed", prompt_tokens=prompt, output_tokens=output, users=users)
    return Run(row=row, replica=replica, num_replicas=1, traffic=traffic, measured=figures)

"""Layouts as people already have them: Megatron-LM arguments, torchtitan TOML, DeepSpeed JSON.

The fields that decide time and memory become a `Layout` and what goes with it; every other field is listed as
ignored.  All problems of a file are reported at once, each with its line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from datahall.catalog import document, json_document
from datahall.catalog.document import Document
from datahall.errors import DocumentError, Problem
from datahall.training.layout import Layout
from datahall.training.layout_words import Words, megatron_words
from datahall.workload.activation import Recompute

Kind = Literal["megatron", "torchtitan", "deepspeed"]


class LayoutFile(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says about a run; 0 or "" where it says nothing."""

    path: str
    kind: Kind
    layout: Layout
    seq: int = 0
    global_batch: int = 0
    accumulation: int = 0  # micro-batches per rank and step, where that is what the file states
    precision: str = ""
    states_dp: bool = False  # whether dp is the file's; else it takes the chips left over
    ignored: tuple[str, ...] = ()

    def on(self, num_chips: int) -> Layout:
        """The layout with data parallelism over the chips left."""
        if self.states_dp:
            return self.layout
        group = self.layout.tp * self.layout.pp * self.layout.cp
        return msgspec.structs.replace(self.layout, dp=max(1, num_chips // group))


def read_layout(path: str | Path) -> LayoutFile:
    """Read a layout from a file, told apart by its ending: .toml torchtitan, .json DeepSpeed, else Megatron-LM."""
    file = Path(path)
    match file.suffix:
        case ".toml":
            return _torchtitan(document.read(file))
        case ".json":
            return _deepspeed(json_document.read(file))
        case _:
            return _megatron(file)


def _megatron(file: Path) -> LayoutFile:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise DocumentError(str(file), [Problem(str(file), f"cannot be read: {error.strerror}")]) from error
    except UnicodeDecodeError as error:
        raise DocumentError(str(file), [Problem(str(file), f"is not UTF-8 text: {error.reason}")]) from error
    words = megatron_words(text, str(file))
    layout = Layout(
        tp=words.whole("tensor-model-parallel-size", 1),
        pp=words.whole("pipeline-model-parallel-size", 1),
        cp=words.whole("context-parallel-size", 1),
        ep=words.whole("expert-model-parallel-size", 1),
        zero=_megatron_zero(words),
        micro_batch=words.whole("micro-batch-size", 1),
        recompute=_megatron_recompute(words),
        sequence_parallel=words.flag("sequence-parallel"),
    )
    layout = msgspec.structs.replace(layout, vpp=_megatron_chunks(words, layout.pp))
    return words.done(
        LayoutFile(
            path=str(file),
            kind="megatron",
            layout=layout,
            seq=words.whole("seq-length", 0),
            global_batch=words.whole("global-batch-size", 0),
            precision=_megatron_precision(words),
            ignored=(),
        )
    )


def _megatron_zero(words: Words) -> int:
    sharded = words.flag("use-megatron-fsdp", "use-custom-fsdp", "use-torch-fsdp2")
    strategy = words.one_of("data-parallel-sharding-strategy", {
        "no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3,
    })  # fmt: skip
    optimizer = words.flag("use-distributed-optimizer")
    if strategy is not None:
        return strategy
    return 3 if sharded else int(optimizer)


def _megatron_recompute(words: Words) -> Recompute:
    whole = words.flag("recompute-activations")
    levels: dict[str, Recompute] = {"full": "full", "selective": "selective"}
    level = words.one_of("recompute-granularity", levels)
    return level or ("selective" if whole else "none")


def _megatron_chunks(words: Words, pp: int) -> int:
    chunks = words.whole("num-virtual-stages-per-pipeline-rank", 0)
    per_chunk = words.whole("num-layers-per-virtual-pipeline-stage", 0)
    layers = words.whole("num-layers", 0)
    if chunks:
        return chunks
    if not per_chunk:
        return 1
    if not layers:
        words.problem(
            "num-layers-per-virtual-pipeline-stage", "needs --num-layers to become a number of chunks"
        )
        return 1
    if layers % (pp * per_chunk):
        words.problem(
            "num-layers-per-virtual-pipeline-stage",
            f"{layers} layers do not divide into {pp} stages with chunks of {per_chunk}",
        )
        return 1
    return layers // (pp * per_chunk)


def _megatron_precision(words: Words) -> str:
    narrow = words.one_of("fp8-format", {"e4m3": "fp8", "hybrid": "fp8"})
    wide = "bf16" if words.flag("bf16") else "fp16" if words.flag("fp16") else ""
    return narrow or wide


_TITAN_RECOMPUTE: dict[str, Recompute] = {
    "none": "none",
    "selective": "selective",
    "full": "full",
    "memory_budget": "selective",
}


def _torchtitan(file: Document) -> LayoutFile:
    words = Words.of_document(file)
    shard = words.whole("parallelism.data_parallel_shard_degree", -1, least=-1)
    replicate = words.whole("parallelism.data_parallel_replicate_degree", 1)
    pp = words.whole("parallelism.pipeline_parallel_degree", 1)
    local = words.whole("training.local_batch_size", 0) or words.whole("training.batch_size", 1)
    micro = words.whole("parallelism.pipeline_parallel_microbatch_size", 1)
    chunked = "nterleaved" in words.text("parallelism.pipeline_parallel_schedule", "")
    kept = words.text("parallelism.fsdp_reshard_after_forward", "default")
    layout = Layout(
        tp=words.whole("parallelism.tensor_parallel_degree", 1),
        pp=pp,
        vpp=2 if chunked else 1,  # its default of two chunks per rank
        cp=words.whole("parallelism.context_parallel_degree", 1),
        ep=words.whole("parallelism.expert_parallel_degree", 1),
        dp=max(1, shard) * replicate,
        # with a pipeline it keeps the gathered weights between forward and backward
        zero=2 if kept == "never" or (kept == "default" and pp > 1) else 3,
        micro_batch=micro if pp > 1 else local,
        recompute=words.one_of("activation_checkpoint.mode", _TITAN_RECOMPUTE) or "selective",
        sequence_parallel=True,
    )
    return words.done(
        LayoutFile(
            path=file.path,
            kind="torchtitan",
            layout=layout,
            seq=words.whole("training.seq_len", 0),
            global_batch=max(0, words.whole("training.global_batch_size", 0, least=-1)),
            accumulation=local // micro if pp > 1 else 0,
            precision=_titan_precision(words),
            states_dp=shard > 0,
        )
    )


def _titan_precision(words: Words) -> str:
    converters = words.text("model.converters", "")
    if "mx" in converters:
        return "mxfp8"
    return "fp8" if "float8" in converters else "bf16"


def _deepspeed(file: Document) -> LayoutFile:
    words = Words.of_document(file)
    micro = words.whole("train_micro_batch_size_per_gpu", 0)
    steps = words.whole("gradient_accumulation_steps", 0)
    batch = words.whole("train_batch_size", 0)
    dp = batch // (micro * steps) if micro and steps and batch else 1
    if micro and steps and batch and batch != micro * steps * dp:
        words.problem(
            "train_batch_size",
            f"{batch} is not micro-batch {micro} × accumulation {steps} × a whole number of ranks",
        )
    layout = Layout(
        tp=words.whole("tensor_parallel.autotp_size", 1),
        pp=words.whole("pipeline.stages", 1),
        cp=words.whole("sequence_parallel_size", 1),
        dp=max(1, dp),
        zero=words.whole("zero_optimization.stage", 0, least=0, most=3),
        micro_batch=micro or 1,
        recompute="full" if words.has("activation_checkpointing") else "none",
        sequence_parallel=False,
    )
    narrow = words.truth("bf16.enabled"), words.truth("fp16.enabled")
    return words.done(
        LayoutFile(
            path=file.path,
            kind="deepspeed",
            layout=layout,
            global_batch=batch,
            accumulation=steps,
            precision="bf16" if narrow[0] else "fp16" if narrow[1] else "fp32",
            states_dp=dp > 1,
        )
    )

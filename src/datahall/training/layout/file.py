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
from datahall.catalog.entries.model import Model
from datahall.counted import counted
from datahall.errors import ScenarioError
from datahall.scenario.words import MODULES, ContextExchange
from datahall.training.layout.layout import Layout
from datahall.training.layout.words import Words, megatron_words
from datahall.workload.memory.recompute import Recompute

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
    states: frozenset[str] = frozenset()  # attributes of the inputs that it says, be they usual
    num_copies: int = 1  # groups of ranks that each hold a whole state
    first_layers: int = 0  # of the first and the last stage, where they are not as the others
    last_layers: int = 0
    counts_embedding: bool = False  # the embedding takes the place of a layer when stages are cut
    counts_loss: bool = False
    ignored: tuple[str, ...] = ()

    def on(self, num_chips: int) -> Layout:
        """The layout with data parallelism over the chips left."""
        if self.states_dp:
            return self.layout
        group = self.layout.tp * self.layout.pp * self.layout.cp
        return msgspec.structs.replace(self.layout, dp=max(1, num_chips // group))

    def finished(self, layout: Layout, model: Model) -> Layout:
        """A layout on its chips with what needs their number, or that of the layers: groups of ranks, and the cut."""
        if self.num_copies > 1 and not layout.shard:
            layout = msgspec.structs.replace(layout, shard=max(1, layout.dp // self.num_copies))
        if layout.split or not (
            self.first_layers or self.last_layers or self.counts_embedding or self.counts_loss
        ):
            return layout
        ends = (self.first_layers, self.last_layers)
        split = cut_by_ends(
            model.num_layers, layout.pp, ends, (int(self.counts_embedding), int(self.counts_loss)), self.path
        )
        return msgspec.structs.replace(layout, split=split)


def cut_by_ends(
    num_layers: int, pp: int, ends: tuple[int, int], as_layers: tuple[int, int], where: str = ""
) -> tuple[int, ...]:
    """Layers of each stage where the ends are told apart, as Megatron-LM cuts them: by their number of layers, or by
    counting embedding and loss as one layer each.

    >>> cut_by_ends(61, 16, (3, 2), (0, 0))
    (3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 2)
    >>> cut_by_ends(126, 8, (0, 0), (1, 1))
    (15, 16, 16, 16, 16, 16, 16, 15)
    """
    if any(as_layers):
        each, rest = divmod(num_layers + sum(as_layers), pp)
        if rest:
            near = [count * pp - sum(as_layers) for count in (each, each + 1)]
            raise ScenarioError(
                f"{num_layers} layers with {sum(as_layers)} counted for embedding and loss do not divide by pp {pp}",
                where=where,
                hint=f"nearest layers: {near[0]} or {near[1]}; or another pp",
            )
        split = [each] * pp
        split[0] -= as_layers[0]
        split[-1] -= as_layers[1]
        return tuple(split)
    named = [one for one in ends if one]
    others = pp - len(named)
    rest_layers = num_layers - sum(named)
    if others < 1 and rest_layers == 0:
        return tuple(named)
    if others < 1 or rest_layers < 0 or rest_layers % others:
        raise ScenarioError(
            f"with {' and '.join(map(str, named))} layers on the ends, "
            f"{counted(rest_layers, 'layer')} {'is' if rest_layers == 1 else 'are'} left for "
            f"{counted(others, 'stage')}",
            where=where,
            hint=f"ends that leave a multiple of {max(1, others)}",
        )
    middle = [rest_layers // others] * others
    return (*([ends[0]] if ends[0] else []), *middle, *([ends[1]] if ends[1] else []))


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
    words = megatron_words(document.text_of(file), str(file))
    layout = Layout(
        tp=words.whole("tensor-model-parallel-size", 1),
        pp=words.whole("pipeline-model-parallel-size", 1),
        cp=words.whole("context-parallel-size", 1),
        ep=words.whole("expert-model-parallel-size", 1),
        etp=_megatron_etp(words),
        zero=_megatron_zero(words),
        micro_batch=words.whole("micro-batch-size", 1),
        recompute=_megatron_recompute(words),
        sequence_parallel=words.flag("sequence-parallel"),
        context_exchange=words.one_of("cp-comm-type", _MEGATRON_CONTEXTS) or "ring",
        offload=_megatron_offload(words),
    )
    if layout.recompute == "selective":
        layout = msgspec.structs.replace(layout, modules=words.some_of("recompute-modules", MODULES))
    layout = msgspec.structs.replace(layout, vpp=_megatron_chunks(words, layout.pp))
    return words.done(
        LayoutFile(
            path=str(file),
            kind="megatron",
            layout=layout,
            seq=words.whole("seq-length", 0),
            global_batch=words.whole("global-batch-size", 0),
            precision=_megatron_precision(words),
            num_copies=words.whole("num-distributed-optimizer-instances", 1),
            first_layers=_either(
                words, "decoder-first-pipeline-num-layers", "num-layers-in-first-pipeline-stage"
            ),
            last_layers=_either(
                words, "decoder-last-pipeline-num-layers", "num-layers-in-last-pipeline-stage"
            ),
            counts_embedding=words.flag("account-for-embedding-in-pipeline-split"),
            counts_loss=words.flag("account-for-loss-in-pipeline-split"),
            ignored=(),
        ),
        _MEGATRON_SAYS,
    )


# the inputs that words of a launcher say
_MEGATRON_SAYS = {
    "tensor-model-parallel-size": "tp", "pipeline-model-parallel-size": "pp", "context-parallel-size": "cp",
    "expert-model-parallel-size": "ep", "expert-tensor-parallel-size": "etp", "micro-batch-size": "micro_batch",
    "num-virtual-stages-per-pipeline-rank": "vpp", "num-layers-per-virtual-pipeline-stage": "vpp",
    "seq-length": "seq", "global-batch-size": "global_batch", "cp-comm-type": "context_exchange",
    "optimizer-cpu-offload": "offload", "recompute-modules": "modules",
    **dict.fromkeys(("bf16", "fp16", "fp8-format"), "precision"),
    **dict.fromkeys(("recompute-activations", "recompute-granularity"), "recompute"),
    **dict.fromkeys(("use-distributed-optimizer", "data-parallel-sharding-strategy"), "zero"),
    **dict.fromkeys(("use-megatron-fsdp", "use-custom-fsdp", "use-torch-fsdp2"), "zero"),
    **dict.fromkeys(("decoder-first-pipeline-num-layers", "num-layers-in-first-pipeline-stage"), "split"),
    **dict.fromkeys(("decoder-last-pipeline-num-layers", "num-layers-in-last-pipeline-stage"), "split"),
    **dict.fromkeys(("account-for-embedding-in-pipeline-split", "account-for-loss-in-pipeline-split"), "split"),
}  # fmt: skip
_TITAN_SAYS = {
    "parallelism.tensor_parallel_degree": "tp", "parallelism.pipeline_parallel_degree": "pp",
    "parallelism.pipeline_parallel_schedule": "vpp", "parallelism.context_parallel_degree": "cp",
    "parallelism.expert_parallel_degree": "ep", "parallelism.expert_tensor_parallel_degree": "etp",
    "training.seq_len": "seq", "training.global_batch_size": "global_batch",
    "parallelism.data_parallel_shard_degree": "zero", "parallelism.fsdp_reshard_after_forward": "zero",
    "activation_checkpoint.mode": "recompute", "model.converters": "precision",
    "training.enable_cpu_offload": "offload",
}  # fmt: skip
_TITAN_BATCHES = ("training.local_batch_size", "training.batch_size")
_TITAN_PIPED = ("parallelism.pipeline_parallel_microbatch_size",)
_DEEPSPEED_SAYS = {
    "tensor_parallel.autotp_size": "tp", "pipeline.stages": "pp", "sequence_parallel_size": "cp",
    "train_micro_batch_size_per_gpu": "micro_batch", "train_batch_size": "global_batch",
    "zero_optimization.mics_shard_size": "shard", "zero_optimization.stage": "zero",
    "bf16": "precision", "fp16": "precision", "optimizer.type": "compression", "communication_data_type": "compression",
    "activation_checkpointing": "recompute", "zero_optimization.cpu_offload": "offload",
    "zero_optimization.cpu_offload_params": "offload", "zero_optimization.offload_optimizer": "offload",
    "zero_optimization.offload_param": "offload",
}  # fmt: skip
_MEGATRON_CONTEXTS: dict[str, ContextExchange] = {"p2p": "ring", "a2a": "all-to-all"}


def _either(words: Words, *names: str) -> int:
    """A number that goes by several names; 0 where none stands there."""
    return max(words.whole(name, 0) for name in names)


def _megatron_etp(words: Words) -> int:
    """Megatron cuts experts as it cuts the rest unless told otherwise."""
    mixed = words.flag("num-experts") or words.whole("expert-model-parallel-size", 1) > 1
    usual = words.whole("tensor-model-parallel-size", 1) if mixed else 0
    return words.whole("expert-tensor-parallel-size", usual)


def _megatron_offload(words: Words) -> tuple[str, ...]:
    part = words.text("optimizer-offload-fraction", "1.0")
    if not words.flag("optimizer-cpu-offload"):
        return ()
    if part not in ("", "1", "1.0"):
        words.problem(
            "optimizer-offload-fraction", f"is {part}", "1.0: only the whole optimizer can be moved here"
        )
    return ("optimizer",)


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
            f"{layers} layers do not divide into {counted(pp, 'stage')} with chunks of {per_chunk}",
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
    at_once = _TITAN_PIPED if pp > 1 else _TITAN_BATCHES
    chunked = "nterleaved" in words.text("parallelism.pipeline_parallel_schedule", "")
    kept = words.text("parallelism.fsdp_reshard_after_forward", "default")
    layout = Layout(
        tp=words.whole("parallelism.tensor_parallel_degree", 1),
        pp=pp,
        vpp=2 if chunked else 1,  # its default of two chunks per rank
        cp=words.whole("parallelism.context_parallel_degree", 1),
        ep=words.whole("parallelism.expert_parallel_degree", 1),
        etp=words.whole("parallelism.expert_tensor_parallel_degree", 0),
        dp=max(1, shard) * replicate,
        # with a pipeline it keeps the gathered weights between forward and backward; one rank alone shards nothing
        zero=0 if shard == 1 else 2 if kept == "never" or (kept == "default" and pp > 1) else 3,
        offload=("optimizer", "parameters") if words.truth("training.enable_cpu_offload") else (),
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
            num_copies=1 if shard == 1 else replicate,
        ),
        {**_TITAN_SAYS, **dict.fromkeys(at_once, "micro_batch")},
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
        shard=max(0, words.whole("zero_optimization.mics_shard_size", 0, least=-1)),
        offload=_deepspeed_offload(words),
        compression=_deepspeed_compression(words),
        context_exchange="all-to-all"
        if words.whole("sequence_parallel_size", 1) > 1
        else "ring",  # DeepSpeed Ulysses
    )
    return words.done(
        LayoutFile(
            path=file.path,
            kind="deepspeed",
            layout=layout,
            global_batch=batch,
            accumulation=steps,
            precision=_deepspeed_precision(words),
            states_dp=dp > 1,
        ),
        _DEEPSPEED_SAYS,
    )


def _deepspeed_precision(words: Words) -> str:
    """The format that is switched on, and fp32 where none is."""
    enabled = [name for name in ("bf16", "fp16") if words.truth(f"{name}.enabled")]
    return enabled[0] if enabled else "fp32"


_DEEPSPEED_DEVICES = {"none": "", "cpu": "host", "nvme": "nvme"}


def _deepspeed_offload(words: Words) -> tuple[str, ...]:
    """ZeRO-Offload and ZeRO-Infinity; an older spelling is a truth value."""
    found = []
    for what, name in (("optimizer", "offload_optimizer"), ("parameters", "offload_param")):
        tier = words.one_of(f"zero_optimization.{name}.device", _DEEPSPEED_DEVICES)
        old = "cpu_offload" if what == "optimizer" else "cpu_offload_params"
        if words.truth(f"zero_optimization.{old}"):
            tier = tier or "host"
        if tier:
            found.append(what if tier == "host" else f"{what}:{tier}")
    return tuple(found)


def _deepspeed_compression(words: Words) -> str:
    if words.text("optimizer.type", "").lower() in {"onebitadam", "onebitlamb", "zerooneadam"}:
        return "1-bit"
    narrow = words.text("communication_data_type", "").lower()
    return "bf16" if narrow in {"fp16", "bf16", "bfp16"} else "none"

"""Measured training steps: what the training room is judged on.

A row states hardware, model, layout and a step time, a token rate or a FLOP rate; FLOPs are converted only by the
convention the row states.  What a row leaves out is taken from the framework its source used, and a row that leaves
out more than that is counted with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from datahall.catalog import load
from datahall.catalog.chip import Chip
from datahall.catalog.model import Layer, Model
from datahall.errors import DatahallError
from datahall.fabric.collectives.testbed import chip_named
from datahall.training.cluster import Cluster, cluster_of
from datahall.training.framework import framework
from datahall.training.layout import Layout, Space
from datahall.training.step import Job, step_times
from datahall.validation.measurement import Format, Outcome, Row, RowError
from datahall.validation.scorecard import Prediction, Unsupported
from datahall.workload.activation import Recompute
from datahall.workload.precision import Precision


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """What the rows of a source have in common and do not repeat."""

    words: str  # in the source's name
    framework: str
    nic_bytes_per_s: float = 0.0
    recompute: Recompute = "none"
    vpp: int = 1  # where a row states none; 0: one layer per virtual stage
    sequence_parallel: bool = True
    fabric: str = "infiniband"
    precision: str = "bf16"  # where a row states none


SOURCES = (
    Source(words="vTrain", framework="megatron-2022", nic_bytes_per_s=12.5e9, sequence_parallel=False),
    Source(words="BLOOM", framework="megatron-deepspeed", nic_bytes_per_s=6.25e9, sequence_parallel=False),
    Source(words="Korthikanti", framework="megatron-2022", sequence_parallel=False),
    Source(words="SC'21", framework="megatron-2022", sequence_parallel=False),
    Source(words="MT-NLG", framework="megatron-2022", sequence_parallel=False),
    Source(words="(gpt3)", framework="nemo", vpp=6),
    Source(words="(llama31_405b)", framework="nemo"),
    Source(words="(llama31_8b)", framework="nemo", precision="fp8"),
    Source(words="(llama2_70b_lora)", framework="nemo", precision="fp8"),
    Source(words="dgxc", framework="nemo", vpp=0),
    Source(words="Megatron-Bridge", framework="nemo", vpp=1),
    Source(words="NeMo", framework="nemo"),
    Source(words="Megatron-LM README H100", framework="nemo", recompute="selective"),
    Source(words="SimuMax", framework="nemo"),
    Source(words="llm-foundry", framework="fsdp", nic_bytes_per_s=25e9, fabric="roce"),
    Source(words="torchtitan", framework="fsdp", nic_bytes_per_s=50e9),
    Source(words="MegaScale", framework="megatron-2022", nic_bytes_per_s=25e9, fabric="roce"),
)

# names that sources print, as the catalogue spells them
NAMES = (
    (r"deepseek[-_ ]?v3", "deepseek-v3"),
    (r"qwen3[-_ ]?235b", "qwen3-235b-a22b"),
    (r"qwen3[-_ ]?30b", "qwen3-30b-a3b"),
    (r"gpt[-_ ]?oss[-_ ]?120b", "gpt-oss-120b"),
    (r"gpt[-_ ]?oss[-_ ]?20b", "gpt-oss-20b"),
    (r"kimi[-_ ]?k2", "kimi-k2"),
    (r"llama[-_ ]?3(\.1)?[-_ ]?405b", "llama-3.1-405b"),
    (r"llama[-_ ]?3(\.[13])?[-_ ]?70b", "llama-3.1-70b"),
    (r"llama[-_ ]?3(\.1)?[-_ ]?8b", "llama-3.1-8b"),
    (r"llama[-_ ]?2[-_ ]?70b", "llama-2-70b"),
    (r"llama[-_ ]?2[-_ ]?13b", "llama-2-13b"),
    (r"llama[-_ ]?2[-_ ]?7b", "llama-2-7b"),
    (r"mixtral[-_ ]?8x7b", "mixtral-8x7b"),
    (r"mixtral[-_ ]?8x22b", "mixtral-8x22b"),
    (r"nemotron[-_ ]?4?[-_ ]?340b", "nemotron-4-340b"),
    (r"nemotron[-_ ]?4?[-_ ]?15b", "nemotron-4-15b"),
)


def predict_rows(rows: Sequence[Row]) -> Iterable[Outcome]:
    """Predict each row; what cannot be expressed is counted with its reason."""
    for row in rows:
        try:
            yield predict(row)
        except (RowError, DatahallError) as problem:
            reason = problem.message if isinstance(problem, DatahallError) else str(problem)
            yield Unsupported(re.sub(r"\d[\d,.]*", "N", reason), row.where)


def predict(row: Row) -> Prediction:
    """One row: the step it should have taken."""
    source = next((one for one in SOURCES if one.words in row.text("source")), None)
    if source is None:
        raise RowError(f'no framework is known for source "{row.text("source")}"')
    chip, model = hardware(row), described(row)
    cluster = cluster_of(
        chip, int(row.positive("n_gpus")), nic_bytes_per_s=source.nic_bytes_per_s, fabric=source.fabric
    )
    layout, job = laid_out(row, source, model, cluster)
    measured_s = measured(row, job, cluster)
    kit = framework(source.framework)
    predicted_s = float(step_times(job, cluster, Space.of(layout), kit).step_s[0])
    return Prediction(
        source=row.text("source"),
        hardware=chip.name,
        model=row.text("model_name"),
        label=_label(row, layout),
        where=row.where,
        measured=measured_s,
        predicted=predicted_s,
        low=predicted_s * kit.band[0],
        high=predicted_s * kit.band[1],
        fitted=row.fitted,
    )


def _label(row: Row, layout: Layout) -> str:
    return (
        f"{row.text('model_name')} on {row.text('n_gpus')} × {row.text('hardware')}, tp {layout.tp} pp {layout.pp} "
        f"dp {layout.dp} cp {layout.cp} ep {layout.ep}"
    )


def hardware(row: Row) -> Chip:
    """The chip that a row's hardware names."""
    words = row.text("hardware")
    if "Ampere" in words:
        return load().chip("a100-sxm-80gb")
    chip = chip_named(words)
    if chip is None:
        raise RowError(f'hardware "{words}" is not in the catalogue')
    if chip.family == "tpu":
        raise RowError("layouts of TPU runs are not stated")
    return chip


def described(row: Row) -> Model:
    """The model from the row's own dimensions, or from the catalogue by its name."""
    name = row.text("model_name")
    known = next((entry for pattern, entry in NAMES if re.search(pattern, name.lower())), None)
    if known is not None:
        model = load().model(known)
        layers = int(row.number("n_layers")) if row.text("n_layers") else model.num_layers
        if layers != model.num_layers:
            kept = model.layers[:layers] if layers <= model.num_layers else model.layers
            model = msgspec.structs.replace(model, layers=kept, num_layers=len(kept))
        return model
    missing = [column for column in ("n_layers", "hidden", "n_heads") if not row.text(column)]
    if missing:
        raise RowError(f'the row does not state {", ".join(missing)} and "{name}" is not in the catalogue')
    layers, hidden, heads = (int(row.positive(column)) for column in ("n_layers", "hidden", "n_heads"))
    gated = "lama" in name.lower()
    return Model(
        name=name,
        title=name,
        family="gpt",
        year=0,
        num_layers=layers,
        hidden=hidden,
        num_heads=heads,
        num_kv_heads=int(row.number("n_kv_heads")) if row.text("n_kv_heads") else heads,
        head_dim=hidden // heads,
        ffn=int(row.number("ffn_hidden")) if row.text("ffn_hidden") else 4 * hidden,
        vocab=int(row.number("vocab")) if row.text("vocab") else 51200,
        max_context=int(row.positive("seq_len")),
        layers=(Layer(mixer="full", mlp="dense"),) * layers,
        gated_mlp=gated,
        norm="rmsnorm" if gated else "layernorm",
        position="rope" if gated else "learned",
        tied_embeddings=not gated,
    )


def laid_out(row: Row, source: Source, model: Model, cluster: Cluster) -> tuple[Layout, Job]:
    """The layout and job of a row, with what its source leaves out."""
    row = _simumax(row) if source.words == "SimuMax" else row
    for column in ("tp", "pp", "micro_batch", "global_batch_seqs", "seq_len"):
        if not row.text(column):
            raise RowError(f"the row does not state {column}")

    def count(column: str, default: int) -> int:
        return int(row.positive(column)) if row.text(column) else default

    tp, pp, cp, ep = count("tp", 1), count("pp", 1), count("cp", 1), count("ep", 1)
    usual_vpp = source.vpp or max(1, model.num_layers // pp)
    group = tp * pp * cp
    dp = max(1, cluster.num_chips // group)
    recompute = _recompute(row.text("recompute"), source)
    words = row.text("recompute") + row.text("notes")
    sequence = (source.sequence_parallel or "sequence parallel" in words) and tp > 1
    layout = Layout(
        tp=tp,
        pp=pp,
        vpp=count("vpp", usual_vpp if pp > 1 else 1),
        cp=cp,
        ep=ep,
        dp=dp,
        zero=_zero(row.text("zero_stage")),
        micro_batch=count("micro_batch", 1),
        recompute=recompute,
        sequence_parallel=sequence,
    )
    lora = "lora" in (row.text("source") + row.text("model_name") + row.text("notes")).lower()
    job = Job(
        model=model,
        seq=count("seq_len", 0),
        global_batch=count("global_batch_seqs", 1),
        precision=Precision.named(_precision(row.text("precision") or source.precision, cluster.chip)),
        adapters_only=lora,
    )
    return layout, job


def _simumax(row: Row) -> Row:
    """SimuMax states the number of micro-batches of one sequence of 4,096 tokens in words."""
    found = re.search(r"(\d+) micro-batches", row.text("notes"))
    if found is None:
        return row
    dp = int(row.number("dp")) if row.text("dp") else 1
    known = {
        "micro_batch": "1",
        "seq_len": row.text("seq_len") or "4096",
        "global_batch_seqs": str(int(found[1]) * dp),
    }
    return Row(row.where, row.cells | known)


def _recompute(text: str, source: Source) -> Recompute:
    if text.startswith("full"):
        return "full"
    if text.startswith("selective"):
        return "selective"
    return "none" if text == "none" else source.recompute


def _zero(text: str) -> int:
    if "FSDP" in text or text.startswith("3"):
        return 3
    return int(text[0]) if text[:1].isdigit() else 0


def _precision(text: str, chip: Chip) -> str:
    folded = text.lower()
    if "fp4" in folded:
        return "nvfp4" if "fp4" in chip.peak_flop_per_s else "fp8"
    if "mx" in folded:
        return "mxfp8"
    return "fp8" if "fp8" in folded else "bf16"


def measured(row: Row, job: Job, cluster: Cluster) -> float:
    """The measured step [s]: as stated, from the token rate, or from a FLOP rate by its convention."""
    if row.text("iter_time_s"):
        return row.positive("iter_time_s")
    if row.text("tokens_per_s"):
        return job.global_batch * job.seq / row.positive("tokens_per_s")
    if row.text("tflops_per_gpu") and "hardware FLOPs incl. recompute" in row.text("flops_convention"):
        model = job.model
        tokens = float(job.global_batch * job.seq)
        width, depth = float(model.hidden), float(model.num_layers)
        extra = 1 + job.seq / (6 * width) + model.vocab / (16 * depth * width)
        flop = 96.0 * tokens * depth * width**2 * extra
        return flop / (row.positive("tflops_per_gpu") * 1e12 * cluster.num_chips)
    raise RowError("the row states neither a step time nor a token rate")


FORMATS = (
    Format(
        "training",
        frozenset(
            {
                "source",
                "hardware",
                "n_gpus",
                "model_name",
                "seq_len",
                "tp",
                "pp",
                "iter_time_s",
                "tokens_per_s",
            }
        ),
        predict_rows,
    ),
)

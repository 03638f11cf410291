"""The layout and the job of a row."""

from __future__ import annotations

from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.cluster.cluster import Cluster
from datahall.training.adapters.adapters import Adapters
from datahall.training.layout.layout import Layout
from datahall.training.step.step import Job
from datahall.validation.measurement import Row, RowError
from datahall.validation.training.sources import Source
from datahall.workload.memory.activation import Recompute
from datahall.workload.precision import Precision

# MLPerf Training, llama2_70b_lora reference: rank 16 beside the products of attention, 0.06 % of the parameters
MLPERF_ADAPTERS = Adapters(rank=16, targets="attention")


def laid_out(row: Row, source: Source, model: Model, cluster: Cluster) -> tuple[Layout, Job]:
    """The layout and job of a completed row."""
    _check_config(row)
    for column in ("tp", "pp", "micro_batch", "global_batch_seqs", "seq_len"):
        if not row.text(column):
            raise RowError(f"the row does not state {column}")

    def count(column: str, default: int) -> int:
        return int(row.positive(column)) if row.text(column) else default

    tp, pp, cp, ep = count("tp", 1), count("pp", 1), count("cp", 1), count("ep", 1)
    usual_vpp = source.vpp or max(1, model.num_layers // pp)
    group = tp * pp * cp
    words = row.text("recompute") + row.text("notes")
    layout = Layout(
        tp=tp,
        pp=pp,
        vpp=count("vpp", usual_vpp) if pp > 1 else 1,
        cp=cp,
        ep=ep,
        dp=max(1, cluster.num_chips // group),
        zero=_zero(row.text("zero_stage"), source),
        micro_batch=count("micro_batch", 1),
        recompute=_recompute(row.text("recompute"), source),
        split=_stated_split(row) or (_split(model.num_layers, pp) if row.text("tables_take_places") else ()),
        modules=tuple(row.text("modules").split()),
        sequence_parallel=(source.sequence_parallel or "sequence parallel" in words) and tp > 1,
    )
    lora = "lora" in (row.text("source") + row.text("model_name") + row.text("notes")).lower()
    job = Job(
        model=model,
        seq=count("seq_len", 0),
        global_batch=count("global_batch_seqs", 1),
        precision=Precision.named(_precision(_said_precision(row) or source.precision, cluster.chip)),
        adapters=MLPERF_ADAPTERS if lora else None,
        num_ahead=count("num_ahead", 0),
        narrow_head=bool(row.text("narrow_head")),
    )
    return layout, job


def _split(num_layers: int, pp: int) -> tuple[int, ...]:
    """Layers of each stage where the token table and the head take the place of one each; () where that is uneven.

    >>> _split(70, 12)
    (5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 5)
    """
    places, left = divmod(num_layers + 2, pp)
    if left or pp < 2:
        return ()
    return (places - 1, *(places,) * (pp - 2), places - 1)


def _stated_split(row: Row) -> tuple[int, ...]:
    """Layers of each stage as a document writes them, "4*15 2": fifteen stages of four, then one of two.

    >>> _stated_split(Row("", {"split": "4*15 2"}))[-3:]
    (4, 4, 2)
    """
    runs = (word.partition("*") for word in row.text("split").split())
    return tuple(int(each) for each, _, times in runs for _ in range(int(times or 1)))


def _said_precision(row: Row) -> str:
    """The precision a row states, or the name of the configuration it ran."""
    config = row.text("url_or_repo_path").partition(" ; config ")[2]
    return row.text("precision") or ("nvfp4" if "_fp4" in config else "")


def _check_config(row: Row) -> None:
    """A submitter's folder can hold the configuration of another vendor's system; its layout is not the row's."""
    config = row.text("url_or_repo_path").partition(" ; config ")[2]
    if "NVIDIA" in row.text("hardware") and "config_MI3" in config:
        raise RowError("the layout was read from the configuration of another vendor's system")


def _recompute(text: str, source: Source) -> Recompute:
    if text.startswith("full"):
        return "full"
    if text.startswith("selective"):
        return "selective"
    return "none" if text == "none" else source.recompute


def _zero(text: str, source: Source) -> int:
    if text.startswith("FSDP (opt+grad sharded"):  # Llama 3: parameters stay whole after forward
        return 2
    if "FSDP" in text or text.startswith("3"):
        return 3
    return int(text[0]) if text[:1].isdigit() else source.zero


def _precision(text: str, chip: Chip) -> str:
    folded = text.lower()
    if "fp4" in folded:
        return "nvfp4" if chip.multiplies("nvfp4") else "fp8"
    if "int8" in folded:
        return "int8"
    if "mx" in folded:
        return "mxfp8"
    if "fp8" in folded:
        return "fp8"
    return "fp16" if "fp16" in folded and "bf16" not in chip.peak_flop_per_s else "bf16"

"""What compiled kernels, fused attention and formats were measured to give: on one H200, and as others published it."""

from __future__ import annotations

import csv
from pathlib import Path

import msgspec
import pytest

from datahall.catalog import Catalog
from datahall.catalog.entries.model import Layer, Model
from datahall.cluster.cluster import cluster_of
from datahall.training.ladder.climb import Effect, effect_of
from datahall.training.ladder.setting import EAGER_HOST_S, Setting
from datahall.training.layout.layout import Layout
from datahall.training.step.attention import score_passes
from datahall.training.step.framework import framework
from datahall.training.step.step import Job
from datahall.workload.precision import Precision

SHELF = Catalog(user=False)
TABLE = Path(__file__).parents[2] / "calibration/h200/ladder.csv"
ROWS = list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()))


def shaped(layers: int, hidden: int, heads: int, **more: object) -> Model:
    usual: dict[str, object] = {
        "name": "shaped", "title": "", "family": "", "year": 0, "num_layers": layers, "hidden": hidden,
        "num_heads": heads, "num_kv_heads": heads, "head_dim": hidden // heads, "ffn": 4 * hidden, "vocab": 50257,
        "max_context": 8192, "layers": (Layer(mixer="full", mlp="dense"),) * layers,
    }  # fmt: skip
    return Model(**{**usual, **more})  # type: ignore[arg-type]


LLAMA = shaped(16, 2048, 16, num_kv_heads=8, vocab=32000)


def measured(row: dict[str, str]) -> Effect:
    """The step of a row: PyTorch, compiled or not, on one H200."""
    compiled, batch = row["compiled"] == "True", int(row["micro_batch"])
    kit = framework("compiled" if compiled else "eager")
    kit = msgspec.structs.replace(
        kit, flash_attention=row["fused_attention"] == "True", host_s=0.0 if compiled else EAGER_HOST_S
    )
    return effect_of(
        Setting(
            job=Job(
                model=LLAMA,
                seq=int(row["seq"]),
                global_batch=batch,
                precision=Precision.named(row["precision"]),
            ),
            cluster=cluster_of(SHELF.chip("h200-sxm"), 1),
            layout=Layout(micro_batch=batch, zero=0, sequence_parallel=False),
            framework=kit,
            schedule="1f1b",
            eager=not compiled,
        )
    )


def named(row: dict[str, str]) -> str:
    return "-".join(row[name] for name in ("precision", "compiled", "fused_attention", "micro_batch", "seq"))


@pytest.mark.parametrize(
    "row", [row for row in ROWS if int(row["seq"]) >= 2048 and row["precision"] != "tf32"], ids=named
)
def test_steps_of_an_h200(row: dict[str, str]) -> None:
    """In bf16 16 % short to 3 % over, the worst of them eager scores of 8,192 tokens; in fp32 10 to 14 % over."""
    found = measured(row)
    away = found.step_s / (float(row["step_ms"]) * 1e-3)
    assert (
        (1.0 if row["precision"] == "fp32" else 0.83) < away < (1.15 if row["precision"] == "fp32" else 1.04)
    )


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_peaks_of_an_h200(row: dict[str, str]) -> None:
    """What its tensors take, which the allocator logged: 7 % short to 2 % over, scores in 32 bits included."""
    found = measured(row)
    books, job = found.setting.books, found.setting.job
    slack = (found.memory_bytes - books.context_bytes) / (1.0 + books.slack_fraction)
    assert 0.92 < slack / (float(row["peak_GiB"]) * 2.0**30) < 1.03, job.seq


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row["compiled"] == "False" and int(row["seq"]) < 2048], ids=named
)
def test_short_eager_steps_are_held_up_by_the_host(row: dict[str, str]) -> None:
    found = measured(row)
    assert 0.6 < found.step_s / (float(row["step_ms"]) * 1e-3) < 1.15
    assert found.run.parts.beside_s > found.run.parts.kernels_s


def test_scores_move_as_the_kernels_are() -> None:
    fused, lean, eager = (
        msgspec.structs.replace(framework("nemo"), fusion=style) for style in ("fused", "lean", "eager")
    )
    assert score_passes(fused, 2.0)[:2] == score_passes(fused, 4.0)[:2] == (5.0, 8.0)
    assert score_passes(lean, 2.0)[:2] == (6.5, 10.0)
    assert score_passes(eager, 2.0)[:2] == (16.0, 18.0)
    assert score_passes(eager, 4.0)[:2] == (8.0, 9.0)


# FlashAttention-2, table 1 (Dao, 2023-07): TFLOP/s of 8 A100 without it and with the first FlashAttention
FLASH = {
    "1.3B at 2k": (24, 2048, 16, 2048, 189 / 142),
    "1.3B at 8k": (24, 2048, 16, 8192, 170 / 72),
    "2.7B at 2k": (32, 2560, 20, 2048, 189 / 149),
    "2.7B at 8k": (32, 2560, 20, 8192, 175 / 80),
}


@pytest.mark.parametrize("name", FLASH)
def test_flash_attention_gives_what_was_published(name: str) -> None:
    """1 % short at 2k tokens, 11 and 14 % short at 8k."""
    layers, hidden, heads, seq, gain = FLASH[name]
    model = shaped(layers, hidden, heads, gated_mlp=False, norm="layernorm", position="learned")
    kit = framework("megatron-2022")

    def step(flash: bool) -> float:
        setting = Setting(
            job=Job(model=model, seq=seq, global_batch=2**20 // seq),
            cluster=cluster_of(SHELF.chip("a100-sxm-80gb"), 8),
            layout=Layout(dp=8, micro_batch=4096 // seq or 1, zero=0),
            framework=msgspec.structs.replace(kit, flash_attention=flash),
            schedule="1f1b",
        )
        return effect_of(setting).step_s

    assert 0.85 < step(False) / step(True) / gain < 1.03


def test_compiled_kernels_and_fp8_give_what_torchtitan_published() -> None:
    """Llama 3.1 8B on 8 H100 by FSDP (torchtitan, 2024-12): 5,762, 6,667 and 8,532 tokens/s a chip."""
    kit = framework("torchtitan")

    def tokens_per_s(fusion: str, precision: str) -> float:
        job = Job(
            model=SHELF.model("llama-3.1-8b"), seq=8192, global_batch=16, precision=Precision.named(precision)
        )
        layout = Layout(dp=8, micro_batch=2, zero=3, recompute="selective")
        chips = cluster_of(SHELF.chip("h100-sxm"), 8)
        setting = Setting(
            job=job, cluster=chips, layout=layout, schedule="1f1b",
            framework=msgspec.structs.replace(kit, fusion=fusion), eager=fusion == "eager",
        )  # fmt: skip
        return effect_of(setting).run.chip_tokens_per_s

    eager, compiled, narrow = (
        tokens_per_s(*one) for one in (("eager", "bf16"), ("fused", "bf16"), ("fused", "fp8"))
    )
    assert compiled / eager == pytest.approx(6667 / 5762, rel=0.03)
    assert narrow / compiled == pytest.approx(8532 / 6667, rel=0.03)

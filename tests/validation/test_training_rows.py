"""How a row of a published training run is read: what it states, what its source states, and what follows."""

from __future__ import annotations

import pytest

from datahall.catalog import load
from datahall.validation.measurement import Row, RowError
from datahall.validation.scorecard import Unsupported
from datahall.validation.training import SOURCES, predict_rows, understood
from datahall.validation.training.completion import completed, documents
from datahall.validation.training.measured import measured, measured_memory
from datahall.validation.training.sources import source_of
from datahall.validation.training.tpu import on_tpu, slice_shape

LORA = {
    "source": "MLPerf Training v5.0 (llama2_70b_lora)", "hardware": "NVIDIA H200-SXM5-141GB", "n_gpus": "8",
    "model_name": "Llama-2-70B LoRA fine-tune", "seq_len": "8192", "global_batch_seqs": "8", "iter_time_s": "3.4",
}  # fmt: skip


def complete(**cells: str) -> Row:
    row = Row("x.csv:2", cells)
    return completed(row, source_of(row))


def test_a_configuration_s_name_gives_the_layout() -> None:
    path = "mlcommons:x ; config config_DGXH200_1x8x2xtp2pp1cp1.sh"
    row = complete(**LORA, url_or_repo_path=path, notes="grad-accum 2")
    assert [row.text(name) for name in ("tp", "pp", "cp", "micro_batch")] == ["2", "1", "1", "1"]


def test_the_configuration_of_another_size_gives_nothing() -> None:
    path = "mlcommons:x ; config config_DGXH200_64x8x2xtp4pp1cp2.sh (and variants)"
    assert complete(**LORA, url_or_repo_path=path).text("tp") == ""


def test_what_a_row_states_stands() -> None:
    path = "mlcommons:x ; config config_C885A_1x8x1xtp1pp1cp1.sh"
    assert complete(**LORA, url_or_repo_path=path, tp="4").text("tp") == "4"


def test_one_sequence_per_chip_and_step_leaves_no_chip_for_model_parallelism() -> None:
    alone = complete(**LORA, notes="grad-accum 1")
    assert [alone.text(name) for name in ("tp", "pp", "cp", "micro_batch")] == ["1", "1", "1", "1"]
    assert complete(**LORA, notes="grad-accum 2").text("tp") == ""


@pytest.mark.parametrize(("rate", "length"), [("116632", "8192"), ("100000", "")])
def test_the_sequence_length_follows_from_the_token_rate_where_it_is_whole(rate: str, length: str) -> None:
    cells = {"source": "NVIDIA dgxc-benchmarking v24.11.1", "tokens_per_s": rate, "iter_time_s": "8.85"}
    assert complete(**cells, global_batch_seqs="126").text("seq_len") == length


def test_documents_name_a_source_that_exists_and_where_they_were_read() -> None:
    for document in documents():
        assert document.read_in
        assert any(one.words in document.source or document.source in one.words for one in SOURCES), (
            document.source
        )


def test_sizes_of_bloom_s_trials_are_those_of_its_tables() -> None:
    row = Row(
        "x.csv:2",
        {
            "source": "BigScience BLOOM-176B topology study", "hardware": "A100-80GB", "n_gpus": "384",
            "model_name": "GPT-178B", "n_heads": "64", "seq_len": "2048", "tp": "4", "pp": "12", "micro_batch": "2",
            "global_batch_seqs": "2048", "iter_time_s": "104", "recompute": "full", "notes": "date 02-28",
        },
    )  # fmt: skip
    model = understood(row).job.model
    assert (model.num_layers, model.hidden, model.num_heads, model.vocab) == (82, 13312, 64, 250880)


MAXTEXT = {
    "source": "MaxText published performance", "hardware": "TPU v5p (2x v5p-512)", "n_gpus": "512",
    "model_name": "MaxText-128B", "precision": "bf16", "tflops_per_gpu": "274",
}  # fmt: skip


def test_a_tpu_run_is_sharded_over_the_axes_of_its_slices() -> None:
    run = understood(Row("x.csv:2", MAXTEXT))
    assert run.cluster.system.torus == (4, 8, 8)
    assert (run.layout.tp, run.layout.dp, run.layout.zero, run.layout.micro_batch) == (8, 64, 3, 8)
    assert run.job.global_batch == 512


def test_a_flop_rate_becomes_a_step_by_the_source_s_convention() -> None:
    """MaxText counts all pairs of tokens: 6·N + 12·L·n·d·s a token, of N weights that tokens are multiplied by."""
    run = understood(Row("x.csv:2", MAXTEXT))
    model = run.job.model
    weights = 64 * (4 * 8192 * 128 * 128 + 3 * 8192 * 57344) + 8192 * 32000
    each = 6 * weights + 12 * 64 * 128 * 128 * 2048
    expected = each * 512 * 2048 / (274e12 * 512)
    assert model.ffn == 57344
    assert measured(run.row, run.job, run.cluster, run.source) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("hardware", "chips", "sides"),
    [("TPU v5e (4x v5e-256)", 1024, (16, 16)), ("TPU v6e", 512, (16, 16)), ("TPU v4", 6144, (12, 16, 16))],
)
def test_slices_as_stated_or_the_largest(hardware: str, chips: int, sides: tuple[int, ...]) -> None:
    chip = load().chip(f"tpu-{hardware.split()[1]}")
    assert slice_shape(Row("x", {"hardware": hardware}), chip, chips) == sides


def test_a_device_is_half_of_an_ironwood_chip() -> None:
    cells = {"n_gpus": "64", "tp": "1", "seq_len": "8192", "device_batch": "2"}
    row = on_tpu(Row("x", cells), load().chip("tpu-v7x"))
    assert (row.text("global_batch_seqs"), row.text("micro_batch")) == ("256", "4")


@pytest.mark.parametrize(
    ("notes", "peak_bytes"),
    [
        ("4 micro-batches; real alloc 60.68 GiB; SimuMax predicted 1 ms", 60.68 * 2**30),
        ("grad-accum 1; max_memory_usage 92.1 GB logged", 92.1e9),
        ("max mem GB; date 02-21", 0.0),
    ],
)
def test_memory_is_read_in_the_unit_it_is_stated_in(notes: str, peak_bytes: float) -> None:
    assert measured_memory(Row("x", {"notes": notes})) == pytest.approx(peak_bytes)


def test_a_time_to_train_is_no_step_time() -> None:
    row = Row("x.csv:2", LORA | {"iter_time_s": "", "notes": "step time not derivable, time-to-train only"})
    assert list(predict_rows([row])) == [
        Unsupported("the row states a time to train and no step time", "x.csv:2")
    ]


def test_an_unknown_source_is_a_reason() -> None:
    with pytest.raises(RowError, match="no framework is known"):
        source_of(Row("x", {"source": "somebody's blog"}))

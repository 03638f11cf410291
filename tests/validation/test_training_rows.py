"""How a row of a published training run is read: what it states, what its source states, and what follows."""

from __future__ import annotations

import msgspec
import pytest

from datahall.catalog import load
from datahall.cluster.cluster import cluster_of
from datahall.training.layout.layout import Layout
from datahall.training.step.step import Job
from datahall.validation.measurement import Row, RowError
from datahall.validation.scorecard import Fitted, Prediction, Unsupported
from datahall.validation.training import SOURCES, predict_rows, understood
from datahall.validation.training.completion import completed, documents
from datahall.validation.training.layouts import laid_out
from datahall.validation.training.measured import measured, measured_memory
from datahall.validation.training.sources import source_of
from datahall.validation.training.tpu import on_tpu, slice_shape
from datahall.workload.precision import Precision

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


STATED = {"source": "NVIDIA NeMo 24.07 performance doc", "n_gpus": "16", "seq_len": "4096"}


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        # 16 chips in groups of tp 2 · pp 2: four ranks; 32 sequences in two steps of accumulation are four each
        ({"tp": "2", "pp": "2", "global_batch_seqs": "32", "notes": "grad-accum 2"}, {"micro_batch": "4"}),
        ({"tp": "2", "pp": "2", "cp": "2", "global_batch_seqs": "32", "notes": "grad-accum 2"}, {"micro_batch": "8"}),
        ({"tp": "2", "pp": "2", "global_batch_seqs": "6", "notes": "grad-accum 2"}, {"micro_batch": "1"}),
        # a local batch of 3 on four ranks; a pipeline cuts it into single sequences
        ({"tp": "4", "pp": "1", "notes": "local batch 3"}, {"micro_batch": "3", "global_batch_seqs": "12"}),
        ({"tp": "2", "pp": "2", "notes": "local batch 3"}, {"micro_batch": "1", "global_batch_seqs": "12"}),
        ({"tp": "2", "pp": "2", "notes": "5 micro-batches"}, {"micro_batch": "1", "global_batch_seqs": "20"}),
        ({"tp": "2", "micro_batch": "9", "notes": "5 micro-batches"}, {"micro_batch": "9", "global_batch_seqs": "40"}),
        # nothing is known of the group: nothing follows
        ({"notes": "local batch 3"}, {"micro_batch": "", "global_batch_seqs": ""}),
        ({"notes": "model-parallel size (TP*PP)=8"}, {"model_parallel": "8"}),
        ({"notes": "1,234.5 tokens/s/GPU"}, {"tokens_per_s_per_chip": "1234.5"}),
        ({"global_batch_seqs": "32", "notes": "grad-accum 2"}, {"tp": "1", "dp": "16", "micro_batch": "1"}),
        ({"global_batch_seqs": "30", "notes": "grad-accum 2"}, {"tp": "", "dp": ""}),
    ],
)  # fmt: skip
def test_batches_follow_from_one_another(cells: dict[str, str], found: dict[str, str]) -> None:
    row = complete(**(STATED | cells))
    assert {name: row.text(name) for name in found} == found


@pytest.mark.parametrize(
    ("rate", "length"), [("4056", "4096"), ("4136", "4096"), ("4140", ""), ("4052", ""), ("400", "")]
)
def test_a_length_is_whole_to_within_one_per_cent(rate: str, length: str) -> None:
    """A sequence a second: as many tokens as the rate says."""
    cells = {"source": "NVIDIA NeMo 24.07 performance doc", "iter_time_s": "2", "global_batch_seqs": "2"}
    assert complete(**cells, tokens_per_s=rate).text("seq_len") == length


def step_of(**cells: str) -> float:
    """The measured step of a run of 96 sequences of 2,048 tokens through GPT-3 on 64 chips."""
    model = load().model("gpt-3-175b")
    job = Job(model=model, seq=2048, global_batch=96)
    row = Row("x", cells)
    source = next(one for one in SOURCES if one.words == cells.get("words", "Megatron-LM README H100"))
    return measured(row, job, cluster_of(load().chip("h100-sxm"), 64), source)


def test_a_step_is_read_as_it_is_stated() -> None:
    tokens = 96 * 2048
    assert step_of(iter_time_s="7.5", tokens_per_s="1") == 7.5
    assert step_of(tokens_per_s="1000") == tokens / 1000
    assert step_of(tokens_per_s_per_chip="1000") == pytest.approx(tokens / 64_000)
    # Narayanan et al. (2021): 96·l·h²·(1 + s/6h + V/16lh) a token with recomputation
    each = 96 * 96 * 12288**2 * (1 + 2048 / (6 * 12288) + 51200 / (16 * 96 * 12288))
    found = step_of(tflops_per_gpu="140", flops_convention="hardware FLOPs incl. recompute")
    assert found == pytest.approx(each * tokens / (140e12 * 64), rel=1e-3)
    model_flop = step_of(tflops_per_gpu="140")
    assert model_flop == pytest.approx(0.75 * found, rel=0.01)  # three of four forwards, and the head
    peak = load().chip("h100-sxm").peak("bf16")
    assert step_of(mfu_pct="40") == pytest.approx(model_flop * 140e12 / (0.4 * peak))
    with pytest.raises(RowError, match="neither a step time nor a token rate"):
        step_of()
    with pytest.raises(RowError, match="neither a step time nor a token rate"):
        step_of(tflops_per_gpu="140", words="SimuMax")  # counts in a convention that nobody stated


@pytest.mark.parametrize(
    ("hardware", "chips", "said"),
    [
        ("TPU v5p (3x v5p-512)", 512, "not 3 equal slices"),
        ("TPU v5e", 24, "no slice of tpu-v5e has 24 chips"),
    ],
)
def test_slices_that_cannot_be(hardware: str, chips: int, said: str) -> None:
    with pytest.raises(RowError, match=said):
        slice_shape(Row("x", {"hardware": hardware}), load().chip(f"tpu-{hardware.split()[1]}"), chips)


@pytest.mark.parametrize(
    ("cells", "batch", "micro"),
    [
        ({"device_batch": "3"}, "192", "6"),
        ({"tokens_per_step": "1048576"}, "128", "4"),
        ({"global_batch_seqs": "16"}, "16", "1"),
    ],
)
def test_batches_of_tpu_runs(cells: dict[str, str], batch: str, micro: str) -> None:
    """64 chips with tp 2: 32 ranks."""
    row = on_tpu(Row("x", {"n_gpus": "64", "tp": "2", "seq_len": "8192"} | cells), load().chip("tpu-v5p"))
    assert (row.text("global_batch_seqs"), row.text("micro_batch"), row.text("zero_stage")) == (
        batch,
        micro,
        "3",
    )


@pytest.mark.parametrize(
    ("left_out", "said"),
    [("tp", "state tp"), ("seq_len", "state seq_len"), ("device_batch", "state a batch")],
)
def test_tpu_runs_that_leave_something_out(left_out: str, said: str) -> None:
    cells = {"n_gpus": "64", "tp": "2", "seq_len": "8192", "device_batch": "3"}
    del cells[left_out]
    with pytest.raises(RowError, match=said):
        on_tpu(Row("x", cells), load().chip("tpu-v5p"))


LAID_OUT = {
    "source": "vTrain ground truth (multi-node)", "tp": "2", "pp": "4", "micro_batch": "3", "global_batch_seqs": "48",
    "seq_len": "2048",
}  # fmt: skip


def laid(words: str = "vTrain", **cells: str) -> tuple[Layout, Job]:
    row = Row("x", LAID_OUT | cells)
    source = next(one for one in SOURCES if one.words == words)
    return laid_out(row, source, load().model("gpt-3-175b"), cluster_of(load().chip("h100-sxm"), 64))


def test_a_layout_is_read_from_its_row() -> None:
    layout, job = laid()
    assert layout == Layout(tp=2, pp=4, dp=8, zero=0, micro_batch=3, sequence_parallel=False)
    assert (job.seq, job.global_batch, job.precision.compute, job.adapters is not None) == (
        2048,
        48,
        "bf16",
        False,
    )


@pytest.mark.parametrize(
    ("words", "cells", "fields"),
    [
        ("vTrain", {"cp": "2"}, {"cp": 2, "dp": 4}),
        ("vTrain", {"ep": "2"}, {"ep": 2}),
        ("vTrain", {"vpp": "3"}, {"vpp": 3}),
        ("dgxc", {}, {"vpp": 24, "zero": 1, "sequence_parallel": True}),  # one layer to a virtual stage
        ("dgxc", {"pp": "1"}, {"pp": 1, "vpp": 1, "dp": 32, "zero": 1, "sequence_parallel": True}),
        ("dgxc", {"tp": "1"}, {"tp": 1, "vpp": 24, "dp": 16, "zero": 1}),  # nothing to split over one chip
        ("vTrain", {"notes": "with sequence parallel"}, {"sequence_parallel": True}),
        ("vTrain", {"zero_stage": "FSDP (opt+grad sharded)"}, {"zero": 2}),
        ("vTrain", {"zero_stage": "FSDP"}, {"zero": 3}),
        ("vTrain", {"zero_stage": "2 (DeepSpeed)"}, {"zero": 2}),
        ("vTrain", {"recompute": "full (uniform)"}, {"recompute": "full"}),
        ("vTrain", {"recompute": "selective"}, {"recompute": "selective"}),
        ("MT-NLG", {"recompute": "none"}, {"recompute": "none"}),
        ("MT-NLG", {}, {"recompute": "full"}),
        ("vTrain", {"split": "23*2 25*2"}, {"split": (23, 23, 25, 25)}),
        ("vTrain", {"tables_take_places": "1"}, {}),  # 98 places do not divide by four
        ("vTrain", {"tables_take_places": "1", "pp": "7", "tp": "1"},
         {"pp": 7, "tp": 1, "dp": 9, "split": (13, 14, 14, 14, 14, 14, 13)}),
    ],
)  # fmt: skip
def test_each_column_of_a_layout(words: str, cells: dict[str, str], fields: dict[str, object]) -> None:
    plain = Layout(tp=2, pp=4, dp=8, zero=0, micro_batch=3, sequence_parallel=False)
    assert laid(words, **cells)[0] == msgspec.structs.replace(plain, **fields)


@pytest.mark.parametrize(
    ("stated", "chip_formats"),
    [("FP8 hybrid", "fp8"), ("MXFP8", "mxfp8"), ("int8", "int8"), ("NVFP4", "fp8"), ("fp16", "bf16")],
)
def test_formats_are_those_that_the_chip_has(stated: str, chip_formats: str) -> None:
    """An H100 multiplies no FP4, and runs stated in fp16 on chips with bf16 are taken as bf16."""
    assert laid(precision=stated)[1].precision == Precision.named(chip_formats)


def test_adapters_are_known_by_name() -> None:
    assert laid(model_name="Llama-2-70B LoRA fine-tune")[1].adapters is not None


@pytest.mark.parametrize("column", ["tp", "pp", "micro_batch", "global_batch_seqs", "seq_len"])
def test_a_row_without_a_column_that_decides_says_which(column: str) -> None:
    with pytest.raises(RowError, match=f"does not state {column}"):
        laid(**{column: ""})


def test_the_configuration_of_another_vendor_is_refused() -> None:
    with pytest.raises(RowError, match="another vendor"):
        laid(hardware="NVIDIA H200", url_or_repo_path="x ; config config_MI300X_1x8.sh")


def test_a_prediction_is_about_the_row_it_came_from() -> None:
    """GPT-3 22B on eight chips, as Korthikanti et al. measured it: step 1.10 s with selective recomputation."""
    cells = {
        "source": "Korthikanti et al. 2022 (selective recompute) Table 5", "hardware": "A100-80GB", "n_gpus": "8",
        "model_name": "GPT-22B", "n_layers": "48", "hidden": "6144", "n_heads": "64", "vocab": "51200",
        "seq_len": "2048", "tp": "8", "pp": "1", "micro_batch": "4", "global_batch_seqs": "4", "iter_time_s": "1.10",
        "recompute": "selective", "notes": "with sequence parallel; peak mem 40 GiB",
    }  # fmt: skip
    step, memory = predict_rows([Row("x.csv:7", cells)])
    assert isinstance(step, Prediction)
    assert isinstance(memory, Prediction)
    assert (step.measured, step.unit, step.where, step.metric) == (1.10, "s", "x.csv:7", "step time")
    assert step.predicted == pytest.approx(1.10, rel=0.1)
    assert step.low < step.predicted < step.high
    assert (memory.measured, memory.unit, memory.choice) == (40 * 2**30, "bytes", "")
    assert "8" in step.choice
    marked = list(predict_rows([Row("x.csv:7", cells | {"fitted": "1"})]))
    assert marked == [Fitted("x.csv:7", "step time"), Fitted("x.csv:7", "peak memory")]

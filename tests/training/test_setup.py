"""From what somebody asks to a layout, a job and a machine: what stands over what, and what is usual."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster, cluster_of
from datahall.errors import ScenarioError, spelled
from datahall.scenario.read import read_names
from datahall.scenario.sections.training import TrainingLayout
from datahall.training.early import check_run
from datahall.training.layout.asked import layout_of, named_layout, usual_batch
from datahall.training.layout.file import read_layout
from datahall.training.layout.layout import Layout
from datahall.training.setup import (
    Setup,
    built,
    job_of,
    machine_of,
    of_any_size,
    setup_of,
    torus_failure_fraction,
)

SHELF = Catalog(user=False)
LLAMA = SHELF.model("llama-3.1-8b")


def slowed_fraction(**given: object) -> float | None:
    """How much longer a step is said to take for what has failed."""
    asked = {"model": "qwen3-0.6b", "chips": 64, "global_batch": 64, **given}
    scenario = read_names(form_of("simulate train"), asked, SHELF)  # type: ignore[arg-type]
    found = setup_of(scenario)
    return torus_failure_fraction(scenario, found.job, found.cluster, found.layout, found.framework)


def setup(model: str = "llama-3.1-8b", **given: object) -> Setup:
    form = form_of("show memory")
    scenario = read_names(form, {"model": model, **given}, SHELF)  # type: ignore[arg-type]
    check_run(scenario)
    return setup_of(scenario)


def test_replicas_take_the_chips_left_over() -> None:
    assert layout_of(TrainingLayout(tp=4, pp=2), LLAMA, num_chips=64).dp == 8
    assert layout_of(TrainingLayout(tp=4, dp=2), LLAMA, num_chips=64).dp == 2
    assert layout_of(TrainingLayout(tp=4), LLAMA).num_chips == 4


def test_without_a_number_of_chips_there_are_enough_for_the_experts() -> None:
    assert layout_of(TrainingLayout(pp=16, ep=64), SHELF.model("deepseek-v3")).num_chips == 1024


def test_what_is_said_stands_over_the_file_and_the_file_over_what_is_usual(tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_text(
        "--tensor-model-parallel-size 8\n--micro-batch-size 2\n--seq-length 2048\n--global-batch-size 96\n"
        "--recompute-granularity selective\n--recompute-modules mlp\n"
    )
    found = setup(layout=str(file), chips=16, micro_batch=1, recompute="none")
    assert (found.layout.tp, found.layout.micro_batch, found.layout.dp) == (8, 1, 2)
    assert (found.job.seq, found.job.global_batch) == (2048, 96)
    assert (found.layout.recompute, found.layout.modules) == ("none", ())
    other = setup(layout=str(file), chips=16, seq=4096, global_batch=64, zero=3)
    assert (other.job.seq, other.job.global_batch, other.layout.zero) == (4096, 64, 3)
    assert other.layout.modules == ("mlp",)


def test_accumulation_of_a_file_becomes_a_global_batch(tmp_path: Path) -> None:
    file = tmp_path / "ds.json"
    file.write_text('{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 3}')
    assert setup(layout=str(file), chips=4).job.global_batch == 2 * 3 * 4
    assert read_layout(file).accumulation == 3


@given(st.integers(1, 300), st.integers(1, 8), st.sampled_from([1, 2, 4]), st.integers(1, 9))
def test_the_usual_batch_divides(dp: int, micro: int, vpp: int, pp: int) -> None:
    layout = Layout(dp=dp, micro_batch=micro, vpp=vpp, pp=pp)
    batch = usual_batch(layout.num_chips, layout)
    least = max(1024, layout.num_chips // 16)
    assert batch >= least
    assert batch % (dp * micro) == 0
    assert vpp == 1 or batch // (dp * micro) % pp == 0
    unit = dp * micro * (pp if vpp > 1 else 1)
    assert batch - unit < least


def test_plan_and_layout_have_the_same_defaults() -> None:
    form = form_of("plan train")
    planned = job_of(read_names(form, {"model": "llama-3.1-8b", "tokens": "1T", "chips": 64}, SHELF))
    assert planned == setup(chips=64).job


def test_modules_are_selective_recomputation() -> None:
    assert named_layout(Layout(), TrainingLayout(modules=("mlp",))).recompute == "selective"
    kept = named_layout(Layout(recompute="selective", modules=("mlp",)), TrainingLayout(tp=2))
    assert kept.modules == ("mlp",)
    assert named_layout(kept, TrainingLayout(recompute="full")).modules == ()


def test_the_schedule_follows_from_virtual_stages() -> None:
    assert setup(chips=8, pp=4).schedule == "1f1b"
    assert setup(chips=8, pp=4, vpp=2).schedule == "interleaved"
    with pytest.raises(ScenarioError, match="one chunk, not 2"):
        setup(chips=8, pp=4, vpp=2, schedule="zb")


def test_a_machine_has_its_wiring_at_any_size() -> None:
    form = form_of("show memory")
    machine = machine_of(
        read_names(form, {"model": "llama-3.1-8b", "nic": "25 GB/s", "domain": 4, "chips": 64}, SHELF)
    )
    for count in (8, 64, 4096):
        cluster = machine(count)
        assert (cluster.num_chips, cluster.num_domain) == (count, 4)
        assert cluster.system.nic_bytes_per_s == 25e9
        assert cluster.host.memory_bytes > 0


def test_sizes_that_a_wiring_does_not_go_with_are_passed_over() -> None:
    def in_racks(num_chips: int) -> Cluster:
        if num_chips % 8:
            raise ScenarioError("whole racks only", field="chips")
        return cluster_of(SHELF.chip("h100-sxm"), num_chips)

    assert built(in_racks, 4) is None
    assert of_any_size(in_racks).num_chips == 8

    def never(num_chips: int) -> Cluster:
        raise ScenarioError(f"not {num_chips}", field="on")

    with pytest.raises(ScenarioError, match="not 1"):
        of_any_size(never)


def test_a_batch_that_nobody_stated_is_in_no_ones_way() -> None:
    with pytest.raises(ScenarioError, match="ep=3 does not divide") as caught:
        setup("mixtral-8x7b", chips=48, ep=3)
    assert spelled(caught.value.hint) == "nearest: ep=2 or ep=4"
    with pytest.raises(ScenarioError) as caught:
        setup("mixtral-8x7b", chips=48, ep=3, global_batch=16)
    assert "with a global_batch that divides" in spelled(caught.value.hint)


@pytest.mark.parametrize("stage", [0, 1, 3])
def test_replicas_that_share_nothing_are_a_choice_too(stage: int) -> None:
    """Stage 0 of ZeRO is what a run is computed with, though it is nothing; one replica has nobody to share with."""
    assert setup(chips=8, zero=stage, global_batch=8).used["zero"] == stage
    assert "zero" not in setup(chips=8, tp=8, global_batch=8).used
    without = setup(chips=8, zero=stage, global_batch=8).used
    assert not {"shard", "offload", "split", "compression", "schedule"} & set(without)


def test_what_has_failed_of_a_torus_makes_a_step_longer_and_elsewhere_is_not_asked() -> None:
    """Of a switched network the step itself tells; of a torus that is whole there is nothing to tell."""
    torus = {
        "model": "qwen3-30b-a3b",
        "on": "torus",
        "chip": "tpu-v5p",
        "ep": 64,
    }  # all to all, over every link
    assert slowed_fraction(**torus) is None
    assert slowed_fraction(on="fat-tree", chip="h100-sxm", failure={"nics": "0"}) is None
    few, many = (slowed_fraction(**torus, failure={"links": links}) for links in ("0-3", "0-15"))
    assert few is not None
    assert many is not None
    assert 0.0 < few < many

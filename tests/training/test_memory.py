"""Peak memory: logged runs, hand calculation, and what must hold for every layout."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.catalog import Catalog
from datahall.catalog.entries.model import Model
from datahall.cluster.cluster import cluster_of
from datahall.errors import UnknownNameError
from datahall.training.adapters.adapters import Adapters
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.layout.space import Options, layout_space
from datahall.training.memory.bookkeeping import BOOKS, bookkeeping_of
from datahall.training.memory.peak import (
    PARTS,
    chip_memory_bytes,
    least_state_bytes,
    peak_memory,
    stage_memories,
)
from datahall.training.memory.remedy import why_not
from datahall.training.step.framework import framework, frameworks
from datahall.training.step.stage import in_flight, stage_layers, stage_runs
from datahall.training.step.step import Job
from datahall.workload.memory.recipe import RECIPES
from datahall.workload.precision import Precision

SHELF = Catalog(user=False)
B200, H100 = SHELF.chip("b200-sxm"), SHELF.chip("h100-sxm")
LLAMA = SHELF.model("llama-3.1-8b")
GIB = 2.0**30


def reduced(name: str, layers: int) -> Model:
    """A model with fewer layers, as benchmarks on one node have them: of several dense ones a single one."""
    model = SHELF.model(name)
    kinds = (model.layers[0], *(model.layers[-1],) * (layers - 1))
    return msgspec.structs.replace(model, num_layers=layers, layers=kinds)


def wide_405b() -> Model:
    """The benchmark's model of that name has 16 KV heads; Meta's has 8."""
    return msgspec.structs.replace(reduced("llama-3.1-405b", 4), num_kv_heads=16)


# torch.cuda.max_memory_allocated, the highest of all ranks [GiB]: SimuMax v1.2, docs/b200/b200_release_v1.2_summary;
# Megatron-LM 0.14, Transformer Engine 2.11, fused cross-entropy, distributed optimizer, one sequence a micro-batch
LOGGED = [
    (reduced("llama-3-70b", 12), Layout(tp=1, pp=2, dp=4), 4096, 66.55),
    (reduced("llama-3-70b", 12), Layout(tp=2, dp=4), 4096, 60.68),
    (reduced("llama-3-70b", 12), Layout(tp=4, dp=2), 4096, 39.07),
    (reduced("llama-3-70b", 12), Layout(tp=8), 4096, 28.29),
    (reduced("llama-3-70b", 12), Layout(tp=2, cp=4), 32768, 68.43),
    (reduced("llama-3-70b", 12), Layout(tp=1, cp=8), 32768, 104.51),
    (reduced("llama-3-70b", 12), Layout(tp=2, cp=4), 131072, 112.67),
    (reduced("llama-3-70b", 12), Layout(tp=1, cp=8), 131072, 147.99),
    (wide_405b(), Layout(tp=1, pp=2, dp=4), 4096, 87.08),
    (wide_405b(), Layout(tp=2, dp=4), 4096, 81.59),
    (wide_405b(), Layout(tp=4, dp=2), 4096, 52.89),
    (wide_405b(), Layout(tp=8), 4096, 38.57),
    (wide_405b(), Layout(tp=2, cp=4), 32768, 87.03),
    (wide_405b(), Layout(tp=1, cp=8), 32768, 139.22),
    (wide_405b(), Layout(tp=2, cp=4), 131072, 118.13),
    (reduced("deepseek-v3", 4), Layout(tp=1, ep=8, dp=8), 4096, 104.30),
    (reduced("deepseek-v3", 4), Layout(tp=1, ep=4, pp=2, dp=4), 4096, 114.00),
    (reduced("deepseek-v2", 4), Layout(tp=1, ep=8, dp=8), 4096, 45.63),
    (reduced("deepseek-v2", 4), Layout(tp=1, ep=4, pp=2, dp=4), 4096, 44.70),
]


def error(model: Model, layout: Layout, seq: int, measured_gib: float) -> float:
    job = Job(model=model, seq=seq, global_batch=4 * layout.dp)
    found = peak_memory(job, B200, Space.of(layout), BOOKS["nemo"])
    return float(found.allocated_bytes[0]) / (measured_gib * GIB) - 1


@pytest.mark.parametrize(("model", "layout", "seq", "measured_gib"), LOGGED)
def test_logged_peaks_are_met_within_one_percent(
    model: Model, layout: Layout, seq: int, measured_gib: float
) -> None:
    assert abs(error(model, layout, seq, measured_gib)) < 0.01


def test_the_mean_error_beats_the_best_peer() -> None:
    errors = [abs(error(*row)) for row in LOGGED]
    assert np.mean(errors) < 0.002  # SimuMax itself: 0.0046


def test_each_stage_meets_its_own_log() -> None:
    job = Job(model=reduced("llama-3-70b", 12), seq=4096, global_batch=16)
    stages = stage_memories(job, B200, Layout(pp=2, dp=4), BOOKS["nemo"])
    found = [float(stage.memory.allocated_bytes[0]) / 2**20 for stage in stages]
    assert found == pytest.approx([68149, 64479], rel=0.002)


# MLPerf Training v5.0, Llama 3.1 405B, FP8, tp8 pp8 vpp8 cp2 on H100: "max_memory_usage" [GB]
@pytest.mark.parametrize(("dp", "batch", "measured"), [(64, 1536, 50.9e9), (19, 1216, 52.2e9)])
def test_a_run_of_thousands_of_chips_is_met_within_four_percent(dp: int, batch: int, measured: float) -> None:
    job = Job(
        model=SHELF.model("llama-3.1-405b"), seq=8192, global_batch=batch, precision=Precision.named("fp8")
    )
    layout = Layout(tp=8, pp=8, vpp=8, cp=2, dp=dp)
    found = peak_memory(job, H100, Space.of(layout), BOOKS["mlperf"])
    assert float(found.allocated_bytes[0]) == pytest.approx(measured, rel=0.04)


def test_state_by_hand() -> None:
    """8.03 B parameters on one chip: 2 + 4 + 12 bytes each."""
    job = Job(model=LLAMA, seq=1024, global_batch=8)
    found = peak_memory(job, H100, Space.of(Layout()), BOOKS["nemo"])
    parameters = 8_030_261_248
    assert float(found.weight_bytes[0]) == pytest.approx(2 * parameters, rel=1e-3)
    assert float(found.gradient_bytes[0]) == pytest.approx(4 * parameters, rel=1e-3)
    assert float(found.optimizer_bytes[0]) == pytest.approx(12 * parameters, rel=1e-3)


def test_experts_have_their_own_replicas() -> None:
    """With ep = dp an expert has one replica, so its optimizer is not spread."""
    model = reduced("deepseek-v3", 4)
    job = Job(model=model, seq=1024, global_batch=64)
    rows = Space.of([Layout(dp=8, ep=8), Layout(dp=64, ep=8)])
    alone, shared = peak_memory(job, B200, rows, BOOKS["nemo"]).optimizer_bytes
    experts = 3 * 256 * 3 * 7168 * 2048 / 8
    assert alone > 12 * experts
    assert shared < alone / 7


def test_the_parts_add_up_and_the_stages_hold_the_peak() -> None:
    job = Job(model=SHELF.model("deepseek-v3"), seq=4096, global_batch=4096)
    layout = Layout(pp=16, ep=64, dp=128)
    peak = peak_memory(job, H100, Space.of(layout), BOOKS["nemo"])
    stages = stage_memories(job, H100, layout, BOOKS["nemo"])
    assert float(peak.total_bytes[0]) == max(float(stage.memory.total_bytes[0]) for stage in stages)
    whole = sum(float(getattr(peak, name)[0]) for name in (*PARTS, "slack_bytes", "outside_bytes"))
    assert whole == pytest.approx(float(peak.total_bytes[0]))
    assert float(peak.headroom_bytes[0]) == pytest.approx(chip_memory_bytes(H100) - whole)


def test_frozen_weights_have_no_gradients() -> None:
    """Llama 3.1 8B, rank 16 beside attention: 16 · 32 · (3·4096 + 6144 + 2·4096) values train."""
    job = Job(model=LLAMA, seq=1024, global_batch=8, adapters=Adapters(rank=16, targets="attention"))
    found = peak_memory(job, H100, Space.of(Layout()), BOOKS["nemo"])
    trained = 16 * 32 * (3 * 4096 + 6144 + 2 * 4096)
    assert found.gradient_bytes[0] == 4 * trained
    assert found.optimizer_bytes[0] == 12 * trained


JOB = Job(model=LLAMA, seq=4096, global_batch=256)
MOE = Job(model=SHELF.model("qwen3-30b-a3b"), seq=4096, global_batch=256)
SPACE = layout_space(JOB, 64)
LAYOUTS = [SPACE.row(row) for row in range(0, len(SPACE), 7)]


@given(
    st.sampled_from([JOB, MOE]),
    st.sampled_from(LAYOUTS),
)
def test_memory_falls_as_more_is_spread(job: Job, layout: Layout) -> None:
    """On more chips: doubling tp or pp, the next ZeRO stage, or more recomputation never takes more state and
    activations; a longer sequence never takes less."""

    def total(other: Layout, seq: int = 4096) -> float:
        changed = msgspec.structs.replace(job, seq=seq)
        found = peak_memory(changed, H100, Space.of(other), BOOKS["nemo"])
        return float(found.allocated_bytes[0])

    def changed(**fields: object) -> Layout:
        return msgspec.structs.replace(layout, **fields)

    here = total(layout) * (1 + 1e-9)
    if layout.zero < 3:
        assert total(changed(zero=layout.zero + 1)) <= here
    if layout.tp < 8:
        assert total(changed(tp=2 * layout.tp, sequence_parallel=True)) <= 1.02 * here  # gathered inputs
    if layout.pp == 1:  # beyond two stages what one gives up in layers it holds in micro-batches
        assert total(changed(pp=2)) <= here
    if layout.recompute == "none":
        assert total(changed(recompute="full")) <= here
    assert total(changed(micro_batch=2 * layout.micro_batch)) >= here / (1 + 2e-9)
    assert total(layout, 8192) >= here / (1 + 2e-9)


def test_columns_equal_one_row_at_a_time() -> None:
    space = layout_space(MOE, 32)
    whole = peak_memory(MOE, H100, space, BOOKS["nemo"])
    for row in range(0, len(space), max(1, len(space) // 60)):
        single = peak_memory(MOE, H100, Space.of(space.row(row)), BOOKS["nemo"])
        assert float(single.total_bytes[0]) == pytest.approx(float(whole.total_bytes[row]))
        assert float(single.stage[0]) == whole.stage[row]


@pytest.mark.parametrize("pp", [1, 2, 3, 4, 8, 16])
def test_a_cut_loses_no_layer(pp: int) -> None:
    model = SHELF.model("deepseek-v3")
    cut = stage_layers(model, pp)
    assert sum(count for stage in cut for _, count in stage) == model.num_layers
    runs = stage_runs(model, pp, 1, ())
    assert runs[0].first == 0
    assert runs[-1].last == pp - 1
    assert all(run.layers == cut[run.first] for run in runs)


@pytest.mark.parametrize(
    ("schedule", "vpp", "stage", "held"),
    [
        ("1f1b", 1, 0, 8), ("1f1b", 1, 7, 1), ("1f1b", 4, 0, 9.75), ("gpipe", 1, 3, 64),
        ("zb", 1, 7, 8), ("dualpipe", 1, 0, 9),
    ],
)  # fmt: skip
def test_micro_batches_in_flight(schedule: str, vpp: int, stage: int, held: float) -> None:
    assert in_flight(schedule, np.array([64.0]), 8.0, float(vpp), stage)[0] == held
    assert in_flight(schedule, np.array([1.0]), 8.0, float(vpp), stage)[0] == 1


def test_an_unknown_schedule_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="dualpipe"):
        in_flight("dual-pipe", np.array([1.0]), 1.0, 1.0, 0)


def test_every_framework_keeps_books() -> None:
    for kit in frameworks().values():
        assert bookkeeping_of(kit).recipe.total > 0


def test_no_layout_takes_less_than_its_even_share_of_the_state() -> None:
    space = layout_space(JOB, 16, Options(micro_batch=(1,)))
    found = peak_memory(JOB, H100, space, BOOKS["nemo"])
    least = least_state_bytes(JOB, 16, BOOKS["nemo"])
    assert (found.weight_bytes + found.gradient_bytes + found.optimizer_bytes >= least * 0.999).all()


def test_why_it_does_not_fit_and_what_would() -> None:
    job = Job(model=SHELF.model("llama-3.1-70b"), seq=8192, global_batch=256)
    layout = Layout(tp=8, dp=8)
    kit = framework("nemo")
    found = why_not(job, cluster_of(H100, 64), layout, kit, BOOKS["nemo"])
    assert found is not None
    assert found.over_bytes == pytest.approx(found.total_bytes - found.limit_bytes)
    assert found.cheapest is not None
    fitting = [one for one in found.remedies if one.fits]
    assert found.cheapest.step_s == min(one.step_s for one in fitting)
    assert [one.step_s for one in fitting] == sorted(one.step_s for one in fitting)
    for one in found.remedies:
        one.layout.check(job.model, 64, job.global_batch)
        again = peak_memory(job, H100, Space.of(one.layout), BOOKS["nemo"])
        assert float(again.headroom_bytes[0]) == pytest.approx(one.headroom_bytes)
    assert why_not(job, cluster_of(H100, 64), found.cheapest.layout, kit, BOOKS["nemo"]) is None
    assert "too much" in found.sentence
    assert found.cheapest.change in found.advice


def test_where_no_change_is_enough_it_says_how_far_the_nearest_is() -> None:
    job = Job(model=SHELF.model("llama-3.1-405b"), seq=8192, global_batch=8)
    found = why_not(job, cluster_of(H100, 8), Layout(tp=8), framework("nemo"), BOOKS["nemo"])
    assert found is not None
    assert found.cheapest is None
    assert "still" in found.advice


def test_a_state_is_said_by_the_name_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though another takes the same bytes."""
    twins = {"twin": RECIPES["megatron"], **RECIPES}
    monkeypatch.setattr("datahall.workload.memory.recipe.RECIPES", twins)
    for name in ("twin", "megatron"):
        assert bookkeeping_of(framework("nemo"), name).state == name

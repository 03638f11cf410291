"""Choices beside the degrees: experts cut their own way, groups that share a state, cuts by hand, heads exchanged."""

import msgspec
import numpy as np
import pytest

from datahall.catalog import Catalog
from datahall.cluster.cluster import cluster_of
from datahall.errors import ScenarioError
from datahall.silicon.kernel import time_operators
from datahall.training.layout.columns import Space
from datahall.training.layout.file import cut_by_ends
from datahall.training.layout.layout import Layout
from datahall.training.layout.modules import PARTS
from datahall.training.memory.bookkeeping import BOOKS
from datahall.training.memory.peak import peak_memory, stage_memories
from datahall.training.pipeline.execution import simulate_step
from datahall.training.step.exchange import (
    chip_share,
    data_exchange,
    halves_between_sharers,
    head_exchange,
    parameter_exchange,
)
from datahall.training.step.framework import framework
from datahall.training.step.micro_batch import micro_batch_operators, sharding_of
from datahall.training.step.stage import stage_depths, stage_layers
from datahall.training.step.step import Job, step_times
from datahall.workload.operator import total_flop

SHELF = Catalog(user=False)
H100, KIT, BOOKS_ = SHELF.chip("h100-sxm"), framework("nemo"), BOOKS["nemo"]
LLAMA, MOE, DEEPSEEK = (SHELF.model(name) for name in ("llama-3.1-70b", "qwen3-30b-a3b", "deepseek-v3"))
JOB, ROUTED = Job(model=LLAMA, seq=8192, global_batch=256), Job(model=MOE, seq=4096, global_batch=256)


def flop(layout: Layout, job: Job = ROUTED) -> float:
    operators = micro_batch_operators(job, KIT, sharding_of(layout), 1.0, layout.recompute, layout.modules)
    return float(total_flop([one for one in operators if one.name.startswith("expert")]))


@pytest.mark.parametrize(
    ("tp", "ep", "etp"), [(4, 8, 1), (4, 8, 2), (8, 4, 1), (8, 1, 1), (2, 8, 4), (4, 4, 4)]
)
def test_experts_do_the_same_work_however_they_are_cut(tp: int, ep: int, etp: int) -> None:
    """A chip's share of a batch's expert work is 1/tp, whatever the group that holds the experts."""
    assert flop(Layout(tp=tp, ep=ep, etp=etp)) == pytest.approx(flop(Layout(tp=tp, ep=ep)))


def test_an_expert_width_that_is_implied_changes_nothing() -> None:
    for tp, ep in ((1, 8), (4, 2), (8, 8), (4, 16)):
        usual = Layout(tp=tp, ep=ep, dp=64 // tp)
        named = msgspec.structs.replace(usual, etp=max(tp // ep, 1))
        both = Space.of([usual, named])
        times = step_times(ROUTED, cluster_of(H100, 64), both, KIT).step_s
        assert times[0] == pytest.approx(times[1])
        memory = peak_memory(ROUTED, H100, both, BOOKS_).total_bytes
        assert memory[0] == pytest.approx(memory[1])


def test_experts_lie_on_ep_times_etp_chips() -> None:
    space = Space.of([Layout(tp=4, ep=8, dp=16), Layout(tp=4, ep=8, etp=4, dp=16)])
    assert space.expert_ways.tolist() == [8, 32]
    assert space.expert_copies.tolist() == [8, 2]
    one, four = chip_share(ROUTED, space).expert
    assert one == pytest.approx(4 * four)


def test_groups_that_share_a_state_trade_memory_for_a_shorter_gather() -> None:
    layouts = [Layout(dp=256, zero=3, shard=shard) for shard in (0, 64, 32, 16)]
    space, cluster = Space.of(layouts), cluster_of(H100, 256)
    assert space.sharers.tolist() == [256, 64, 32, 16]
    weights = peak_memory(JOB, H100, space, BOOKS_).optimizer_bytes
    assert weights[1] == pytest.approx(4 * weights[0])
    gathered = parameter_exchange(space, halves_between_sharers(JOB, cluster, space, KIT))
    assert (np.diff(gathered) < 0).all()
    between = data_exchange(JOB, cluster, space, KIT, halves_between_sharers(JOB, cluster, space, KIT))
    assert between[0] == 0
    assert (between[1:] > 0).all()


def test_a_group_of_all_ranks_is_no_group() -> None:
    for zero in (1, 2, 3):
        both = Space.of([Layout(dp=64, zero=zero), Layout(dp=64, zero=zero, shard=64)])
        times = step_times(JOB, cluster_of(H100, 64), both, KIT).step_s
        assert times[0] == pytest.approx(times[1])


def test_a_cut_by_hand_reaches_memory_closed_form_and_simulation() -> None:
    split = (17, 21, 21, 21)
    layout = Layout(tp=8, pp=4, dp=2, split=split)
    assert [sum(n for _, n in stage) for stage in stage_layers(LLAMA, 4, 1, split)] == list(split)
    assert [column.tolist() for column in stage_depths(LLAMA, Space.of(layout))] == [[21], [21], [20]]
    stages = stage_memories(JOB, H100, layout, BOOKS_)
    assert [stage.run.num_layers for stage in stages] == [17, 21, 21]
    cluster = cluster_of(H100, 64)
    run = simulate_step(JOB, cluster, layout, KIT)
    assert run.stages.layers.tolist() == list(split)
    even = simulate_step(JOB, cluster, msgspec.structs.replace(layout, split=()), KIT)
    assert run.step_s > even.step_s


def test_the_even_cut_by_hand_is_the_cut() -> None:
    cluster = cluster_of(H100, 64)
    for layout, split in (
        (Layout(tp=8, pp=4, dp=2), (20, 20, 20, 20)),
        (Layout(tp=8, pp=4, vpp=5, dp=2), (20,) * 4),
        (Layout(tp=8, pp=4, vpp=5, dp=2), (4,) * 20),
    ):
        both = Space.of([layout, msgspec.structs.replace(layout, split=split)])
        assert np.ptp(step_times(JOB, cluster, both, KIT).step_s) == pytest.approx(0)
        assert np.ptp(peak_memory(JOB, H100, both, BOOKS_).total_bytes) == pytest.approx(0)
        played = [simulate_step(JOB, cluster, both.row(row), KIT).step_s for row in (0, 1)]
        assert played[0] == pytest.approx(played[1])


def test_ends_cut_apart_as_megatron_does() -> None:
    assert cut_by_ends(61, 16, (3, 2), (0, 0)) == (3, *(4,) * 14, 2)
    assert cut_by_ends(61, 16, (0, 1), (0, 0)) == (*(4,) * 15, 1)
    assert cut_by_ends(126, 16, (0, 0), (1, 1)) == (7, *(8,) * 14, 7)
    assert cut_by_ends(9, 2, (5, 4), (0, 0)) == (5, 4)
    with pytest.raises(ScenarioError, match="do not divide by pp 16"):
        cut_by_ends(126, 16, (0, 0), (1, 0))
    with pytest.raises(ScenarioError, match="57 layers are left for 14 stages"):
        cut_by_ends(61, 16, (3, 1), (0, 0))


def test_heads_are_exchanged_four_times_a_layer() -> None:
    layout = Layout(tp=4, cp=8, dp=2, context_exchange="all-to-all")
    ring = msgspec.structs.replace(layout, context_exchange="ring")
    cluster = cluster_of(H100, 64)
    assert head_exchange(JOB, cluster, Space.of(ring))[0] == 0
    whole = head_exchange(JOB, cluster, Space.of(layout))[0]
    again = head_exchange(JOB, cluster, Space.of(msgspec.structs.replace(layout, recompute="full")))[0]
    assert again == pytest.approx(1.5 * whole)
    both = step_times(JOB, cluster, Space.of([ring, layout]), KIT).step_s
    assert both[0] != both[1]


@pytest.mark.parametrize("module", sorted(PARTS))
def test_a_module_recomputed_frees_memory_and_costs_its_own_forward(module: str) -> None:
    job = Job(model=DEEPSEEK, seq=4096, global_batch=256)
    plain = Layout(ep=16, dp=256)
    layout = msgspec.structs.replace(plain, recompute="selective", modules=(module,))
    layout.check(DEEPSEEK, 256, 256)
    kept = peak_memory(job, H100, Space.of([plain, layout]), BOOKS_).activation_bytes
    cluster = cluster_of(H100, 256)
    compute = step_times(job, cluster, Space.of([plain, layout]), KIT).compute_s
    names = {f"{name}_recompute" for name in PARTS[module].kernels}
    operators = micro_batch_operators(job, KIT, sharding_of(layout), 1.0, "selective", (module,))
    again = {kernel.operator.name for kernel in time_operators(H100, operators).kernels} & {
        one.name for one in operators if one.name.endswith("_recompute")
    }
    assert compute[1] > compute[0]
    if module == "core_attn":
        assert kept[1] == kept[0]  # flash attention keeps no scores
        assert again == {"attention_recompute"}
    else:
        assert kept[1] < kept[0]
        assert again <= names


def test_all_of_attention_by_name_is_the_usual_selective() -> None:
    usual = Layout(tp=8, dp=8, recompute="selective")
    named = msgspec.structs.replace(usual, modules=("core_attn",))
    old = framework("megatron-2022")
    both = Space.of([usual, named])
    times = step_times(JOB, cluster_of(H100, 64), both, old).step_s
    assert times[0] == pytest.approx(times[1])
    memory = peak_memory(JOB, H100, both, BOOKS["megatron-2022"]).total_bytes
    assert memory[0] == pytest.approx(memory[1])

"""The ladder of training: rung on rung and each alone, what is kept and why, and several sites by hand."""

from __future__ import annotations

from math import prod

import msgspec
import pytest

from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster, cluster_of
from datahall.scenario.sections.sites import Sites
from datahall.training.ladder.climb import Effect, Ladder, climb, effect_of
from datahall.training.ladder.published import published
from datahall.training.ladder.rungs import compressions, rungs
from datahall.training.ladder.setting import Setting, plainest
from datahall.training.ladder.sites import apart
from datahall.training.layout.layout import Layout
from datahall.training.pipeline.execution import simulate_step
from datahall.training.step.framework import framework
from datahall.training.step.step import Job
from datahall.workload.flops import training_flop_per_token
from datahall.workload.parameters import count_parameters
from datahall.workload.precision import Precision

SHELF = Catalog(user=False)
LLAMA = SHELF.model("llama-3.1-8b")


def own(
    chip: str = "h100-sxm", model: str = "llama-3.1-8b", kit: str = "nemo", batch: int = 64, **layout: int
) -> Setting:
    laid = Layout(**{"dp": 8, **layout})  # type: ignore[arg-type]
    return Setting(
        job=Job(model=SHELF.model(model), seq=4096, global_batch=batch),
        cluster=cluster_of(SHELF.chip(chip), laid.num_chips),
        layout=laid,
        framework=framework(kit),
        schedule="1f1b",
    )


JOBS = {
    "replicas": own(),
    "one chip": own(dp=1, batch=4),
    "a pipeline": own(tp=4, pp=4, dp=4),
    "experts": own(model="qwen3-30b-a3b", dp=16, ep=8),
    "no FP8": own(chip="a100-sxm-80gb"),
    "no 32 bits": own(chip="tpu-v5p", kit="maxtext"),
    "of 2022": own(chip="a100-sxm-80gb", kit="megatron-2022", tp=8, dp=2),
    "recurrent": own(model="nemotron-h-8b"),
}


@pytest.fixture(scope="module", params=JOBS)
def ladder(request: pytest.FixtureRequest) -> Ladder:
    return climb(JOBS[request.param])


def effects(found: Ladder) -> list[Effect]:
    steps = (*found.together, *found.alone, *found.without, *found.compressed)
    return [found.plain, *(step.effect for step in steps if step.effect is not None)]


def test_no_rung_is_faster_than_the_arithmetic_or_the_weights_allow(ladder: Ladder) -> None:
    for one in effects(ladder):
        job, cluster = one.setting.job, one.setting.cluster
        flop = training_flop_per_token(job.model, float(job.seq)) * job.batch_tokens
        peaks = cluster.chip.peak(job.precision.compute), cluster.chip.peak(job.precision.wide_compute)
        assert one.step_s > flop / (cluster.num_chips * max(peaks))
        held = (
            count_parameters(job.model).active * job.precision.weight_bytes_per_value / one.setting.layout.tp
        )
        read_s = held / one.setting.layout.pp / cluster.chip.memory_bytes_per_s
        assert one.step_s > read_s


def test_what_was_kept_multiplies_to_the_whole(ladder: Ladder) -> None:
    gains = [step.gain for step in ladder.together if step.kept and step.gain is not None]
    assert prod(gains) == pytest.approx(ladder.gain)
    assert ladder.gain == pytest.approx(ladder.plain.step_s / ladder.top.step_s)


def test_each_stands_on_what_was_kept_and_alone_on_the_plainest(ladder: Ladder) -> None:
    below = ladder.plain
    for step in ladder.together:
        assert step.on is below
        if step.effect is not None:
            less, more = step.effect.over_bytes < below.over_bytes, step.effect.over_bytes > below.over_bytes
            shorter = step.effect.step_s < below.step_s * (1.0 - 1e-6)
            for_memory = step.rung.name.startswith(("ZeRO", "recompute"))
            wanted = less or (shorter and not more) if for_memory else shorter
            assert step.taken_back or step.kept == wanted
            below = step.effect if step.kept else below
        else:
            assert step.why_not
            assert not step.kept
    assert ladder.top is below
    assert all(step.on is ladder.plain for step in ladder.alone)
    assert all(step.on is ladder.top for step in ladder.compressed)
    assert len(ladder.alone) == len(ladder.together) + len(ladder.compressed)


def test_without_what_was_kept_it_is_slower_or_lacks_memory(ladder: Ladder) -> None:
    for step in ladder.without:
        assert step.effect is not None
        worse = step.effect.over_bytes > 0 or step.effect.memory_bytes > ladder.top.memory_bytes
        assert worse or step.effect.step_s >= ladder.top.step_s


@pytest.mark.parametrize("name", ["replicas", "a pipeline", "experts"])
def test_the_top_is_the_step_that_is_simulated_of_the_same_layout(name: str) -> None:
    asked = JOBS[name]
    top = climb(asked).top
    assert top.setting.framework == asked.framework
    job = msgspec.structs.replace(asked.job, precision=top.setting.job.precision)
    run = simulate_step(job, asked.cluster, top.setting.layout, asked.framework, order="1f1b")
    assert top.step_s == run.step_s


def test_a_format_is_kept_though_its_state_takes_more() -> None:
    """70B on 64 chips: 18 bytes a parameter in 16 bits and 16 in 32, and neither fits before it is shared."""
    found = climb(own(model="llama-3.1-70b", tp=4, dp=16))
    assert "fp8" in found.kept
    assert found.top.fits
    bf16 = next(step for step in found.together if step.rung.name == "bf16")
    assert bf16.effect is not None
    assert bf16.effect.over_bytes > bf16.on.over_bytes > 0


def test_what_is_no_longer_needed_is_taken_back() -> None:
    """On cards of 48 GB ZeRO-3 is kept for memory, and left again once all is recomputed."""
    found = climb(own(chip="l40s", model="llama-3.1-70b", tp=2, pp=4, dp=8))
    back = [step for step in found.together if step.taken_back]
    assert [step.rung.name for step in back] == ["ZeRO-3"]
    assert back[0].effect is found.top
    assert found.top.setting.layout.zero == 2
    assert found.top.fits
    assert found.top.step_s < back[0].on.step_s
    assert "ZeRO-3" not in found.kept


def test_without_one_stage_of_a_choice_there_are_none_that_go_on_from_it() -> None:
    found = climb(own(model="llama-3.1-70b", tp=4, dp=16))
    left = {step.rung.name: step.effect.setting for step in found.without if step.effect is not None}
    assert (left["bf16"].job.precision, left["fp8"].job.precision) == (
        Precision.named("fp32"),
        Precision.named("bf16"),
    )
    assert [left[f"ZeRO-{stage}"].layout.zero for stage in (1, 2)] == [0, 1]
    assert left["compiled"].job.precision == Precision.named("fp8")


def test_a_state_shared_in_groups_is_so_at_the_stage_of_its_layout() -> None:
    asked = own(dp=16, zero=3, shard=4)
    tried = {step.rung.name: step.effect for step in climb(asked).alone}
    shards = {name: one.setting.layout.shard for name, one in tried.items() if one is not None}
    assert [shards[name] for name in ("ZeRO-1", "ZeRO-2", "ZeRO-3")] == [0, 0, 4]


def test_gradients_of_32_bits_shrink_twice_as_much_as_those_of_16() -> None:
    for kit, plain in (("megatron-core", 4.0), ("nemo", 2.0)):
        fewer = {step.rung.name: step.fewer_bytes for step in climb(own(kit=kit)).compressed}
        assert fewer["gradients top-k"] == pytest.approx(plain / 0.008)
        assert fewer["gradients bf16"] == pytest.approx(plain / 2)


def why(name: str, rung: str) -> str:
    found = climb(JOBS[name])
    return next(step.why_not for step in (*found.together, *found.compressed) if step.rung.name == rung)


@pytest.mark.parametrize(
    ("name", "rung", "said"),
    [
        ("no FP8", "fp8", "does not multiply FP8"),
        ("no 32 bits", "bf16", "already so"),
        ("no 32 bits", "compiled", "are of compiled kernels"),
        ("one chip", "overlap", "one chip exchanges nothing"),
        ("one chip", "ZeRO-1", "holds its weights alone"),
        ("one chip", "gradients fp8", "no replica to exchange gradients with"),
        ("replicas", "gradients bf16", "16 bits on the wire already"),
    ],
)
def test_what_does_not_apply_says_why(name: str, rung: str, said: str) -> None:
    assert said in why(name, rung)


def test_an_error_that_is_fed_back_does_not_go_with_gradients_that_are_spread() -> None:
    top = climb(own(dp=8)).top
    assert top.setting.layout.zero >= 2
    assert "keeps its error on every rank" in why("replicas", "gradients top-k")


def test_the_plainest_hides_nothing_shares_nothing_and_has_kernels_of_one_operation() -> None:
    plain = plainest(JOBS["a pipeline"])
    kit = plain.framework
    shares = (kit.tensor_exposed, kit.pipeline_exposed, kit.data_exposed, kit.parameters_exposed)
    assert shares == (1.0, 1.0, 1.0, 1.0)
    assert (kit.fusion, kit.flash_attention, plain.layout.zero) == ("eager", False, 0)
    assert plain.job.precision == Precision.named("fp32")


def test_nothing_of_sharded_parameters_is_hidden_where_nothing_is() -> None:
    """ZeRO-3 of the plainest waits for all that it gathers; with overlap kernels hide what is the shorter."""
    asked = own(dp=64, batch=64)
    plain = plainest(asked)
    laid = msgspec.structs.replace(plain, layout=msgspec.structs.replace(plain.layout, zero=3))
    hidden = msgspec.structs.replace(laid.framework, parameters_exposed=0.0)
    waits, hides = (effect_of(one).run for one in (laid, msgspec.structs.replace(laid, framework=hidden)))
    assert waits.gathering_s == pytest.approx(waits.stages.gathered_s, rel=0.02)
    assert hides.gathering_s < 0.1 * waits.gathering_s


def test_every_fact_of_learning_is_of_a_rung_and_has_a_source() -> None:
    names = {rung.name for rung in (*rungs(JOBS["replicas"]), *compressions())} | {
        "compression",
        "local steps",
    }
    assert {one.of for one in published()} <= names
    assert {rung.name for rung in compressions()} <= {one.of for one in published()}
    assert all(one.by and one.date and one.says for one in published())


# -- several sites ---------------------------------------------------------------------------------------------------


def machine(num_chips: int) -> Cluster:
    return cluster_of(SHELF.chip("h100-sxm"), num_chips)


def top(**layout: int) -> Effect:
    return effect_of(own(**{"dp": 16, "zero": 1, **layout}))


def test_sites_exchange_what_a_ring_sends() -> None:
    """Four sites, two bytes a gradient: 2 · 3/4 of 16 GB at 1 GB/s, and six times half of 100 ms."""
    asked = Sites(num_sites=4, wan_bytes_per_s=1e9, round_trip_s=0.1, local_steps=50)
    found = apart(top(), machine, asked)
    assert found.synchronous is not None
    assert found.local is not None
    once = 1.5 * count_parameters(LLAMA).total / 1e9
    assert found.synchronous.exchange.value == pytest.approx(2 * once + 6 * 0.05)
    assert found.local.exchange.value == pytest.approx(4 * once + 6 * 0.05)
    site_s = found.local.site.step_s
    assert found.synchronous.step_s == pytest.approx(site_s + 2 * once + 0.3)
    owned = count_parameters(LLAMA).total / 4  # of four chips that share it
    update_s = 24.0 * owned / (0.8 * SHELF.chip("h100-sxm").memory_bytes_per_s)
    assert found.local.step_s == pytest.approx(site_s + (4 * once + 0.3 + update_s) / 50)
    assert found.local.kept_bytes == pytest.approx(8 * owned)


def test_a_site_steps_as_it_would_with_its_share_of_the_batch() -> None:
    found = apart(top(), machine, Sites())
    assert found.local is not None
    alone = effect_of(
        msgspec.structs.replace(
            own(zero=1, dp=8),
            job=Job(model=LLAMA, seq=4096, global_batch=32),
        )
    )
    assert found.local.site.step_s == alone.step_s


def test_more_local_steps_a_wider_network_and_a_shorter_way_never_slow_a_step() -> None:
    one = top()

    def local(**asked: float) -> float:
        found = apart(one, machine, Sites(**asked)).local  # type: ignore[arg-type]
        assert found is not None
        return found.step_s

    assert local(local_steps=1) > local(local_steps=10) > local(local_steps=1000)
    assert local(wan_bytes_per_s=1e8) > local(wan_bytes_per_s=1e10) >= local(wan_bytes_per_s=1e15)
    assert local(round_trip_s=1.0) > local(round_trip_s=0.0)
    site = apart(one, machine, Sites()).local
    assert site is not None
    assert local(local_steps=2**20) == pytest.approx(site.site.step_s, rel=1e-4)


def test_a_site_sends_no_more_than_its_ports() -> None:
    one = top()
    widest = apart(one, machine, Sites(wan_bytes_per_s=1e15)).synchronous
    assert widest is not None
    ports = 8 * machine(8).system.nic_bytes_per_s
    moved_s = count_parameters(LLAMA).total * 2 / ports
    assert widest.exchange.value == pytest.approx(moved_s + 2 * 0.025)


def test_replicas_that_do_not_divide_are_on_one_site() -> None:
    found = apart(top(dp=8), machine, Sites(num_sites=3))
    assert found.local is None
    assert found.why_not == "8 replicas do not divide over 3 sites"

"""What serving and training draw: the same steps that give the time."""

from __future__ import annotations

import msgspec
import pytest

from datahall.breakdown import false_nodes
from datahall.catalog import load
from datahall.cluster.cluster import cluster_of
from datahall.inference.closed_form.steady_state import Load, State
from datahall.inference.engine.engine import engine
from datahall.inference.engine.replica import Replica
from datahall.inference.step.figure import step_figure
from datahall.power.chip import chip_power_w
from datahall.power.serving import (
    decode_activity,
    energy_per_token,
    mean_work,
    prefill_activity,
    replica_power,
    step_work,
)
from datahall.power.training import compute_activity, mean_power_w, run_energy, step_phases, training_power
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.step.framework import framework
from datahall.training.step.step import Job, step_times
from datahall.workload.flops import training_flop_per_token
from datahall.workload.precision import Precision

CATALOG = load()
H100 = CATALOG.chip("h100-sxm")


def a_replica(model: str = "llama-3.1-8b", **more: object) -> Replica:
    found = Replica(model=CATALOG.model(model), chip=H100, engine=engine("vllm"))
    return msgspec.structs.replace(found, **more)


def a_state(decoding: float, rate_per_s: float = 4.0) -> State:
    return State(
        decoding=decoding, rate_per_s=rate_per_s, ttft_s=0.1, tpot_s=0.01, ttft_high_s=0.2, tpot_high_s=0.02, use=0.5,
        stable=True, within=True,
    )  # fmt: skip


class TestServing:
    def test_a_decode_of_one_reads_the_weights_once(self) -> None:
        replica = a_replica()
        work = step_work(replica, num_decodes=1, mean_context=100.0)
        moved = work.activity.memory_fraction * work.time_s * H100.memory_bytes_per_s
        assert moved == pytest.approx(8.03e9 * 2 - 1.05e9, rel=0.03)  # all weights but the table of tokens

    def test_the_step_is_that_of_the_closed_form(self) -> None:
        replica = a_replica()
        step = step_figure(replica, num_decodes=32, mean_context=500.0)
        work = step_work(replica, num_decodes=32, mean_context=500.0)
        assert work.time_s == step.figure.value
        assert work.time_s - work.device_s == pytest.approx(step.taken_s["host"])
        assert work.activity.busy_fraction == pytest.approx(work.device_s / work.time_s)

    def test_a_prefill_multiplies_and_a_decode_reads(self) -> None:
        replica = a_replica()
        prefill, decode = prefill_activity(replica, 4096.0), decode_activity(replica, 16, 1000.0)
        assert prefill.tensor_fraction > 0.4 > decode.tensor_fraction
        assert decode.memory_fraction > 0.4 > prefill.memory_fraction
        assert chip_power_w(H100, prefill) > chip_power_w(H100, decode)
        flop = (
            prefill.tensor_fraction * step_work(replica, chunks=((4096.0, 0.0),)).time_s * H100.peak("bf16")
        )
        assert flop == pytest.approx(2 * 8.03e9 * 4096, rel=0.15)

    def test_more_at_once_draws_more(self) -> None:
        replica = a_replica()
        drawn = [chip_power_w(H100, decode_activity(replica, n, 500.0)) for n in (8, 32, 128)]
        assert drawn == sorted(drawn)
        assert drawn[-1] > drawn[0] + 50

    def test_work_of_a_longer_step_is_diluted_and_of_a_shorter_one_not_squeezed_below_its_kernels(
        self,
    ) -> None:
        work = step_work(a_replica(), num_decodes=16, mean_context=500.0)
        assert work.within(2 * work.time_s).memory_fraction == pytest.approx(
            work.activity.memory_fraction / 2
        )
        tight = work.within(0.0)
        assert tight == work.within(work.device_s)
        assert tight.busy_fraction == pytest.approx(1.0)

    def test_tensor_parallel_chips_send(self) -> None:
        alone, pair = a_replica(), a_replica(tp=2)
        assert decode_activity(alone, 32, 500.0).link_fraction == 0.0
        found = decode_activity(pair, 32, 500.0)
        assert 0.0 < found.link_fraction < 0.2
        model = pair.model
        blocks = 2 * model.num_layers
        sent = 32 * model.hidden * 2 * blocks / 450e9  # 2·(2 − 1)/2 = 1 of every output
        work = step_work(pair, num_decodes=32, mean_context=500.0)
        assert found.link_fraction * work.time_s == pytest.approx(sent)

    @pytest.mark.parametrize("decodes", [0, 64])
    def test_stages_share_the_arithmetic_and_the_caches(self, decodes: int) -> None:
        """Four chips of a pipeline do together what one does alone: products, attention of a long chunk, caches."""
        done = []
        for pp in (1, 4):
            replica = a_replica(pp=pp)
            work = step_work(replica, num_decodes=decodes, mean_context=2000.0, chunks=((8192.0, 30_000.0),))
            one = work.activity
            done.append([pp * work.time_s * share for share in (one.tensor_fraction, one.cache_fraction)])
        assert done[1][0] == pytest.approx(done[0][0], rel=0.02)
        assert done[1][1] == pytest.approx(done[0][1], rel=0.02)
        assert (done[0][1] > 0) == (decodes > 0)

    def test_recurrent_states_move(self) -> None:
        replica = a_replica("nemotron-nano-9b-v2")
        few, many = (step_work(replica, num_decodes=n, mean_context=200.0) for n in (1, 128))
        moved = [one.activity.memory_fraction * one.time_s for one in (few, many)]
        assert moved[1] > 1.3 * moved[0]

    def test_the_energy_of_a_token_is_power_over_rate(self) -> None:
        replica, load = a_replica(tp=2), Load(prompt=500.0, output=250.0)
        found = replica_power(replica, load, a_state(32.0))
        assert found.chip.value == pytest.approx(chip_power_w(H100, found.activity))
        assert found.energy_per_token.value == pytest.approx(2 * found.chip.value / (4.0 * 250.0))
        assert false_nodes(found.energy_per_token) == []
        assert found.energy_per_token == energy_per_token(replica, found.chip, 1000.0)

    def test_every_rank_of_a_replica_answers(self) -> None:
        ranks = a_replica("qwen3-30b-a3b", dp=2, ep=2)
        found = replica_power(ranks, Load(prompt=500.0, output=250.0), a_state(32.0))
        assert found.energy_per_token.value == pytest.approx(2 * found.chip.value / (2 * 4.0 * 250.0))

    def test_what_a_cache_holds_of_prompts_is_not_multiplied(self) -> None:
        whole, cached = (
            mean_work(a_replica(), Load(prompt=4000.0, output=100.0, cached=hit), 32.0)
            for hit in (0.0, 3900.0)
        )
        done = [one.activity.tensor_fraction * one.time_s for one in (whole, cached)]
        assert done[1] < 0.4 * done[0]

    def test_an_empty_replica_is_nearly_idle(self) -> None:
        replica, load = a_replica(), Load(prompt=500.0, output=250.0)
        drawn = [replica_power(replica, load, a_state(n)).chip.value for n in (1e-6, 0.1, 1.0, 10.0)]
        assert drawn[0] == pytest.approx(110.0, abs=1.0)
        assert drawn == sorted(drawn)

    def test_prompts_that_start_meanwhile_are_in_the_mean_step(self) -> None:
        replica = a_replica()
        long, short = (mean_work(replica, Load(prompt=p, output=100.0), 32.0) for p in (4000.0, 100.0))
        assert long.activity.tensor_fraction > 2 * short.activity.tensor_fraction


def a_run(num_chips: int, tp: int = 1, pp: int = 1) -> tuple[Job, Layout]:
    job = Job(
        model=CATALOG.model("llama-3.1-8b"), seq=4096, global_batch=256, precision=Precision.named("bf16")
    )
    layout = Layout(
        tp=tp, pp=pp, dp=num_chips // (tp * pp), zero=1, micro_batch=1, recompute="none", sequence_parallel=tp > 1
    )  # fmt: skip
    return job, layout


class TestTraining:
    @pytest.mark.parametrize("ways", [{}, {"tp": 4}, {"tp": 2, "pp": 4}])
    def test_phases_add_up_to_the_step(self, ways: dict[str, int]) -> None:
        (job, layout), kit = a_run(16, **ways), framework("nemo")
        cluster = cluster_of(H100, 16, catalog=CATALOG)
        phases = step_phases(job, cluster, layout, kit)
        step_s = float(step_times(job, cluster, Space.of(layout), kit).step_s[0])
        assert sum(one.time_s for one in phases) == pytest.approx(step_s)
        assert ("bubble" in {one.name for one in phases}) == (ways.get("pp", 1) > 1)

    def test_kernels_do_the_arithmetic_of_forward_and_backward(self) -> None:
        (job, layout), kit = a_run(8), framework("nemo")
        cluster = cluster_of(H100, 8, catalog=CATALOG)
        found = compute_activity(job, cluster, layout, kit)
        kernels_s = float(step_times(job, cluster, Space.of(layout), kit).compute_s[0])
        flop = found.tensor_fraction * kernels_s * H100.peak("bf16")
        assert flop == pytest.approx(4096 * float(training_flop_per_token(job.model, 4096.0)), rel=0.1)

    def test_the_mean_is_that_of_the_phases_and_the_run_their_energy(self) -> None:
        (job, layout), kit = a_run(16, tp=2, pp=4), framework("nemo")
        cluster = cluster_of(H100, 16, catalog=CATALOG)
        found = training_power(job, cluster, layout, kit)
        assert found.chip.value == pytest.approx(mean_power_w(H100, found.phases))
        assert 500.0 < found.chip.value < 700.0
        step_s = sum(one.time_s for one in found.phases)
        run = run_energy(found, 16, 1000)
        assert run.value == pytest.approx(16 * 1000 * found.chip.value * step_s)
        assert false_nodes(run) == []

    def test_waiting_for_other_stages_draws_less(self) -> None:
        kit, cluster = framework("nemo"), cluster_of(H100, 32, catalog=CATALOG)
        job, deep = a_run(32, pp=8)
        few = msgspec.structs.replace(job, global_batch=8)
        drawn = [training_power(one, cluster, deep, kit).chip.value for one in (few, job)]
        assert drawn[0] < drawn[1] - 20

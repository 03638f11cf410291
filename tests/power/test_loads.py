"""What serving and training draw: the same steps that give the time."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import astuple

from datahall.breakdown import false_nodes
from datahall.catalog import load
from datahall.cluster.cluster import cluster_of
from datahall.inference.closed_form.capacity import held
from datahall.inference.closed_form.steady_state import Load, State
from datahall.inference.engine.engine import engine
from datahall.inference.engine.replica import Replica
from datahall.inference.step.figure import step_figure
from datahall.power.activity import communication_activity
from datahall.power.chip import chip_power_w
from datahall.power.serving import (
    decode_activity,
    energy_per_token,
    mean_work,
    prefill_activity,
    replica_power,
    step_work,
)
from datahall.power.swing.timeline import BACKWARD, STEP_PHASES, WAIT
from datahall.power.training import TrainingPower, mean_power_w
from datahall.scenario.sections.wanted.promise import Promise
from datahall.training.adapters.adapters import Adapters
from datahall.training.layout.layout import Layout
from datahall.training.pipeline.execution import Execution, simulate_step
from datahall.training.step.framework import framework
from datahall.training.step.step import Job
from datahall.workload.flops import training_flop_per_token

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

    @pytest.mark.parametrize(("prompt", "output"), [(6000.0, 20.0), (500.0, 250.0), (100.0, 1000.0)])
    def test_a_request_takes_as_much_arithmetic_at_every_load(self, prompt: float, output: float) -> None:
        """What multiplies is busy for so many requests a second times the same; and alone a chip nearly rests."""
        replica, load = a_replica(), Load(prompt=prompt, output=output)
        most = held(replica, load, Promise(ttft_s=60.0, tpot_s=1.0))
        rates = [part * most.most_per_s for part in (1e-6, 1e-2, 0.1, 0.3, 0.6, 0.9)]
        found = [replica_power(replica, most.load, most.at(rate)) for rate in rates]
        each = [one.activity.tensor_fraction / rate for one, rate in zip(found, rates, strict=True)]
        assert max(each) / min(each) < 1.15
        assert found[0].chip.value == pytest.approx(110.0, abs=1.0)
        drawn = [one.chip.value for one in found]
        assert drawn == sorted(drawn)

    def test_prompts_that_start_meanwhile_are_in_the_mean_step(self) -> None:
        replica = a_replica()
        long, short = (mean_work(replica, Load(prompt=p, output=100.0), 32.0) for p in (4000.0, 100.0))
        assert long.activity.tensor_fraction > 2 * short.activity.tensor_fraction


def simulated(
    num_chips: int, *, global_batch: int = 256, order: str = "", nic_bytes_per_s: float = 0.0, **ways: int
) -> Execution:
    job = Job(model=CATALOG.model("llama-3.1-8b"), seq=4096, global_batch=global_batch)
    split = ways.get("tp", 1) * ways.get("pp", 1)
    layout = Layout(**{"zero": 1, **ways}, dp=num_chips // split, recompute="none")  # type: ignore[arg-type]
    cluster = cluster_of(H100, num_chips, catalog=CATALOG, nic_bytes_per_s=nic_bytes_per_s)
    return simulate_step(job, cluster, layout, framework("nemo"), order=order)


def multiplied_flop(found: TrainingPower) -> float:
    """Use of the tensor cores times the peak times the time, of all chips."""
    busy_s = sum(one.activity.tensor_fraction * one.time_s for one in found.phases)
    return busy_s * found.run.layout.num_chips * H100.peak("bf16")


LAYOUTS: list[dict[str, Any]] = [
    {}, {"zero": 3}, {"tp": 4}, {"tp": 4, "zero": 3}, {"tp": 2, "pp": 4}, {"pp": 4, "vpp": 2},
    {"pp": 4, "order": "zb"}, {"pp": 4, "order": "dualpipe"},
]  # fmt: skip


class TestTraining:
    @pytest.mark.parametrize("ways", LAYOUTS, ids=str)
    def test_phases_add_up_to_the_step(self, ways: dict[str, Any]) -> None:
        found = TrainingPower(run=simulated(16, **ways))
        assert sum(one.time_s for one in found.phases) == pytest.approx(found.run.step_s)
        assert (WAIT in found.parts) == (ways.get("pp", 1) > 1)
        assert all(0.0 <= share <= 1.0 for one in found.phases for share in astuple(one.activity))
        assert set(found.levels_w) == set(STEP_PHASES)  # spans of no length have a level too

    @pytest.mark.parametrize("ways", LAYOUTS, ids=str)
    def test_the_arithmetic_of_a_step_is_the_same_however_long_chips_wait(self, ways: dict[str, Any]) -> None:
        """FLOP = use × peak × time: a slower network makes a step longer and multiplies no more."""
        runs = [simulated(16, **ways, nic_bytes_per_s=rate) for rate in (50e9, 5e9, 1e9, 0.2e9)]
        found = [TrainingPower(run=run) for run in runs]
        tokens = 256 * 4096
        by_hand = tokens * float(training_flop_per_token(CATALOG.model("llama-3.1-8b"), 4096.0))
        for one in found:
            assert multiplied_flop(one) == pytest.approx(by_hand, rel=0.02)
            assert multiplied_flop(one) == pytest.approx(multiplied_flop(found[0]), rel=1e-9)
        drawn = [one.chip.value for one in found]
        assert drawn == sorted(drawn, reverse=True)
        energies = [one.chip.value * one.run.step_s for one in found]
        assert energies == sorted(energies)

    def test_a_chip_that_starves_draws_what_exchange_does(self) -> None:
        """Of 0.2 GB/s to gather all parameters over, next to nothing of the time is left for kernels."""
        starved = TrainingPower(run=simulated(16, zero=3, nic_bytes_per_s=0.2e9))
        exchange_w = chip_power_w(H100, communication_activity())
        assert starved.levels_w[BACKWARD] == pytest.approx(exchange_w, rel=0.02)
        assert starved.chip.value == pytest.approx(exchange_w, rel=0.02)

    def test_what_adapters_leave_out_is_not_multiplied(self) -> None:
        """Forward and the backward for the input are two of three products; the base's gradients are the third."""
        whole = simulated(8)
        adapted = simulate_step(
            msgspec.structs.replace(whole.job, adapters=Adapters(rank=16, targets="attention")),
            whole.cluster,
            whole.layout,
            whole.framework,
        )
        done = [multiplied_flop(TrainingPower(run=run)) for run in (whole, adapted)]
        assert done[1] == pytest.approx(2 / 3 * done[0], rel=0.05)

    def test_the_mean_is_that_of_the_phases(self) -> None:
        found = TrainingPower(run=simulated(16, tp=2, pp=4))
        assert found.chip.value == pytest.approx(mean_power_w(H100, found.phases))
        assert found.chip.value == pytest.approx(found.timeline.mean_w(found.levels_w))
        assert 500.0 < found.chip.value < 700.0
        assert false_nodes(found.chip) == []

    def test_waiting_for_other_stages_draws_less(self) -> None:
        few, many = (TrainingPower(run=simulated(32, pp=8, global_batch=num)) for num in (8, 256))
        assert few.chip.value < many.chip.value - 20

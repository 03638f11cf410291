"""A run as it is put together: the times of its tiers by hand, and its closed form beside its simulation."""

from __future__ import annotations

from math import inf
from typing import Any

import msgspec
import pytest
from tests.results import number

import datahall as dh
from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.catalog.entries.failures import Tier
from datahall.planner.training.laid.job import laid_job
from datahall.reliability.checkpoint.account import plan_account, restarting_fraction, tiers_account
from datahall.reliability.checkpoint.plan import plan_of
from datahall.reliability.checkpoint.tier import CheckpointTier
from datahall.reliability.checkpoint.tiers import tiers_of
from datahall.reliability.closed_form import expected
from datahall.reliability.job import RunningJob
from datahall.reliability.run import Run, run_of
from datahall.scenario.read import read_names
from datahall.scenario.sections.operations.checkpoint import Checkpointing

CATALOG = Catalog(user=False)
LLAMA: dict[str, Any] = {"model": "llama-3.1-405b", "chips": 16_384}


def asked(verb: str = "show checkpoint", **said: Any) -> Run:
    scenario = read_names(form_of(verb), {**LLAMA, **said}, CATALOG)
    return run_of(scenario, laid_job(scenario), choose=verb == "show checkpoint")


@pytest.fixture(scope="module")
def job() -> RunningJob:
    return asked().job


def named(job: RunningJob, asked: Checkpointing = Checkpointing()) -> dict[str, CheckpointTier]:  # noqa: B008
    return {tier.name: tier for tier in tiers_of(job, asked)}


def test_the_times_of_tiers_by_hand(job: RunningJob) -> None:
    """H100 in a DGX: 3.35 TB/s of memory, 63 GB/s to the host, 50 GB/s of network, 6.25 GB/s of drives a chip."""
    tiers, each = named(job, Checkpointing(storage_bytes_per_s=2e12)), job.size.chip_bytes
    assert tiers["device"].blocking_s == pytest.approx(0.04 + 2 * each / 3.35e12)
    assert tiers["host"].blocking_s == pytest.approx(0.04 + each / 63e9)
    assert tiers["remote"].blocking_s == pytest.approx(5.0 + each / 63e9)
    drains = [tiers[name].drain_s for name in ("device", "host", "peer", "local", "remote")]
    assert drains == pytest.approx([0.0, 0.0, each / 50e9, each / 6.25e9, job.size.total_bytes / 2e12])
    assert tiers["local"].load_s == pytest.approx(each / 63e9 + each / 6.25e9)


def test_endless_storage_is_as_fast_as_the_network(job: RunningJob) -> None:
    remote = named(job, Checkpointing(storage_bytes_per_s=1e15))["remote"]
    assert remote.drain_s == pytest.approx(job.size.chip_bytes / 50e9)


def test_whoever_waits_for_the_storage_has_nothing_to_drain(job: RunningJob) -> None:
    at_once, behind = (named(job, Checkpointing(synchronous=one))["remote"] for one in (True, False))
    assert at_once.blocking_s == pytest.approx(behind.blocking_s + behind.drain_s)
    assert at_once.drain_s == 0.0


def test_a_host_keeps_its_own_copy_and_that_of_a_peer(job: RunningJob) -> None:
    """Memory for one and a half copies is enough for the first tier and not for the second."""
    host = msgspec.structs.replace(job.cluster.host, memory_bytes=1.5 * job.size.chip_bytes)
    tight = msgspec.structs.replace(
        job, setup=msgspec.structs.replace(job.setup, cluster=msgspec.structs.replace(job.cluster, host=host))
    )
    lacking = {name for name, tier in named(tight).items() if tier.lacks}
    assert lacking == {"peer"}
    full = msgspec.structs.replace(tight, headroom_bytes=0.0)
    assert {name for name, tier in named(full).items() if tier.lacks} == {"device", "peer"}


def test_one_host_has_no_peer() -> None:
    alone = asked(model="llama-3.1-8b", chips=8)
    assert next(tier for tier in alone.tiers if tier.name == "peer").lacks == "there is 1 host only"
    assert "peer" not in alone.plan.names


def test_what_a_failure_costs_is_its_restart_its_drain_and_half_an_interval() -> None:
    run = asked(storage="2TB/s")
    remote = tiers_account(run)[-1]
    assert remote.interval_s is not None
    assert remote.failure_s == pytest.approx(
        180 + 120 + 300 + remote.tier.load_s + remote.tier.drain_s + remote.interval_s / 2
    )
    last = plan_account(run)[-1]
    assert last.num_steps == pytest.approx(last.cadence.interval_s / run.job.step_s)


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"storage": "1GB/s", "tier": "remote"},
        {"tier": "peer,remote", "storage": "5GB/s"},
        {"failure_rate": 90.0},
        {"failure_rate": 1e-6},
        {"blocking": "1h", "tier": "remote"},
    ],
)
def test_stops_lost_work_restarts_and_what_is_kept_are_all_of_the_time(said: dict[str, Any]) -> None:
    run = asked(**said)
    rows = plan_account(run)
    parts = [*(one.blocking_fraction for one in rows), *(one.lost_fraction for one in rows)]
    assert all(0.0 <= one <= 1.0 for one in parts)
    assert sum(parts) + restarting_fraction(run.plan) + run.plan.ettr == pytest.approx(1.0)


def test_the_shares_of_a_plan_are_those_that_its_simulation_finds() -> None:
    """Storage that takes 95 min for a copy: 26 % are kept, and about as much is lost."""
    run = asked("simulate run", days=54, storage="1GB/s", tier="remote", planned_every="0 s")
    lost = plan_account(run)[0].lost_fraction
    answer = dh.simulate_run(**LLAMA, days=54, storage="1GB/s", tier="remote", planned_every="0 s", runs=60)
    assert lost == pytest.approx(number(answer, "lost_s") / number(answer, "elapsed_s"), abs=0.02)


def test_hot_spares_are_not_rescheduled_to_in_planned_stops_either() -> None:
    run = asked("simulate run", days=54, hot_spares=True, reschedule="4h")
    assert run.recovery.planned_s == pytest.approx(300 + run.plan.last.tier.load_s)
    assert run.recovery.fixed_s == pytest.approx(180 + 300)


def test_what_a_run_keeps_hangs_on_steps_that_wait_and_check() -> None:
    """Two replicas that vote do all twice: half of what is kept without."""
    once, twice = (expected(asked("simulate run", days=54, **said)) for said in ({}, {"sdc": "vote"}))
    assert twice.leaves["steps"] == 0.5
    assert twice.ettr == pytest.approx(once.ettr / 2, rel=0.01)
    assert twice.worst == "steps"


def test_an_interval_is_a_step_at_least() -> None:
    quick = CheckpointTier(name="host", blocking_s=1e-6, drain_s=0.0, load_s=0.0)
    far = CheckpointTier(name="remote", blocking_s=1e-6, drain_s=0.0, load_s=0.0)
    shares: dict[Tier, float] = {"device": 0.0, "host": 0.5, "peer": 0.0, "local": 0.0, "remote": 0.5}
    plan = plan_of((quick, far), shares, 1000.0, 0.0, step_s=30.0)
    assert [one.interval_s for one in plan.cadences] == [30.0, 30.0]


def test_planned_stops_are_those_of_whose_rates_are_used() -> None:
    """Llama 3: 47 in 54 days, each a restart that nobody has to notice; others had none."""
    run = asked("simulate run", days=54)
    assert run.recovery.planned_every_s == pytest.approx(54 * 86_400 / 47)
    assert run.recovery.planned_s == pytest.approx(120 + 300 + run.plan.last.tier.load_s)
    assert asked("simulate run", days=54, failures_like="rsc-1").recovery.planned_every_s == inf
    assert asked("simulate run", days=54, planned_every="0 s").recovery.planned_every_s == inf


def test_slow_hosts_and_jitter_slow_the_step() -> None:
    """Of 2,048 hosts one in two hundred is 10 % slow, so some always is; the slowest of 16,384 is 4 σ out."""
    slow = asked("simulate run", days=1, slow_hosts="0.5 %")
    assert slow.step_s == pytest.approx(1.1 * slow.job.step_s, rel=1e-3)
    few = asked("simulate run", model="llama-3.1-8b", chips=64, days=1, slow_hosts="5 %")
    assert few.step_s == pytest.approx((1 + 0.1 * (1 - 0.95**8)) * few.job.step_s), (
        "of eight hosts a third of it"
    )
    shaky = asked("simulate run", days=1, jitter="1 %")
    assert shaky.step_s == pytest.approx(1.0397 * shaky.job.step_s, rel=1e-3)


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"tier": "peer,remote"},
        {"tier": "host,local,remote"},
        {"planned_every": "12h", "planned": "1h"},
        {"elastic": "linear"},
        {"elastic": "kept", "stall": "1min"},
        {"sdc": "replay"},
        {"storage": "20GB/s"},
        {"interval": "30min", "blocking": "30s"},
        {"preempted_every": "400d", "capacity_back": "30min"},
        {"preempted_every": "400d", "capacity_back": "30min", "elastic": "linear"},
        {"node_age": "0 s"},
        {"failure_rate": 2e-2, "restart": "20min"},
        {"job_failures": "20/day"},
        {"shock_rate": "0.5/day", "shock_nodes": 32},
        {"tier": "local,remote"},
        {"sdc": "vote"},
        {"slow_hosts": "100 %", "slow_by": "300 %"},
        {"jitter": "20 %"},
        {"elastic": "linear", "global_batch": 4096, "restart": "2h"},
        {"elastic": "kept", "reschedule": "4h", "hot_spares": True},
        {"hot_spares": True, "reschedule": "4h"},
        {"interval": "40h"},
        {"planned_every": "1d", "planned": "6h", "restart": "1min", "failure_rate": 0.02},
    ],
)
def test_closed_form_and_simulation_agree_on_whole_runs(said: dict[str, Any]) -> None:
    """The one knows no events, the other no formula."""
    answer = dh.simulate_run(**LLAMA, days=54, runs=60, **said)
    assert number(answer, "closed_form_fraction") == pytest.approx(number(answer, "ettr_fraction"), abs=0.01)


def test_a_gang_on_spot_loses_its_discount_with_its_size() -> None:
    """Nodes that are taken every 6 h: 4 of them keep most of the time, 16 much less, 64 hardly any."""
    kept = [
        number(
            dh.simulate_run(
                model="llama-3.1-8b", chips=8 * nodes, days=20, preempted_every="6h", capacity_back="1min",
                restart="10min", blocking="10s", runs=20, storage="20GB/s",
            ),
            "ettr_fraction",
        )
        for nodes in (4, 16, 64)
    ]  # fmt: skip
    assert kept[0] > 0.75 > kept[1] > 0.4 > kept[2]

"""The figures of `power/` are what they were, of chips, servers, replicas and training steps: see `record.py`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import isfinite

import msgspec
from tests.recorded.record import check_calls, or_refused, shipped

from datahall.cluster.cluster import cluster_of
from datahall.inference.closed_form.steady_state import Load
from datahall.inference.engine.engine import engine
from datahall.inference.engine.replica import Replica
from datahall.power.activity import WAITING, Activity, checkpoint_activity, communication_activity
from datahall.power.chip import chip_power, chip_power_w
from datahall.power.server import server_power, server_power_w
from datahall.power.serving import mean_work
from datahall.power.training import TrainingPower
from datahall.training.layout.layout import Layout
from datahall.training.pipeline.execution import simulate_step
from datahall.training.step.framework import framework
from datahall.training.step.step import Job
from datahall.workload.precision import Precision

MODELS = ("llama-3.1-8b", "qwen3-30b-a3b", "gpt-oss-20b", "nemotron-nano-9b-v2", "deepseek-v2-lite")
PARTS = [Activity(**{name: 0.3}) for name in Activity.__struct_fields__]
ALL = Activity(0.3, 0.4, 0.2, 0.9, 0.1, 0.2)


def drawn() -> Iterator[tuple[str, object]]:
    for chip in shipped().chips():
        if isfinite(chip.power_limit_w) and isfinite(chip.memory_bytes_per_s):
            done = (*PARTS, ALL, WAITING, communication_activity(), checkpoint_activity(20e9, chip))
            yield chip.name, [chip_power_w(chip, one) for one in done]
    h100 = shipped().chip("h100-sxm")
    yield "a chip opened", [(one.name, one.value) for _, one in chip_power(h100, ALL).walk()]
    yield "a server opened", [(one.name, one.value) for _, one in server_power(h100, 500.0, 4).walk()]
    yield "a server", server_power_w(h100, 600.0, num_nics=2, at_the_wall=False)


def served(model: str, tp: int, dp: int) -> list[object]:
    replica = Replica(
        model=shipped().model(model), chip=shipped().chip("h100-sxm"), engine=engine("vllm"), tp=tp, dp=dp,
        ep=tp * dp if shipped().model(model).moe is not None else 1,
    )  # fmt: skip
    works = [mean_work(replica, Load(prompt=400.0, output=200.0, cached=50.0), n) for n in (1.0, 17.0, 200.0)]
    return [msgspec.structs.astuple(one) for one in works]


def trained(tp: int, pp: int) -> list[object]:
    job = Job(
        model=shipped().model("llama-3.1-8b"), seq=4096, global_batch=64, precision=Precision.named("fp8")
    )
    layout = Layout(
        tp=tp, pp=pp, dp=16 // (tp * pp), zero=1, micro_batch=1, recompute="none", sequence_parallel=tp > 1
    )  # fmt: skip
    cluster = cluster_of(shipped().chip("h100-sxm"), 16)
    found = TrainingPower(run=simulate_step(job, cluster, layout, framework("nemo")))
    return [found.chip.value, [msgspec.structs.astuple(one) for one in found.phases]]


def calls() -> Iterator[tuple[str, object]]:
    yield from drawn()
    for model in MODELS:
        for tp, dp in ((1, 1), (2, 1), (1, 2)):
            yield f"{model}, tp {tp}, dp {dp}", or_refused(partial(served, model, tp, dp))
    for tp, pp in ((1, 1), (4, 1), (2, 4)):
        yield f"training, tp {tp}, pp {pp}", trained(tp, pp)


def test_calls(update: bool) -> None:
    check_calls("power", calls(), update)

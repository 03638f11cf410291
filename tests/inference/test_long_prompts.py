"""Prompts longer than the token budget take several steps, and the closed form knows it."""

import pytest

from datahall.catalog import load as catalog
from datahall.inference.closed_form.steady_state import Load, at_rate, curve
from datahall.inference.engine.engine import engine_on
from datahall.inference.engine.replica import Replica
from datahall.inference.fleet.fleet import Fleet
from datahall.inference.ladder.techniques import prompt_time
from datahall.inference.memory.kv_capacity import kv_capacity
from datahall.inference.simulation.histogram import TPOT
from datahall.inference.simulation.simulate import simulate_serving
from datahall.inference.step.price import price_steps
from datahall.scenario.requests import requests_of
from datahall.scenario.sections.traffic import Traffic
from datahall.workload.traffic.lengths import Fixed
from datahall.workload.traffic.traffic import generate


@pytest.fixture(scope="module")
def replica() -> Replica:
    chip = catalog().chip("h100-sxm")
    return Replica(model=catalog().model("llama-3.1-8b"), chip=chip, engine=engine_on("vllm", chip))


@pytest.mark.parametrize("prompt", [12_000.0, 50_000.0, 100_000.0])
def test_no_more_requests_are_held_than_prompts_can_be_computed(replica: Replica, prompt: float) -> None:
    load = Load(prompt=prompt, output=100.0)
    found = curve(price_steps(replica).table, replica, load, kv_capacity(replica))
    assert found.most_per_s < 1.2 / prompt_time(replica, load)


def test_decodes_wait_for_every_piece_of_a_prompt(replica: Replica) -> None:
    load = Load(prompt=12_000.0, output=250.0)
    form = at_rate(curve(price_steps(replica).table, replica, load, kv_capacity(replica)), 1.0)
    said = Traffic(rate_per_s=1.0, isl=Fixed(12_000), osl=Fixed(250), requests=1500)
    coming = requests_of(said, replica.model.max_context)
    run = simulate_serving(Fleet.of(replica), generate(coming, 0), warmup_s=100.0)
    assert form.tpot_s == pytest.approx(run.mean_s(TPOT), rel=0.15)

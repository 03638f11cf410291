"""No time is below FLOPs over a peak or bytes over a bandwidth, and no request is lost, on drawn machines."""

from __future__ import annotations

import shlex

import pytest
from tests.drawn.machines import Machine, Shelf, draw, draw_for_pipelines

import datahall as dh
from datahall.errors import InfeasibleError

SEEDS = range(10)
TOKENS = 100e9
DISTANCE = 0.032  # as docs/limits.md says
BYTES = {"fp8": 1.0, "bf16": 2.0}


def multiplied(name: str, catalog: dh.Catalog) -> float:
    """Parameters that every token is multiplied with: those of its experts and layers, without the table of words."""
    model = catalog.model(name)
    active = float(dh.show_model(name, catalog=catalog).results["num_active_parameters"])
    return active - model.vocab * model.hidden


def peak(machine: Machine, precision: str) -> float:
    """Of one chip [FLOP/s]."""
    return machine.peak_tflop_per_s * 1e12 * 2 / BYTES[precision]


def trained(machine: Machine, shelf: dh.Catalog, global_batch: int | None = None) -> dh.Answer | None:
    """The best layout of a run; nothing where none fits."""
    try:
        return dh.plan_train(
            machine.model, tokens=TOKENS, chips=machine.num_chips, chip="lab", global_batch=global_batch,
            catalog=shelf,
        )  # fmt: skip
    except InfeasibleError:
        return None


@pytest.mark.parametrize("seed", SEEDS)
def test_training_takes_the_arithmetic_of_its_tokens(seed: int, on_shelf: Shelf) -> None:
    machine = draw(seed)
    shelf = on_shelf(machine)
    plan = trained(machine, shelf)
    if plan is None:
        return
    flop = 6 * multiplied(machine.model, shelf) * TOKENS
    assert plan.results["duration_s"] >= flop / (plan.results["num_chips"] * peak(machine, "bf16"))
    assert 0 < plan.results["mfu_fraction"] < 1


@pytest.mark.parametrize("seed", SEEDS)
def test_serving_reads_the_weights_and_computes_the_prompt(seed: int, on_shelf: Shelf) -> None:
    machine = draw(seed)
    shelf = on_shelf(machine)
    try:
        plan = dh.plan_serve(
            machine.model, rate=machine.rate_per_s, chips="lab", ttft="3s", tpot="100ms", catalog=shelf
        ).results
    except InfeasibleError:
        return
    chips, touched = plan["num_chips"] / plan["num_replicas"], multiplied(machine.model, shelf)
    read_s = touched * BYTES[plan["precision"]] / (chips * machine.memory_gb_per_s * 1e9)
    computed_s = 2 * touched * plan["prompt_tokens"] / (chips * peak(machine, plan["precision"]))
    assert plan["tpot_low_s"] >= read_s
    assert plan["ttft_low_s"] >= computed_s


@pytest.mark.parametrize("seed", SEEDS)
def test_every_request_ends_somewhere_and_every_token_is_counted(seed: int, on_shelf: Shelf) -> None:
    machine = draw(seed)
    try:
        found = dh.simulate_serve(
            machine.model, chip="lab", rate=machine.rate_per_s, requests=120, isl=500, osl=50, seed=seed,
            catalog=on_shelf(machine),
        ).results  # fmt: skip
    except InfeasibleError:
        return
    assert found["num_arrived"] == 120
    assert found["num_arrived"] == found["num_finished"] + found["num_rejected"] + found["num_unfinished"]
    ratio = found["prompt_tokens_per_s"] / found["output_tokens_per_s"]
    assert ratio == pytest.approx(500 / 50, rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_is_followed_by_its_simulation_and_near_it(seed: int, on_shelf: Shelf) -> None:
    machine = draw(seed)
    shelf = on_shelf(machine)
    plan = trained(machine, shelf)
    if plan is None:
        return
    (follow,) = (line for line in plan.next_commands if line.startswith("datahall simulate train"))
    assert "--chip lab" in follow
    words = dict(zip(shlex.split(follow), shlex.split(follow)[1:], strict=False))
    assert int(words["--chips"]) == plan.results["num_chips"]
    assert abs(plan.results["step_s"] / plan.results["closed_step_s"] - 1) < DISTANCE


def test_the_pipeline_that_is_simulated_takes_what_its_plan_says(on_shelf: Shelf) -> None:
    """Two computations: the closed form of the search, and every slot of every stage.

    Without stages they share most of their sum, so large models on small chips are drawn, and the pipelines counted.
    """
    apart = []
    for seed in range(22):
        machine = draw_for_pipelines(seed)
        plan = trained(machine, on_shelf(machine), global_batch=256)
        if plan is not None and plan.results["pp"] > 1:
            apart.append(abs(plan.results["step_s"] / plan.results["closed_step_s"] - 1))
    assert len(apart) >= 12
    assert min(apart) > 1e-6  # none is the same sum twice
    assert max(apart) < 0.07
    assert sum(one >= DISTANCE for one in apart) <= 2

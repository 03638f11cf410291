"""More of anything never makes the best answer worse, on machines that nobody sells."""

from __future__ import annotations

import random

import pytest
from tests.drawn.machines import RESOURCES, Machine, Shelf, draw

import datahall as dh
from datahall.errors import InfeasibleError
from datahall.planner.training.choice import ALIKE

SEEDS = range(8)
RATIOS = (1.01, 1.3, 2.0)


def trained_s(machine: Machine, on_shelf: Shelf) -> float:
    """How long the best layout takes; for ever where none fits."""
    try:
        plan = dh.plan_train(
            machine.model, tokens="100B", chips=machine.num_chips, chip="lab", catalog=on_shelf(machine)
        )
    except InfeasibleError:
        return float("inf")
    return float(plan.results["duration_s"])


def served_by(machine: Machine, on_shelf: Shelf, rate_per_s: float | None = None) -> float:
    """The fewest chips that serve the load; endlessly many where no group keeps the limits."""
    try:
        plan = dh.plan_serve(
            machine.model, rate=rate_per_s or machine.rate_per_s, chips="lab", ttft="3s", tpot="100ms",
            catalog=on_shelf(machine),
        )  # fmt: skip
    except InfeasibleError:
        return float("inf")
    return float(plan.results["num_chips"])


def drawn(seed: int) -> tuple[Machine, dict[str, Machine]]:
    machine, dice = draw(seed), random.Random(seed)
    more = dice.sample(RESOURCES, 2)
    return machine, {one: machine.with_more(one, dice.choice(RATIOS)) for one in more}


@pytest.mark.parametrize("seed", SEEDS)
def test_of_a_resource_to_train_on(seed: int, on_shelf: Shelf) -> None:
    """Of two layouts that cannot be told apart the simpler is taken, and may be the slower by as much."""
    machine, richer = drawn(seed)
    before = trained_s(machine, on_shelf)
    for resource, then in richer.items():
        assert trained_s(then, on_shelf) <= before * (1 + ALIKE), resource


@pytest.mark.parametrize("seed", SEEDS)
def test_of_a_resource_to_serve_on(seed: int, on_shelf: Shelf) -> None:
    machine, richer = drawn(seed)
    before = served_by(machine, on_shelf)
    for resource, then in richer.items():
        assert served_by(then, on_shelf) <= before, resource


@pytest.mark.parametrize("seed", SEEDS)
def test_of_the_load_never_takes_fewer_chips(seed: int, on_shelf: Shelf) -> None:
    machine = draw(seed)
    chips = [served_by(machine, on_shelf, machine.rate_per_s * ratio) for ratio in (1.0, 1.5, 4.0)]
    assert chips == sorted(chips)


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_of_the_chips_to_train_on(seed: int, on_shelf: Shelf) -> None:
    machine = draw(seed)
    shelf = on_shelf(machine)
    times = []
    for domains in (1, 2, 3, 6):
        try:
            plan = dh.plan_train(
                machine.model, tokens="100B", chips=domains * machine.domain, chip="lab", catalog=shelf
            )
        except InfeasibleError:
            times.append(float("inf"))
        else:
            times.append(float(plan.results["duration_s"]))
    assert times == sorted(times, reverse=True)

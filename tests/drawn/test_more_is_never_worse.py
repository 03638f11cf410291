"""More of anything never makes the best answer worse, on machines that nobody sells."""

from __future__ import annotations

import random

import pytest
from tests.drawn.machines import RESOURCES, Machine, Shelf, draw

import datahall as dh
from datahall.errors import InfeasibleError

SEEDS = range(8)
TRAINED = (0, 1, 3, 4, 5, 6, 7, 8)  # on the third machine, four chips, nothing fits
RATIOS = (1.01, 1.3, 2.0)
TOLD_APART = 0.035  # as docs/training.md says: nearer layouts are not told apart, and the simpler is taken
LOAD_PER_S = 50.0  # at which no machine does with one chip


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


def doubled(machine: Machine) -> Machine:
    for resource in RESOURCES:
        machine = machine.with_more(resource, 2.0)
    return machine


@pytest.mark.parametrize("seed", TRAINED)
def test_of_a_resource_to_train_on(seed: int, on_shelf: Shelf) -> None:
    """Of two layouts that cannot be told apart the simpler is taken, and may be the slower by as much."""
    machine, richer = drawn(seed)
    before = trained_s(machine, on_shelf)
    assert before < float("inf")
    for resource, then in richer.items():
        assert trained_s(then, on_shelf) <= before * (1 + TOLD_APART), resource


@pytest.mark.parametrize("seed", TRAINED)
def test_twice_of_everything_trains_in_little_more_than_half_the_time(seed: int, on_shelf: Shelf) -> None:
    """Launches and hops take as long as before; more memory may spare recomputation, a quarter of the work."""
    machine = draw(seed)
    assert 1 / 3 < trained_s(doubled(machine), on_shelf) / trained_s(machine, on_shelf) < 0.6


@pytest.mark.parametrize("seed", SEEDS)
def test_of_a_resource_to_serve_on(seed: int, on_shelf: Shelf) -> None:
    machine, richer = drawn(seed)
    before = served_by(machine, on_shelf, 4 * LOAD_PER_S)
    assert 5 <= before < float("inf")
    for resource, then in richer.items():
        assert served_by(then, on_shelf, 4 * LOAD_PER_S) <= before, resource


@pytest.mark.parametrize("seed", SEEDS)
def test_twice_of_everything_serves_on_fewer_chips(seed: int, on_shelf: Shelf) -> None:
    machine = draw(seed)
    before, then = (served_by(one, on_shelf, 4 * LOAD_PER_S) for one in (machine, doubled(machine)))
    assert before / 3 < then < before


@pytest.mark.parametrize("seed", SEEDS)
def test_of_the_load_never_takes_fewer_chips(seed: int, on_shelf: Shelf) -> None:
    """Four times the load takes more than twice the chips, and no more than four times, but for one that is rounded."""
    machine = draw(seed)
    chips = [served_by(machine, on_shelf, LOAD_PER_S * ratio) for ratio in (1.0, 1.5, 4.0)]
    assert chips == sorted(chips)
    assert chips[0] > 1
    assert 2 * chips[0] < chips[2] <= 4 * chips[0] + 1


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
    assert times[3] < 0.6 * times[2]  # on six domains well below what three take

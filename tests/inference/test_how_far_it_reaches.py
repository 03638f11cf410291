"""How far the exchange of a replica reaches, what its machine must not be, and when a queue keeps its length."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.inference.test_one_pass import asked

from datahall.catalog import Catalog
from datahall.cluster.wiring import Wiring
from datahall.errors import ScenarioError
from datahall.inference.engine.engine import engine_on
from datahall.inference.engine.machine import is_joined, machine_of, placed
from datahall.inference.engine.replica import Replica, exchanging_chips, joined, replica_system
from datahall.inference.simulation.result import GROWS, NUM_TELLING, stability
from datahall.inference.simulation.state import FLEET
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.failure import Failure

SHELF = Catalog(user=False)
H100 = SHELF.chip("h100-sxm")


def replica(model: str = "llama-3.1-8b", **degrees: int) -> Replica:
    return Replica(model=SHELF.model(model), chip=H100, engine=engine_on("vllm", H100), **degrees)


@pytest.mark.parametrize(
    ("model", "degrees", "reach"),
    [
        ("llama-3.1-8b", {}, 1),
        ("llama-3.1-8b", {"tp": 4}, 4),
        ("llama-3.1-8b", {"tp": 4, "dp": 2}, 4),  # ranks of a dense model have nothing to say to each other
        ("llama-3.1-8b", {"tp": 4, "dp": 2, "pp": 2}, 16),
        ("qwen3-30b-a3b", {"tp": 2, "dp": 4}, 8),  # ranks meet at the experts
        ("qwen3-30b-a3b", {"tp": 2}, 2),
    ],
)
def test_the_widest_group_that_exchanges(model: str, degrees: dict[str, int], reach: int) -> None:
    one = replica(model, **degrees)
    assert exchanging_chips(one) == reach
    assert joined(one).span == reach
    assert joined(one, hands_over=True).ports
    assert one.num_chips == int(np.prod(list(degrees.values())))


def test_a_machine_has_whole_domains_for_all_replicas() -> None:
    plain, wired = Wiring(), Wiring(FabricDesign(topology="fat-tree"))
    for num_chips, least, wanted in ((1, 1, 8), (8, 1, 8), (9, 1, 16), (1, 2, 16), (17, 2, 24)):
        found = machine_of(H100, num_chips, wired, SHELF, least_domains=least)
        assert found is not None
        assert found.design is not None
        assert (found.num_chips, found.design.counts.num_hosts) == (num_chips, wanted)
    small = Wiring(FabricDesign(topology="fat-tree", domain=4))
    found = machine_of(H100, 5, small, SHELF)
    assert found is not None
    assert found.design is not None
    assert (found.design.counts.num_hosts, found.num_domain) == (8, 4)
    system = replica_system(placed(replica(tp=4), 3, plain, SHELF))
    assert system.num_domain == 8
    assert placed(replica(tp=4), 3, plain, SHELF).network is not None


@pytest.mark.parametrize("topology", ["torus", "mesh", "tpu-pod", "tpu-v4-pod"])
@pytest.mark.parametrize("num_chips", [1, 2, 3, 64])
def test_a_torus_is_refused_as_such_whatever_the_chips(topology: str, num_chips: int) -> None:
    """Not for the slices that it has: with another number of chips it would be no better."""
    said = FabricDesign(topology=topology, nic_bytes_per_s=50e9)
    with pytest.raises(ScenarioError, match="neighbours only") as caught:
        machine_of(SHELF.chip("tpu-v5p"), num_chips, Wiring(said), SHELF)
    assert caught.value.field == "on"


def test_machines_that_serving_does_not_know_are_refused() -> None:
    switches = FabricDesign(topology="fat-tree")
    slow = Wiring(switches, (Failure(domains=(0,), left_fraction=0.5),))
    with pytest.raises(ScenarioError, match="scale-up links are slow") as caught:
        machine_of(H100, 16, slow, SHELF)
    assert caught.value.field == "failure"
    assert machine_of(H100, 16, Wiring(switches), SHELF) is not None


def test_chips_are_joined_by_published_links_or_by_what_somebody_says() -> None:
    unknown = msgspec.structs.replace(H100, scale_up_bytes_per_s=0.0)
    assert is_joined(H100, Wiring())
    assert not is_joined(unknown, Wiring())
    assert is_joined(unknown, Wiring(FabricDesign(topology="fat-tree")))
    assert machine_of(unknown, 8, Wiring(), SHELF) is None


def test_operators_without_arithmetic_are_not_counted_in_it() -> None:
    found = asked(SHELF, phase="decode")
    for one in found.operators:
        assert one.is_counted == (float(np.ravel(one.kernel.operator.flop)[0]) > 0)
    rest = sum(one.share_fraction for one in found.operators if not one.is_counted)
    assert 0 < rest < 1
    assert found.uncounted_fraction == pytest.approx(rest)
    assert (found.step, asked(SHELF, phase="prefill").step) == ("decode step", "prefill")
    assert found.fits
    assert not asked(SHELF, model="llama-3.1-405b", tp=2).fits


def observed(arrivals: np.ndarray, queue: np.ndarray, *, users: int = 0) -> Any:
    fleet = np.zeros(1, FLEET)
    fleet["num_arrived"], fleet["last_arrival_s"], fleet["users"] = arrivals.size, arrivals[-1], users
    fleet["sum_t"], fleet["sum_tt"] = arrivals.sum(), (arrivals**2).sum()
    fleet["sum_q"], fleet["sum_tq"] = queue.sum(), (arrivals * queue).sum()
    return SimpleNamespace(fleet=fleet)


@given(growth=st.floats(-0.5, 3.0), num=st.integers(NUM_TELLING, 4 * NUM_TELLING))
def test_a_queue_that_grows_with_time_is_not_kept(growth: float, num: int) -> None:
    """Four requests a second, and a queue that gets `growth` longer each: what is served is the rest."""
    arrivals = np.arange(1, num + 1) / 4.0
    state = observed(arrivals, 10.0 + growth * arrivals)
    stable, rate = stability(state, finished=num // 2, duration_s=float(arrivals[-1]))
    assert stable == (growth <= GROWS * 4.0) or abs(growth - GROWS * 4.0) < 1e-6
    if stable:
        assert rate == pytest.approx(4.0)
    else:
        assert rate == pytest.approx(max(4.0 - growth, 2.0), rel=0.02)


@pytest.mark.parametrize(("waits_fraction", "stable"), [(0.0, True), (0.029, True), (0.031, False)])
def test_a_fleet_where_three_of_a_hundred_stay_in_the_queue_is_overloaded(
    waits_fraction: float, stable: bool
) -> None:
    """However often they come."""
    for per_s in (0.01, 4.0, 900.0):
        arrivals = np.arange(1, 1001) / per_s
        state = observed(arrivals, waits_fraction * per_s * arrivals)
        assert stability(state, finished=1000, duration_s=float(arrivals[-1]))[0] is stable


def test_few_requests_and_users_tell_nothing_of_a_queue() -> None:
    arrivals = np.arange(1, NUM_TELLING) / 4.0
    assert stability(observed(arrivals, arrivals * 3), 10, 5.0) == (True, 2.0)
    many = np.arange(1, 4 * NUM_TELLING) / 4.0
    assert stability(observed(many, many * 3, users=7), 10, 5.0) == (True, 2.0)
    assert stability(observed(many, many * 3, users=7), 10, 0.0) == (True, 0.0)

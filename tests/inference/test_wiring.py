"""Replicas on a fabric: its cuts, its network cards and its domains reach every step, and its chip is the usual one."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from datahall.answers.ask import form_of
from datahall.breakdown import Breakdown, false_nodes
from datahall.catalog import Catalog
from datahall.cluster.cluster import cluster_from
from datahall.cluster.wiring import Wiring
from datahall.errors import ScenarioError, UnsupportedError
from datahall.fabric.collectives.figure import LEFT
from datahall.inference.engine.asked import deployment_of, implied_chip
from datahall.inference.engine.build import replica_of
from datahall.inference.engine.disaggregation import handoff_of
from datahall.inference.engine.engine import engine
from datahall.inference.engine.machine import placed
from datahall.inference.engine.replica import Replica, replica_system
from datahall.inference.fleet.service import service_of
from datahall.inference.step.exchange import exchange
from datahall.inference.step.figure import step_breakdown
from datahall.inference.step.price import price_steps
from datahall.inference.step.table import decode_step_time
from datahall.scenario.kinds import Raw
from datahall.scenario.read import read_names
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import Deployment
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.failure import Failure

ACROSS = Deployment(
    chip="h200-sxm", tp=1, dp=128, ep=128, precision="fp8"
)  # sixteen servers, more than a leaf


def on(
    shelf: Catalog, model: str = "deepseek-v3", deployment: Deployment = ACROSS, **said: object
) -> Replica:
    return replica_of(deployment, shelf.model(model), shelf, Wiring(FabricDesign(**said)))  # type: ignore[arg-type]


def step_s(replica: Replica) -> float:
    return decode_step_time(price_steps(replica).table, 32, 2000.0)


def asked(
    shelf: Catalog, verb: str = "simulate serve", model: str = "llama-3.1-8b", **given: Raw
) -> Scenario:
    return read_names(form_of(verb), {"model": model, **given}, shelf, bare=True)


def test_a_replica_has_the_narrow_places_of_its_fabric(shelf: Catalog) -> None:
    design = FabricDesign(topology="fat-tree", oversubscription=(4.0,))
    machine = cluster_from(design, shelf, chip="h200-sxm", num_chips=128).system
    found = on(shelf, topology="fat-tree", oversubscription=(4.0,))
    assert machine.cuts
    assert replica_system(found) == machine
    free = replica_system(on(shelf, topology="fat-tree"))
    narrow, wide = ({cut.bytes_per_s / cut.num_below for cut in one.cuts} for one in (machine, free))
    assert max(narrow) < min(wide)


def test_without_a_fabric_a_replica_has_no_narrow_place(shelf: Catalog) -> None:
    assert replica_system(on(shelf)).cuts == ()


def test_steps_across_servers_get_longer_as_the_fabric_narrows(shelf: Catalog) -> None:
    times = [step_s(on(shelf, topology="fat-tree", oversubscription=(ratio,))) for ratio in (1.0, 4.0, 16.0)]
    assert times == sorted(times)
    assert times[0] < times[-1]


def test_a_tree_is_slower_than_full_bisection(shelf: Catalog) -> None:
    assert step_s(on(shelf, topology="tree")) > step_s(on(shelf, topology="fat-tree"))


def test_bytes_that_cross_a_cut_take_at_least_its_time(shelf: Catalog) -> None:
    """The exchange of experts between leaves is never faster than the narrowest cut carries it."""
    narrow = on(shelf, topology="tree")
    system = replica_system(narrow)
    (cut,) = system.cuts
    tokens = np.array([512.0])
    model = narrow.model
    assert model.moe is not None
    layers = sum(layer.mlp == "moe" for layer in model.layers)
    # tokens of a full leaf, one byte a value, reach the experts on other leaves once and come back in two
    away = 1.0 - cut.num_below / narrow.num_chips
    crossing = cut.num_below * float(tokens[0]) * away * model.hidden * (1.0 + 2.0)
    floor_s = layers * crossing / cut.bytes_per_s
    assert float(exchange(narrow, tokens).expert_s[0]) >= floor_s
    assert float(exchange(replace(narrow, system=replace(system, cuts=())), tokens).expert_s[0]) < floor_s


@pytest.mark.parametrize("said", [{}, {"topology": "fat-tree"}])
def test_a_slower_card_slows_who_leaves_the_server_and_nobody_else(
    shelf: Catalog, said: dict[str, object]
) -> None:
    inside = Deployment(chip="h200-sxm", tp=8)
    for deployment, model, slower in ((ACROSS, "deepseek-v3", True), (inside, "llama-3.1-70b", False)):
        usual = on(shelf, model, deployment, **said)
        slow = on(shelf, model, deployment, nic_bytes_per_s=12.5e9, **said)
        assert replica_system(slow).nic_bytes_per_s == 12.5e9
        if slower:
            assert step_s(slow) > step_s(usual)
        else:
            assert step_s(slow) == step_s(usual)


def test_a_smaller_domain_sends_tensor_parallelism_over_the_network(shelf: Catalog) -> None:
    eight = Deployment(chip="h200-sxm", tp=8)
    whole, split = (on(shelf, "llama-3.1-70b", eight, **said) for said in ({}, {"domain": 4}))
    assert replica_system(split).num_domain == 4
    assert step_s(split) > step_s(whole)


def test_every_pool_of_a_service_stands_on_the_fabric(shelf: Catalog) -> None:
    service = service_of(
        asked(
            shelf, disaggregated="prefill=70xh200,decode=80xh200", rate=1, requests=10, on="fat-tree",
            oversubscription="4:1", nic="100Gb/s",
        )
    )  # fmt: skip
    assert len(service.fleet.pools) == 2
    for pool in service.fleet.pools:
        assert replica_system(pool.replica).nic_bytes_per_s == 12.5e9
        assert replica_system(pool.replica).cuts
    prefill = service.fleet.pools[0].replica
    assert handoff_of(prefill).token_s == pytest.approx(4 * handoff_of(on(shelf, "llama-3.1-8b", Deployment(
        chip="h200-sxm", tp=prefill.tp), nic_bytes_per_s=50e9)).token_s)  # fmt: skip


def test_a_chip_whose_links_nobody_published_serves_alone_and_hands_over_at_the_rate_said(
    shelf: Catalog,
) -> None:
    alone = Deployment(chip="trainium1", tp=1)
    fast, slow = (on(shelf, "llama-3.1-8b", alone, nic_bytes_per_s=rate) for rate in (50e9, 12.5e9))
    assert handoff_of(slow).token_s == pytest.approx(4 * handoff_of(fast).token_s)
    assert step_s(slow) == step_s(fast) > 0


def test_chips_that_have_neighbours_only_are_refused(shelf: Catalog) -> None:
    with pytest.raises(ScenarioError, match="neighbours") as caught:
        on(shelf, "llama-3.1-8b", Deployment(chip="tpu-v5p", tp=4), topology="torus")
    assert caught.value.field == "on"


def test_where_no_chip_is_said_the_fabric_brings_its_own(shelf: Catalog) -> None:
    scenario = asked(shelf, rate=1, on="nvl72")
    assert deployment_of(scenario).chip == "gb200"
    chip = implied_chip(scenario)
    assert chip is not None
    assert chip.name == "gb200"
    assert replica_system(service_of(scenario).replica).num_domain == 72


def test_a_chip_that_is_said_is_taken_or_refused(shelf: Catalog) -> None:
    assert deployment_of(asked(shelf, rate=1, on="nvl72", chip="gb300")).chip == "gb300"
    assert implied_chip(asked(shelf, rate=1, on="nvl72", chip="gb300")) is None
    with pytest.raises(ScenarioError, match="scale-up domains of 8, not 72"):
        service_of(asked(shelf, rate=1, on="nvl72", chip="h100-sxm"))


def test_a_fabric_for_any_chip_changes_no_default(shelf: Catalog) -> None:
    usual = Deployment().chip
    for said in ({}, {"on": "fat-tree"}, {"on": "rail-optimised"}):
        scenario = asked(shelf, rate=1, **said)
        assert deployment_of(scenario).chip == usual
        assert implied_chip(scenario) is None
    built = implied_chip(asked(shelf, rate=1, on="meta-24k-roce"))
    assert built is not None
    assert built.name == usual


def test_a_service_stands_on_its_own_chips_and_on_no_others(shelf: Catalog) -> None:
    """Four chips are half a server: the ninth chip is not theirs to lose."""
    said = {"chip": "h100-sxm", "tp": 4, "rate": 1, "on": "fat-tree"}
    with pytest.raises(ScenarioError, match="no chip 8") as caught:
        service_of(asked(shelf, **said, failure=[{"chips": 8}]))
    assert caught.value.field == "failure"
    assert service_of(asked(shelf, **said, replicas=3, failure=[{"nics": 8}])).fleet.num_chips == 12


def test_ports_that_hand_a_cache_over_are_there_in_one_domain_too(shelf: Catalog) -> None:
    service = service_of(asked(shelf, disaggregated="prefill=1,decode=1", rate=1, requests=10, on="nvl72"))
    assert handoff_of(service.fleet.pools[0].replica).token_s > 0


def test_a_group_that_is_found_stands_on_a_machine_for_all_of_it(shelf: Catalog) -> None:
    """Forty replicas that take several chips each: more than the ports of one switch."""
    said = {"chip": "h100-sxm", "precision": "bf16", "rate": 1, "replicas": 40, "on": "tree", "domain": 2}
    found = service_of(asked(shelf, model="llama-3.1-70b", **said)).replica
    assert found.tp > 1
    design, num_chips = FabricDesign(topology="tree", domain=2), 40 * found.tp
    assert replica_system(found) == cluster_from(design, shelf, chip="h100-sxm", num_chips=num_chips).system


@pytest.mark.parametrize("ratio", [(4.0,), (4.0, 2.0)])
def test_a_ratio_of_tiers_that_so_few_chips_do_not_need_is_left_out(
    shelf: Catalog, ratio: tuple[float, ...]
) -> None:
    few = Deployment(chip="h200-sxm", tp=16)
    narrow, wide = (
        on(shelf, "llama-3.1-8b", few, topology="fat-tree", oversubscription=one) for one in (ratio, (1.0,))
    )
    assert replica_system(narrow) == replica_system(wide)


def exchange_of(replica: Replica) -> Breakdown:
    step = step_breakdown(replica, num_decodes=8, mean_context=1000.0)
    return next(part for part in step.parts if part.name == "exchange")


def named(figure: Breakdown) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for _, node in figure.walk():
        found.setdefault(node.name, []).append(node.value)
    return found


def test_the_chain_of_an_exchange_shows_what_it_crosses(shelf: Catalog) -> None:
    """128 ranks under leaves with a quarter of the ways up that they have down."""
    inside = exchange_of(on(shelf, "llama-3.1-70b", Deployment(chip="h200-sxm", tp=8), topology="fat-tree"))
    assert "network of a chip, one way" not in named(inside)
    plain = on(shelf, topology="fat-tree", oversubscription=(4.0,), nic_bytes_per_s=12.5e9)
    said = named(exchange_of(plain))
    assert said["network of a chip, one way"] == [12.5e9]
    (cut,) = replica_system(plain).cuts
    assert said["way out of a leaf, one way"] == [cut.bytes_per_s]
    assert LEFT not in said
    assert not false_nodes(exchange_of(plain))


def test_the_chain_of_an_exchange_shows_what_a_failure_left(shelf: Catalog) -> None:
    wired = FabricDesign(topology="fat-tree", oversubscription=(4.0,))
    model, wiring = shelf.model("deepseek-v3"), Wiring(wired, (Failure(nics=(0, 1)),))
    port = exchange_of(replica_of(ACROSS, model, shelf, wiring))
    assert named(port)[LEFT] == [6 / 8]
    assert not false_nodes(port)
    spine = replica_system(on(shelf, topology="fat-tree", oversubscription=(4.0,)))
    first = 3  # the spine: leaves of 48 chips, of which 128 have three, come before it
    after = replica_of(ACROSS, model, shelf, Wiring(wired, (Failure(switches=(first,), left_fraction=0.5),)))
    (before, left) = (replica_system(one).cuts[0] for one in (replace(after, system=spine), after))
    said = named(exchange_of(after))
    assert said[LEFT] == [pytest.approx(left.bytes_per_s / before.bytes_per_s)]
    assert said[LEFT][0] < 1
    assert not false_nodes(exchange_of(after))


@pytest.mark.parametrize(("topology", "ratio"), [("tree", 2.0), ("fat-tree", 500.0)])
def test_a_ratio_that_a_topology_cannot_have_is_refused_as_of_any_machine(
    shelf: Catalog, topology: str, ratio: float
) -> None:
    few, wired = Deployment(chip="h200-sxm", tp=16), {"topology": topology, "oversubscription": (ratio,)}
    with pytest.raises(ScenarioError) as served:
        on(shelf, "llama-3.1-8b", few, **wired)
    with pytest.raises(ScenarioError) as machine:
        cluster_from(FabricDesign(**wired), shelf, chip="h200-sxm", num_chips=16)  # type: ignore[arg-type]
    assert served.value.field == "oversubscription"
    assert str(served.value) == str(machine.value)


def test_a_replica_that_nobody_placed_stands_on_chips_as_they_are_sold() -> None:
    """And on no more than is published of them: a card without links of its own is alone until somebody wires it."""
    shelf = Catalog(user=False)
    for name in ("h100-sxm", "trainium1"):
        chip, model = shelf.chip(name), shelf.model("llama-3.1-8b")
        bare = Replica(model=model, chip=chip, engine=engine("vllm"))
        assert bare.system is None
        assert bare.num_domain == max(1, chip.num_scale_up_domain)
        assert bare.port_bytes_per_s == pytest.approx(chip.nic_bytes_per_s, nan_ok=True)
        there = placed(bare, 2, Wiring(), shelf)
        assert (there.system is None) is (not chip.scale_up_bytes_per_s > 0)
        if there.system is not None:
            assert (there.num_domain, there.port_bytes_per_s) == (
                there.system.num_domain,
                there.system.nic_bytes_per_s,
            )
    with pytest.raises(UnsupportedError, match="nobody published"):
        replica_system(bare)

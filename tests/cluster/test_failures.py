"""What has failed of a fabric is felt alike by collectives, training and serving, and makes nothing faster."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import datahall as dh
from datahall.answer import Answer
from datahall.breakdown import Breakdown, false_nodes
from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster, cluster_from
from datahall.cluster.collective import time_collective
from datahall.cluster.groups import group_times, machine_times
from datahall.cluster.idle import idle_inputs_of_groups
from datahall.cluster.joined import Joined
from datahall.cluster.wiring import Wiring
from datahall.errors import InfeasibleError, ScenarioError
from datahall.fabric.collectives.choice import Choice, collective_times
from datahall.fabric.collectives.figure import LEFT
from datahall.fabric.design.asked import design_of
from datahall.fabric.topology.graph import SCALE_UP, SCALE_UP_TIER, Fabric
from datahall.inference.engine.build import replica_of
from datahall.inference.step.exchange import exchange
from datahall.scenario.sections.deployment import Deployment
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.failure import Failure
from datahall.scenario.words import COLLECTIVES, Collective
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.step.framework import framework
from datahall.training.step.step import Job, step_times

CATALOG = Catalog(user=False)
ON = {
    "tree": FabricDesign(topology="tree", chips=128),
    "fat-tree": FabricDesign(topology="fat-tree", chips=128),
    "tapered": FabricDesign(topology="clos", chips=128, radix=16, oversubscription=(3.0,)),
    "rails": FabricDesign(topology="rail-optimised", chips=512),
    "dragonfly": FabricDesign(topology="dragonfly", chips=128),
    "hyperx": FabricDesign(topology="hyperx", chips=128),
    "racks": FabricDesign(topology="nvl72", chips=144),
    "rack": FabricDesign(topology="nvl72", chips=72),
    "torus": FabricDesign(topology="torus", sides=(4, 4, 8), chip="tpu-v5p"),
    "mesh": FabricDesign(topology="mesh", sides=(4, 8), chip="tpu-v6e"),
    "full mesh": FabricDesign(topology="full-mesh", chips=8),
}
WHOLE = {name: cluster_from(design, CATALOG) for name, design in ON.items()}
each_fabric = pytest.mark.parametrize("name", ON)


def leaves(figure: Breakdown) -> list[Breakdown]:
    return [part for _, part in figure.walk() if part.name == LEFT]


def has_ports(fabric: Fabric) -> bool:
    return bool(np.any(fabric.link_kind != SCALE_UP))


def drawn_failure(data: st.DataObject, cluster: Cluster) -> Failure:
    assert cluster.design is not None
    fabric = cluster.design.fabric
    ports = fabric.num_hosts if has_ports(fabric) else 0
    kinds = {"links": fabric.num_links, "switches": fabric.num_switches, "nics": ports}
    part = data.draw(st.sampled_from([kind for kind, count in kinds.items() if count]))
    numbers = data.draw(st.lists(st.integers(0, kinds[part] - 1), min_size=1, max_size=6))
    left = data.draw(st.sampled_from((0.0, 0.25, 0.9)))
    return Failure(**{part: tuple(numbers)}, left_fraction=left)


def _runs(choice: Choice) -> tuple[str, str]:
    return choice.algorithm, choice.protocol


@settings(max_examples=120, deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(ON)), size=st.sampled_from((1e4, 1e7, 1e9)))
def test_no_failure_makes_a_collective_faster(data: st.DataObject, name: str, size: float) -> None:
    """As it runs: NCCL may take another algorithm on slower ports, by its own estimate, and a better one by chance."""
    whole = WHOLE[name]
    failure = drawn_failure(data, whole)
    try:
        left = cluster_from(ON[name], CATALOG, failures=(failure,))
    except InfeasibleError:
        assume(False)
        raise
    known: tuple[Collective, ...] = (
        ("all-reduce", "all-gather", "all-to-all", "send-recv") if whole.system.torus else COLLECTIVES
    )
    kind = data.draw(st.sampled_from(known))
    before, after = (time_collective(one, kind, size) for one in (whole, left))
    if _runs(before.choice) == _runs(after.choice):
        assert after.choice.time_s >= before.choice.time_s * (1 - 1e-12)
    assert not false_nodes(after.figure)
    assert not leaves(before.figure)
    if after.choice.time_s > before.choice.time_s * (1 + 1e-9):
        assert any(leaf.origin == "derived" and leaf.value < 1.0 for leaf in leaves(after.figure))
    ranks, stride = data.draw(st.sampled_from(((4, 1), (8, 2), (16, 8), (4, 32), (64, 1))))
    assume(ranks * stride <= whole.num_chips)
    if whole.system.torus:
        apart = [machine_times(one.system, kind, np.array([size]), ranks, stride) for one in (whole, left)]
        assert apart[1][0] >= apart[0][0] * (1 - 1e-12)
        return
    (first_s, first), (second_s, second) = (
        collective_times(one.system.apart(stride), kind, np.array([size]), ranks) for one in (whole, left)
    )
    if first == second:
        assert second_s[0] >= first_s[0] * (1 - 1e-12)


@pytest.mark.parametrize("kind", ["all-gather", "all-reduce", "all-to-all"])
def test_a_dead_router_leaves_the_others_as_narrow_as_they_were(kind: Collective) -> None:
    """Its chips go by their domain's other ports; what binds between two routers that work still does."""
    left = cluster_from(ON["hyperx"], CATALOG, failures=(Failure(switches=(0,)),))
    before, after = (time_collective(one, kind, 1e9).choice.time_s for one in (WHOLE["hyperx"], left))
    assert after >= before * (1 - 1e-12)
    narrow = {cut.name: cut.pair_bytes_per_s for cut in left.system.cuts}
    assert narrow["leaf"] == WHOLE["hyperx"].system.cuts[0].pair_bytes_per_s > 0


@each_fabric
def test_no_two_chips_talk_when_a_whole_level_is_out(name: str) -> None:
    fabric = design_of(ON[name], CATALOG).fabric
    tier = fabric.node_tier[fabric.num_hosts :]
    levels = [tuple(np.flatnonzero(tier == level).tolist()) for level in np.unique(tier)]
    parts = [Failure(switches=level) for level in levels] or [Failure(links=tuple(range(fabric.num_links)))]
    if has_ports(fabric):
        parts.append(Failure(nics=tuple(range(fabric.num_hosts))))
    for failure in parts:
        with pytest.raises(InfeasibleError) as caught:
            cluster_from(ON[name], CATALOG, failures=(failure,))
        assert caught.value.field == "failure"


def test_a_slow_scale_up_switch_slows_what_stays_inside_its_domain() -> None:
    fabric = WHOLE["fat-tree"].design.fabric  # type: ignore[union-attr]
    crossbar = int(np.flatnonzero(fabric.node_tier[fabric.num_hosts :] == SCALE_UP_TIER)[0])
    half = cluster_from(ON["fat-tree"], CATALOG, failures=(Failure(switches=(crossbar,), left_fraction=0.5),))
    inside = [
        float(group_times(one.system, "all-gather", np.array([8e9]), np.array([8.0]), np.array([1.0]))[0])
        for one in (WHOLE["fat-tree"], half)
    ]
    assert inside[1] == pytest.approx(2 * inside[0], rel=0.02)  # bytes alone, at such a size
    assert half.system.nic_bytes_per_s == WHOLE["fat-tree"].system.nic_bytes_per_s


def test_a_chip_of_a_torus_that_lost_a_link_sends_over_the_five_that_are_left() -> None:
    whole = WHOLE["torus"]
    broken = cluster_from(ON["torus"], CATALOG, failures=(Failure(links=(0,)),))
    slow, fast = (time_collective(one, "all-gather", 1e9).choice.time_s for one in (broken, whole))
    link = float(whole.design.fabric.link_bytes_per_s[0])  # type: ignore[union-attr]
    assert slow >= 127 / 128 * 1e9 / (5 * link) > fast


FAILURES = (
    Failure(nics=(3,)),
    Failure(switches=(8, 9)),  # of four spines
    Failure(switches=(8, 9, 10, 11), left_fraction=0.25),
    Failure(nics=tuple(range(7))),
)


@pytest.mark.parametrize("failure", FAILURES)
def test_training_and_serving_stand_on_what_is_left(failure: Failure) -> None:
    design = FabricDesign(topology="clos", radix=16, chips=64, domain=8)
    job = Job(model=CATALOG.model("llama-3.1-8b"), seq=8192, global_batch=64)
    space = Space.of(Layout(tp=2, dp=32, micro_batch=1, recompute="full"))
    wirings = (Wiring(design), Wiring(design, (failure,)))
    steps = [
        float(
            step_times(
                job,
                cluster_from(one.design, CATALOG, failures=one.failures),
                space,
                framework("megatron-2022"),
            ).step_s[0]
        )
        for one in wirings
    ]
    assert steps[1] > steps[0]
    model = CATALOG.model("deepseek-v3")
    asked = Deployment(chip="h100-sxm", tp=1, dp=32, ep=32, precision="fp8")
    sent = [
        float(exchange(replica_of(asked, model, CATALOG, one), np.array([2048.0])).expert_s[0])
        for one in wirings
    ]
    assert sent[1] > sent[0]


def test_a_replica_on_slow_scale_up_links_is_refused_not_ignored() -> None:
    asked = Deployment(chip="h100-sxm", tp=8)
    failure = Failure(chips=(0,), left_fraction=0.5)
    wiring = Wiring(FabricDesign(topology="fat-tree"), (failure,))
    with pytest.raises(ScenarioError, match="scale-up links are slow") as caught:
        replica_of(asked, CATALOG.model("llama-3.1-8b"), CATALOG, wiring)
    assert caught.value.field == "failure"
    with pytest.raises(ScenarioError, match="how the chips are wired"):
        replica_of(asked, CATALOG.model("llama-3.1-8b"), CATALOG, Wiring(failures=(failure,)))


def ask(verb: str, **more: object) -> Answer:
    questions = {
        "collective": lambda: dh.show_collective("all-reduce", chips=64, size="1GB", **more),
        "train": lambda: dh.simulate_train("llama-3.1-8b", chips=64, tp=2, global_batch=128, **more),
        "plan": lambda: dh.plan_train("llama-3.1-8b", chips=64, tokens="1T", **more),
        "serve": lambda: dh.simulate_serve(
            "llama-3.1-8b", chip="h100-sxm", tp=16, rate=1.0, requests=20, **more
        ),
        "service": lambda: dh.plan_serve("llama-3.1-8b", rate=20.0, chips=["h100-sxm"], **more),
        "techniques": lambda: dh.show_techniques("llama-3.1-8b", chip="h100-sxm", tp=8, rate=1.0, **more),
    }
    return questions[verb]()


@pytest.mark.parametrize("verb", ["collective", "train", "plan", "serve", "service", "techniques"])
def test_every_verb_on_a_fabric_says_the_same_of_a_failure(verb: str) -> None:
    with pytest.raises(ScenarioError, match="nics of failure does nothing here: it needs on"):
        ask(verb, failure=[{"nics": [3]}])
    out = list(range(64)) if verb == "plan" else [3]  # a plan leaves some of them idle, not all
    with pytest.raises(InfeasibleError, match="cuts off") as caught:
        ask(verb, on="fat-tree", failure=[{"chips": out}])
    assert caught.value.field == "failure"
    with pytest.raises(ScenarioError, match="no switch 999") as wrong:
        ask(verb, on="fat-tree", failure=[{"switches": [999]}])
    assert wrong.value.field == "failure"


@pytest.mark.parametrize("verb", ["collective", "train", "serve"])
def test_the_share_that_is_left_stands_in_the_figure(verb: str) -> None:
    whole = ask(verb, on="fat-tree").figure
    less = ask(verb, on="fat-tree", failure=[{"nics": [3]}]).figure
    assert whole is not None
    assert less is not None
    assert not leaves(whole)
    assert {(leaf.origin, leaf.value) for leaf in leaves(less)} == {("derived", 7 / 8)}
    assert not false_nodes(less)
    assert less.value > whole.value


def test_replicas_and_parts_of_the_fabric_fail_side_by_side() -> None:
    both = [{"nics": [3]}, {"replicas": [0], "start": "1 s", "duration": "5 s"}]
    slow, slower = (
        ask("serve", on="fat-tree", failure=failures, replicas=2).results["tpot_mean_s"]
        for failures in (both[1:], both)
    )
    assert slower > slow
    with pytest.raises(ScenarioError, match="all the time"):
        ask("serve", on="fat-tree", failure=[{"nics": [3], "start": "1 s"}])
    with pytest.raises(ScenarioError, match="replicas and nics do not go together"):
        ask("serve", on="fat-tree", failure=[{"nics": [3], "replicas": [0]}])
    with pytest.raises(ScenarioError, match="names what is out"):
        ask("serve", on="fat-tree", failure=[{"start": "1 s"}])


def test_ports_are_a_narrow_place_only_where_some_of_them_failed() -> None:
    """Of four spines one is out: leaves have three quarters of their ways out, and every chip its whole port."""
    design = FabricDesign(topology="clos", radix=16, chips=64, domain=8)
    spine = cluster_from(design, CATALOG, failures=(Failure(switches=(8,)),)).system
    assert [(cut.name, cut.left_fraction) for cut in spine.cuts] == [("leaf", pytest.approx(3 / 4))]
    nic = cluster_from(design, CATALOG, failures=(Failure(nics=(8, 9)),)).system
    assert [(cut.name, cut.num_below, cut.left_fraction) for cut in nic.cuts] == [
        ("scale-up domain", 8, pytest.approx(3 / 4)),
        ("leaf", 8, 1.0),
    ]
    assert nic.cuts[0].bytes_per_s == pytest.approx(6 * 50e9)


def test_the_first_few_that_are_cut_off_are_named() -> None:
    design = FabricDesign(topology="clos", radix=16, chips=64, domain=8)
    with pytest.raises(InfeasibleError, match=r"cuts off 8 of 64 chips: 0, 1, 2, 3, 4 …\n"):
        cluster_from(design, CATALOG, failures=(Failure(switches=(0,)),))
    with pytest.raises(InfeasibleError, match=r"cuts off 2 of 64 chips: 3, 9\n"):
        cluster_from(design, CATALOG, failures=(Failure(chips=(9, 3)),))


@pytest.mark.parametrize("on", ["hgx", "torus", "full-mesh"])
def test_where_no_chip_has_a_port_no_port_fails(on: str) -> None:
    design = FabricDesign(topology=on, chips=8)
    with pytest.raises(ScenarioError, match="has no NICs"):
        cluster_from(design, CATALOG, failures=(Failure(nics=(3,), left_fraction=0.5),))


@pytest.mark.parametrize(
    ("failures", "share"),
    [
        ((Failure(nics=(3,), left_fraction=0.5),), 0.5),
        ((Failure(nics=(3,), left_fraction=0.01),), 0.01),
        ((Failure(nics=(3, 4), left_fraction=0.25),), 0.25),
        ((Failure(nics=(3,), left_fraction=0.25), Failure(nics=(11,), left_fraction=0.5)), 0.25),
        ((Failure(nics=(3,)),), 7 / 8),
        ((Failure(nics=(3, 6)),), 6 / 8),
        ((Failure(nics=(3,)), Failure(nics=(4,), left_fraction=0.5)), 7 / 8 * 0.5),
        ((Failure(nics=(3,)), Failure(nics=(12,), left_fraction=0.9)), 7 / 8),
    ],
)
def test_a_port_that_is_slow_keeps_its_part_and_one_that_is_out_leaves_it(
    failures: tuple[Failure, ...], share: float
) -> None:
    """Each channel of a ring has a port of its own, so that all wait for the slowest of those that are left."""
    whole, left = WHOLE["fat-tree"], cluster_from(ON["fat-tree"], CATALOG, failures=failures)
    assert left.system.nic_bytes_per_s == pytest.approx(share * whole.system.nic_bytes_per_s)


@pytest.mark.parametrize("name", ["fat-tree", "clos", "rail-optimised"])
@pytest.mark.parametrize("left", [0.5, 0.1, 0.01])
def test_a_slow_port_slows_what_is_shown_as_it_slows_what_is_simulated(name: str, left: float) -> None:
    """Sprayed, so that no hash puts two flows on a link before the failure does."""
    job = {"collective": "all-reduce", "algorithm": "ring", "ranks": 128, "size": "4GB"}
    both: list[list[Answer]] = [
        [
            dh.show_collective(
                "all-reduce", size="4GB", algorithm="ring", on=name, chips=128, failure=failure
            ),
            dh.simulate_fabric(job=[job], on=name, chips=128, routing="spray", failure=failure),
        ]
        for failure in ([], [{"nics": [3], "left": left}])
    ]
    shown, played = ([one.figure.value for one in way if one.figure] for way in zip(*both, strict=True))
    assert shown[1] / shown[0] == pytest.approx(played[1] / played[0], rel=0.1)


def test_a_slow_port_of_a_part_filled_domain_holds_its_chips_up() -> None:
    """Of twelve chips four are in the second domain: their four ports, one of them at a tenth, carry as four tenths."""
    whole, slow, out = (
        dh.show_collective(
            "all-reduce", on="fat-tree", chips=12, size="4GB", algorithm="ring", failure=failure
        )
        for failure in ([], [{"nics": [9], "left": 0.1}], [{"nics": [9]}])
    )
    assert whole.figure
    assert slow.figure
    assert out.figure
    assert slow.figure.value == pytest.approx(10 * whole.figure.value, rel=0.1)
    assert whole.figure.value < out.figure.value < 2 * whole.figure.value


@pytest.mark.parametrize(
    ("design", "switch"),
    [
        (FabricDesign(topology="nvl72", chips=144), 0),
        (FabricDesign(topology="hyperx", chips=128), 0),
        (FabricDesign(topology="fat-tree", chips=128, domain=64), 0),
    ],
)
def test_a_leaf_that_is_out_leaves_its_chips_the_ports_of_their_domain(
    design: FabricDesign, switch: int
) -> None:
    """Its domain hangs on other leaves, too: nobody is cut off, and its ports are fewer by those of the leaf."""
    whole = cluster_from(design, CATALOG)
    left = cluster_from(design, CATALOG, failures=(Failure(switches=(switch,)),))
    assert whole.design is not None
    fabric = whole.design.fabric
    held = fabric.link_target[: fabric.num_network_links] == fabric.num_hosts + switch
    chips = fabric.link_source[: fabric.num_network_links][held]
    chips = chips[chips < fabric.num_hosts]
    most = max(np.bincount(fabric.domain[chips]))
    share = left.system.nic_bytes_per_s / whole.system.nic_bytes_per_s
    assert 0 < share == pytest.approx(1 - most / whole.system.num_domain)
    assert all(cut.bytes_per_s > 0 for cut in left.system.cuts)


def test_a_slow_chip_of_one_server_is_felt_and_not_said_to_do_nothing() -> None:
    asked = {"model": "llama-3.1-8b", "zero": 3, "global_batch": 256, "on": "hgx", "chips": 8}
    whole, slow = (
        dh.simulate_train(**asked, failure=failure) for failure in ([], [{"chips": [5], "left": 0.1}])
    )
    assert slow.results["step_s"] > 1.5 * whole.results["step_s"]
    assert not any("failure" in note and "nothing" in note for note in slow.notes)


@pytest.mark.parametrize(
    ("failure", "share"),
    [
        (Failure(links=tuple(range(56)), left_fraction=0.1), 0.1),
        (Failure(chips=(5,), left_fraction=0.1), 0.1),
        (Failure(links=(0,), left_fraction=0.5), 0.5),
        (Failure(links=(0,)), 6 / 7),
        (Failure(links=(0, 1)), 5 / 7),
    ],
)
def test_links_of_a_full_mesh_that_are_slow_keep_their_part_and_those_out_leave_it(
    failure: Failure, share: float
) -> None:
    whole, left = WHOLE["full mesh"], cluster_from(ON["full mesh"], CATALOG, failures=(failure,))
    assert left.system.scale_up_bytes_per_s == pytest.approx(share * whole.system.scale_up_bytes_per_s)


@pytest.mark.parametrize(("uplink", "pod", "cables"), [(0, 96, 48), (-1, 8, 24)])
@pytest.mark.parametrize("left", [0.1, 0.5])
def test_what_is_left_of_a_pod_is_measured_against_pods_of_its_size(
    uplink: int, pod: int, cables: int, left: float
) -> None:
    """Two pods, of 96 chips behind 48 cables and of 8 behind 24: one slow cable is a share of those of its own pod."""
    design = FabricDesign(topology="rail-optimised", chips=104, radix=12, domain=4, oversubscription=(2.0,))
    whole = cluster_from(design, CATALOG)
    fabric = whole.design.fabric  # type: ignore[union-attr]
    link = int(np.flatnonzero(fabric.node_tier[fabric.link_target] == fabric.num_tiers)[uplink])
    failures = (Failure(links=(link,), left_fraction=left),)
    after = cluster_from(design, CATALOG, failures=failures)
    share = (cables - 1 + left) / cables
    figure = time_collective(after, "all-to-all", 1e10).figure
    ways = [part for _, part in figure.walk() if part.name == "way out of a pod"]
    slowed = [way for way in ways if LEFT in {part.name for part in way.parts}]
    assert [way.at("links out of it").note for way in slowed] == [f"for {pod} chips"]
    assert [way.at("links out of it").value for way in slowed] == pytest.approx([cables])
    assert [way.at(LEFT).value for way in slowed] == pytest.approx([share])
    assert [way.value for way in slowed] == pytest.approx([cables * share * whole.system.nic_bytes_per_s])
    joined = Joined(after.chip, after.system, after.num_chips)
    assert "failure" not in idle_inputs_of_groups(Wiring(design, failures), [joined], CATALOG)

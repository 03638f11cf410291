"""What offloading moves and what of it shows, worked out by hand with round rates.

A micro-batch takes 9 s, of which forward is 3 and backward 6, and there are four of them.  The link carries 10 B/s, the
drives 4 B/s and the host's memory 100 B/s.
"""

from __future__ import annotations

from math import inf, isnan, nan

import msgspec
import numpy as np
import pytest
from tests.workload.tiny import FULL, MOE, tiny

from datahall.catalog import Catalog
from datahall.catalog.entries.model import Layer
from datahall.cluster.cluster import cluster_of
from datahall.cluster.host import Host, host_of
from datahall.errors import ScenarioError
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.memory.bookkeeping import BOOKS
from datahall.training.memory.offload import (
    Line,
    Traffic,
    exposed_times,
    held_bytes,
    offload_lines,
    traffic_of,
)
from datahall.training.memory.peak import peak_memory
from datahall.training.memory.remedy import Remedy, Shortage, host_holds, least_bytes, remedies
from datahall.training.step.framework import Framework, framework
from datahall.training.step.step import Job
from datahall.workload.memory.recipe import RECIPES

SHELF = Catalog(user=False)
H100 = SHELF.chip("h100-sxm")
KIT = msgspec.structs.replace(framework("nemo"), gradient_bytes=4.0)
HOST = Host(
    link_bytes_per_s=10.0,
    memory_bytes=1000.0,
    memory_bytes_per_s=100.0,
    nvme_bytes=2000.0,
    nvme_bytes_per_s=4.0,
)
TRAFFIC = Traffic(
    owned_values=np.array([100.0]),
    weight_bytes=np.array([60.0]),
    kept_bytes=np.array([45.0]),
    num_in_flight=np.array([3.0]),
    value_bytes=2.0,
    recipe=BOOKS["nemo"].recipe,
)


def shown(
    *offload: str, host: Host = HOST, traffic: Traffic = TRAFFIC, kit: Framework = KIT
) -> tuple[float, float, float]:
    """Seconds that optimizer, parameters and activations add to a step."""
    space = Space.of(Layout(offload=offload))
    found = exposed_times(host, kit, space, traffic, np.array([9.0]), np.array([4.0]))
    parts = (found.optimizer_s, found.parameters_s, found.activations_s)
    assert found.total_s[0] == pytest.approx(sum(float(part[0]) for part in parts))
    return tuple(float(part[0]) for part in parts)  # type: ignore[return-value]


def test_what_stays_shows_nothing() -> None:
    assert shown() == (0, 0, 0)


def test_parameters_are_fetched_for_forward_and_again_for_backward() -> None:
    """60 bytes take 6 s: 3 more than forward, none more than backward.  From drives 15 s: 12 and 9 more."""
    assert shown("parameters") == (0, 4 * 3, 0)
    assert shown("parameters:nvme") == (0, 4 * (12 + 9), 0)


def test_activations_go_down_beside_forward_and_come_back_beside_backward() -> None:
    """45 bytes take 4.5 s: 1.5 more than forward.  To drives 11.25 s: 8.25 and 5.25 more."""
    assert shown("activations") == (0, 0, 4 * 1.5)
    assert shown("activations:nvme") == (0, 0, pytest.approx(4 * (8.25 + 5.25)))


def test_in_backward_weights_and_activations_share_the_way_up() -> None:
    """Forward: the longer of 6 and 4.5 s, up and down; backward: 10.5 s one after the other, 4.5 more than 6."""
    assert shown("parameters", "activations") == (0, 12, pytest.approx(4 * (3 + 4.5) - 12))


def test_the_host_updates_after_the_gradients_are_down() -> None:
    """400 bytes of gradients take 40 s, 34 of them past backward.  Then the longest of the update, 30 bytes of 100
    values at 80 B/s, of 16-bit weights going up, 20 s, and of the drives' 24 bytes in and out."""
    assert shown("optimizer") == (pytest.approx(34 + 37.5), 0, 0)
    assert shown("optimizer:nvme") == (pytest.approx(100 - 6 + 600), 0, 0)
    unknown = msgspec.structs.replace(HOST, memory_bytes_per_s=nan)
    assert shown("optimizer", host=unknown) == (pytest.approx(34 + 20), 0, 0)
    quick = msgspec.structs.replace(HOST, link_bytes_per_s=1e6)
    assert shown("optimizer", host=quick) == (pytest.approx(37.5), 0, 0)


def test_wide_weights_come_back_in_four_bytes_and_so_do_their_gradients_go_down() -> None:
    """400 bytes of gradients and 400 of weights, though the framework sends 16 bits where it has them; the update goes
    over 2·8 bytes of moments, 4 of gradient and 2·4 of weight, which has no wider copy: 35 s."""
    wide = msgspec.structs.replace(TRAFFIC, value_bytes=4.0, recipe=RECIPES["fp32"])
    narrow = msgspec.structs.replace(KIT, gradient_bytes=2.0)
    assert shown("optimizer", traffic=wide) == shown("optimizer", traffic=wide, kit=narrow)
    assert shown("optimizer", traffic=wide, kit=narrow) == (pytest.approx(34 + 40), 0, 0)
    quick = msgspec.structs.replace(HOST, link_bytes_per_s=1e6)
    assert shown("optimizer", host=quick, traffic=wide, kit=narrow) == (pytest.approx(35), 0, 0)
    (line,) = lines("optimizer", traffic=wide, kit=narrow)
    assert (line.held_bytes, line.moved_bytes) == (800, 800)


def test_rows_that_offload_nothing_are_not_slowed_by_those_that_do() -> None:
    space = Space.of([Layout(), Layout(offload=("activations",))])
    columns = ("owned_values", "weight_bytes", "kept_bytes", "num_in_flight")
    twice = msgspec.structs.replace(
        TRAFFIC, **{name: np.repeat(getattr(TRAFFIC, name), 2) for name in columns}
    )
    found = exposed_times(HOST, KIT, space, twice, np.full(2, 9.0), np.full(2, 4.0))
    assert found.total_s.tolist() == [0, 6]


def test_a_rate_nobody_knows_is_refused_only_where_it_is_needed() -> None:
    nothing = Host()
    assert shown(host=nothing) == (0, 0, 0)
    with pytest.raises(ScenarioError, match="parameters cannot go to host"):
        shown("parameters", host=nothing)
    no_drives = msgspec.structs.replace(HOST, nvme_bytes_per_s=nan)
    assert shown("parameters", host=no_drives) == (0, 12, 0)
    with pytest.raises(ScenarioError, match="activations cannot go to nvme"):
        shown("parameters", "activations:nvme", host=no_drives)


def lines(
    *offload: str, slot_s: float = 9.0, host: Host = HOST, traffic: Traffic = TRAFFIC, kit: Framework = KIT
) -> list[Line]:
    space = Space.of(Layout(offload=offload))
    found = offload_lines(host, kit, space, traffic, np.array([slot_s]), np.array([4.0]))
    return list(found)


def test_a_line_says_what_is_held_moved_needed_and_shown() -> None:
    """Parameters: 60 bytes in 3 s of forward; four micro-batches fetch them twice.  Activations of three micro-batches
    lie outside at once."""
    parameters, activations = lines("parameters", "activations:nvme")
    assert (parameters.what, parameters.tier) == ("parameters", "host")
    assert (parameters.held_bytes, parameters.capacity_bytes) == (60, 1000)
    assert (parameters.moved_bytes, parameters.needed_bytes_per_s) == (480, 20)
    assert (parameters.there_bytes_per_s, parameters.exposed_s) == (10, 12)
    assert not parameters.keeps_up
    assert (activations.held_bytes, activations.capacity_bytes) == (135, 2000)
    assert (activations.moved_bytes, activations.needed_bytes_per_s) == (360, 15)
    assert activations.there_bytes_per_s == 4


def test_the_optimizers_line_needs_the_wider_of_gradients_down_and_state_beside_the_update() -> None:
    """Slots of 90 s: 400 bytes in 60 s; 200 bytes of weights, or 2,400 of state on drives, in 37.5 s of the update."""
    (host,) = lines("optimizer", slot_s=90.0)
    assert host.needed_bytes_per_s == pytest.approx(400 / 60)
    assert (host.held_bytes, host.moved_bytes) == (1200, 600)
    assert host.keeps_up
    assert not host.fits
    (drives,) = lines("optimizer:nvme", slot_s=90.0)
    assert drives.needed_bytes_per_s == pytest.approx(2400 / 37.5)
    assert drives.moved_bytes == 600 + 2400
    assert drives.fits
    (long,) = lines("optimizer", slot_s=900.0)
    assert long.needed_bytes_per_s == pytest.approx(200 / 37.5)
    (unknown,) = lines("optimizer", slot_s=900.0, host=msgspec.structs.replace(HOST, memory_bytes_per_s=nan))
    assert unknown.needed_bytes_per_s == pytest.approx(400 / 600)


@pytest.mark.parametrize(("held", "capacity", "fits"), [(10, 10, True), (11, 10, False), (11, nan, True)])
def test_a_line_fits_unless_it_is_known_not_to(held: float, capacity: float, fits: bool) -> None:
    line = Line(
        what="optimizer", tier="host", held_bytes=held, capacity_bytes=capacity, moved_bytes=1.0,
        needed_bytes_per_s=5.0, there_bytes_per_s=5.0, exposed_s=0.0,
    )  # fmt: skip
    assert line.fits == fits
    assert line.keeps_up  # what is needed is just there


def traffic(job: Job, layout: Layout) -> Traffic:
    space = Space.of(layout)
    num_micro = np.array([job.global_batch / (layout.dp * layout.micro_batch)])
    return traffic_of(job, space, BOOKS["nemo"], num_micro)


@pytest.mark.parametrize(
    ("zero", "owned", "weights"), [(0, 1156, 1156), (1, 289, 1156), (2, 289, 1156), (3, 289, 289)]
)
def test_a_chip_moves_its_share(zero: int, owned: float, weights: float) -> None:
    """Four layers of 496, a final norm of 8 and tables of 320 over two chips; four ranks share them."""
    job = Job(model=tiny(*(FULL,) * 4), seq=5, global_batch=24)
    layout = Layout(tp=2, dp=4, zero=zero, micro_batch=3, offload=("optimizer",))
    found = traffic(job, layout)
    assert found.owned_values.tolist() == [owned]
    assert found.weight_bytes.tolist() == [2 * weights]
    assert found.kept_bytes.tolist() == [0]


def test_the_share_of_experts_is_that_of_their_own_ranks() -> None:
    """ep 2 of four ranks: half of the experts, shared by two."""
    kind = Layer(mixer="full", mlp="moe")
    job = Job(model=tiny(kind, kind, moe=MOE), seq=5, global_batch=12)
    dense, expert = 2 * 488 + 8 + 320, 576
    found = traffic(job, Layout(dp=4, ep=2, zero=1, offload=("optimizer",)))
    assert found.owned_values.tolist() == [dense / 4 + expert / 2]
    assert found.weight_bytes.tolist() == [2 * (dense + expert)]
    cut = traffic(job, Layout(dp=4, ep=2, zero=3, offload=("optimizer",)))
    assert cut.weight_bytes.tolist() == [2 * (dense / 4 + expert / 2)]


def test_activations_that_move_are_those_of_a_stage() -> None:
    """Four layers of 3,000 bytes over two stages; two micro-batches in flight on the first."""
    job = Job(model=tiny(*(FULL,) * 4), seq=5, global_batch=12)
    found = traffic(job, Layout(pp=2, micro_batch=3, offload=("activations",)))
    assert found.kept_bytes.tolist() == [6000]
    assert found.num_in_flight.tolist() == [2]
    held = held_bytes(found)
    assert held["activations"].tolist() == [12000]
    assert held["optimizer"].tolist() == [12 * (1992 / 2 + 160)]
    assert held["parameters"].tolist() == [2 * (1992 / 2 + 160)]


def test_tiers_are_held_apart() -> None:
    """12 bytes of 2,312 values on the host, 2 on drives: each tier is asked for its own part alone."""
    job = Job(model=tiny(*(FULL,) * 4), seq=5, global_batch=3)
    layouts = [
        Layout(offload=("optimizer",)),
        Layout(offload=("optimizer", "parameters")),
        Layout(offload=("optimizer", "parameters:nvme")),
        Layout(offload=("optimizer:nvme",)),
        Layout(),
    ]

    def holds(memory: float, drives: float) -> list[bool]:
        host = Host(link_bytes_per_s=1.0, memory_bytes=memory, nvme_bytes=drives, nvme_bytes_per_s=1.0)
        cluster = msgspec.structs.replace(cluster_of(H100, 1), host=host)
        return host_holds(job, cluster, Space.of(layouts), BOOKS["nemo"]).tolist()

    assert holds(27744.0, 4624.0) == [True, False, True, False, True]
    assert holds(27743.0, 27744.0) == [False, False, False, True, True]
    assert holds(32368.0, 4623.0) == [True, True, False, False, True]
    assert holds(nan, nan) == [True] * 5
    assert host_holds(job, cluster_of(H100, 1), Space.of(Layout()), BOOKS["nemo"]).tolist() == [True]


def test_a_tier_is_as_fast_as_its_narrowest_part() -> None:
    assert HOST.tier_bytes_per_s("host") == 10
    assert HOST.tier_bytes_per_s("nvme") == 4
    assert msgspec.structs.replace(HOST, nvme_bytes_per_s=40.0).tier_bytes_per_s("nvme") == 10
    assert isnan(msgspec.structs.replace(HOST, nvme_bytes_per_s=nan).tier_bytes_per_s("nvme"))
    assert (HOST.tier_bytes("host"), HOST.tier_bytes("nvme")) == (1000, 2000)


def test_a_host_is_a_chips_share_of_the_first_server_that_says_what_it_has() -> None:
    server = SHELF.server("dgx-h100")
    silent = msgspec.structs.replace(server, host_memory_bytes=nan, title="silent")
    other = msgspec.structs.replace(server, chip="other", title="other")
    small = msgspec.structs.replace(
        server, title="small", num_chips=2, host_memory_bytes=100.0, host_memory_bytes_per_s=40.0, nvme_bytes=60.0,
        nvme_bytes_per_s=8.0,
    )  # fmt: skip
    found = host_of(H100, [silent, other, small, server])
    assert found.title == "small"
    assert (found.memory_bytes, found.memory_bytes_per_s) == (50, 20)
    assert (found.nvme_bytes, found.nvme_bytes_per_s) == (30, 4)
    assert found.link == H100.host_link


def test_the_link_is_measured_where_it_was() -> None:
    chip = msgspec.structs.replace(H100, host_bytes_per_s=64e9, measured_host_bytes_per_s=55e9)
    assert host_of(chip).link_bytes_per_s == 55e9
    assert host_of(msgspec.structs.replace(chip, measured_host_bytes_per_s=nan)).link_bytes_per_s == 64e9


def test_a_cluster_takes_the_chips_network_unless_told_otherwise() -> None:
    assert cluster_of(H100, 16).system.nic_bytes_per_s == H100.nic_bytes_per_s
    assert cluster_of(H100, 16, nic_bytes_per_s=1e9).system.nic_bytes_per_s == 1e9
    assert cluster_of(H100, 1).num_chips == 1
    silent = msgspec.structs.replace(H100, nic_bytes_per_s=nan)
    assert cluster_of(silent, 16).system.nic_bytes_per_s in {
        0.0,
        H100.nic_bytes_per_s,
    }  # none, or its fabric's own
    with pytest.raises(ScenarioError, match="how many chips"):
        cluster_of(H100, 0)


BIG = Job(model=SHELF.model("llama-3.1-70b"), seq=8192, global_batch=64)


def changes(layout: Layout, job: Job = BIG, *, host: bool = True) -> dict[str, Layout]:
    cluster = cluster_of(H100, layout.num_chips, servers=SHELF.servers() if host else ())
    if not host:
        cluster = msgspec.structs.replace(cluster, host=Host())
    return {one.change: one.layout for one in remedies(job, cluster, layout, KIT, BOOKS["nemo"])}


def test_every_single_change_is_offered() -> None:
    layout = Layout(tp=4, pp=2, vpp=2, dp=8, micro_batch=2)
    found = changes(layout)

    def but(**fields: object) -> Layout:
        return msgspec.structs.replace(layout, **fields)

    assert found == {
        "recompute selective": but(recompute="selective"),
        "recompute full": but(recompute="full"),
        "zero 2": but(zero=2),
        "optimizer on the host": but(offload=("optimizer",)),
        "parameters on the host": but(offload=("parameters",)),
        "activations on the host": but(offload=("activations",)),
        "micro-batch 1": but(micro_batch=1),
        "tp 8": but(tp=8, dp=4),
        "pp 4": but(pp=4, dp=4),
        "cp 2": but(cp=2, dp=4),
        "pp 4 with vpp 1": but(pp=4, vpp=1, dp=4),
    }


def test_changes_that_cannot_be_made_are_not_offered() -> None:
    bare = Layout(tp=8, recompute="full", zero=3)
    assert set(changes(bare)) == {"optimizer on the host", "parameters on the host"}
    assert changes(bare, host=False) == {}
    some = Layout(tp=8, recompute="selective", zero=3)
    assert set(changes(some, host=False)) == {"recompute full"}  # what needs no host is still offered
    moved = msgspec.structs.replace(bare, offload=("optimizer:nvme",))
    assert set(changes(moved)) == {"parameters on the host"}
    selective = Layout(tp=8, dp=3, zero=3, recompute="selective", modules=("layernorm",))
    found = changes(selective, msgspec.structs.replace(BIG, global_batch=63))
    assert set(found) & {"recompute selective", "recompute none", "tp 16", "cp 2", "zero 4"} == set()
    assert found["recompute full"].modules == ()


def test_experts_spread_over_no_more_than_the_chips_of_a_stage() -> None:
    job = Job(model=SHELF.model("qwen3-30b-a3b"), seq=4096, global_batch=64)
    assert changes(Layout(dp=8, ep=4), job)["ep 8"].ep == 8
    assert "ep 16" not in changes(Layout(dp=8, ep=8), job)
    assert changes(Layout(dp=2, cp=2, tp=2, ep=4), job)["ep 8"].ep == 8


def remedy(name: str, free: float, step_s: float) -> Remedy:
    return Remedy(change=name, layout=Layout(), headroom_bytes=free, step_s=step_s)


def shortage(*found: Remedy) -> Shortage:
    return Shortage(
        layout=Layout(), over_bytes=3e9, total_bytes=83e9, limit_bytes=80e9, stage=2, part="weights", part_bytes=50e9,
        remedies=found,
    )  # fmt: skip


def test_the_cheapest_change_is_the_first_that_fits() -> None:
    assert remedy("a", 0.0, 1.0).fits
    assert not remedy("a", -1.0, 1.0).fits
    first = shortage(remedy("short", -1.0, 1.0), remedy("fits", 0.0, 2.0), remedy("slow", 5.0, 3.0))
    assert first.cheapest is not None
    assert first.cheapest.change == "fits"
    none = shortage(remedy("far", -9e9, 1.0), remedy("near", -2e9, 9.0))
    assert none.cheapest is None
    assert "the nearest is near, still 2 GB short" in none.advice
    assert "no single change is legal" in shortage().advice


def test_changes_that_fit_come_first_and_the_others_by_what_they_lack() -> None:
    layout = Layout(tp=8, dp=8)
    job = Job(model=SHELF.model("llama-3.1-70b"), seq=8192, global_batch=256)
    found = remedies(job, cluster_of(H100, 64, servers=SHELF.servers()), layout, KIT, BOOKS["nemo"])
    fits = [one.fits for one in found]
    assert fits == sorted(fits, reverse=True)
    assert 0 < sum(fits) < len(fits)
    quick = [one.step_s for one in found if one.fits]
    lacking = [one.headroom_bytes for one in found if not one.fits]
    assert quick == sorted(quick)
    assert lacking == sorted(lacking, reverse=True)


def test_the_row_nearest_to_fitting_takes_the_least() -> None:
    layouts = [Layout(tp=1), Layout(tp=8), Layout(tp=4)]
    memory = peak_memory(BIG, H100, Space.of(layouts), BOOKS["nemo"])
    assert least_bytes(memory) == 1
    assert inf > float(memory.total_bytes[0]) > float(memory.total_bytes[2])

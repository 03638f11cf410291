"""The cliff: what a working set costs once it outgrows a level of memory."""

from __future__ import annotations

import math
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip, Level
from datahall.errors import ScenarioError, UnsupportedError
from datahall.silicon.hierarchy import CLIFF_POLICIES, Cliff, Step, cliff, curves, holding_places, scan, steps

CATALOG = Catalog(user=False)
WITH_BANDWIDTH = [chip for chip in CATALOG.chips() if math.isfinite(chip.memory_bytes_per_s)]
WITH_HOST = [chip for chip in WITH_BANDWIDTH if math.isfinite(chip.host_bytes_per_s)]

few = settings(max_examples=60, deadline=None)
machines = st.sampled_from(WITH_BANDWIDTH)
sizes = st.floats(1.0, 1e12)


def seconds(found: Cliff) -> float:
    return float(found.time_s[0])


@pytest.mark.parametrize("chip", WITH_BANDWIDTH, ids=lambda chip: chip.name)
def test_each_level_is_slower_than_the_one_above(chip: Chip) -> None:
    ladder = steps(chip)
    assert ladder[-1].name == "memory"
    for fast, slow in pairwise(ladder):
        assert fast.bytes_per_s > slow.bytes_per_s
        assert fast.drop_ratio == fast.bytes_per_s / slow.bytes_per_s


@pytest.mark.parametrize("name", ["h100-sxm", "a100-sxm-80gb", "mi300x", "h200-sxm"])
def test_the_bandwidth_steps_down_at_each_capacity(name: str) -> None:
    chip = CATALOG.chip(name)
    ladder = steps(chip)
    for fast, slow in pairwise(ladder):
        edge = np.array([fast.capacity_bytes, np.nextafter(fast.capacity_bytes, np.inf)])
        found = cliff(chip, edge)
        assert found.level == (fast.name, slow.name)
        assert found.bytes_per_s == pytest.approx([fast.bytes_per_s, slow.bytes_per_s])


@few
@given(machines, sizes, st.floats(1.0, 10.0), st.sampled_from(CLIFF_POLICIES))
def test_a_larger_working_set_is_never_faster(chip: Chip, size: float, ratio: float, policy: str) -> None:
    small, large = cliff(chip, np.array([size, size * ratio]), policy=policy).time_s
    assert not large < small  # nothing where it fits nowhere


@few
@given(machines, sizes)
def test_pinning_lies_between_no_policy_and_the_faster_level(chip: Chip, size: float) -> None:
    unmanaged, pinned, prefetch = (cliff(chip, size, policy=policy) for policy in CLIFF_POLICIES)
    home = unmanaged.level[0]
    if home == "none":
        return
    ladder = steps(chip)
    index = [step.name for step in ladder].index(home)
    faster = ladder[max(0, index - 1)]
    assert size / faster.bytes_per_s <= seconds(pinned) * (1 + 1e-12)
    assert seconds(pinned) <= seconds(unmanaged) * (1 + 1e-12)
    assert seconds(prefetch) <= seconds(pinned) * (1 + 1e-12)
    assert size / faster.bytes_per_s <= seconds(prefetch) * (1 + 1e-12)


def test_the_three_policies_are_the_equations_of_the_module() -> None:
    chip = CATALOG.chip("h100-sxm")
    memory, host = steps(chip, "host")[-2:]
    size, kept = 3 * memory.capacity_bytes, memory.capacity_bytes
    unmanaged, pinned, prefetch = (
        seconds(cliff(chip, size, policy=one, offload="host")) for one in CLIFF_POLICIES
    )
    assert unmanaged == pytest.approx(size / host.bytes_per_s)
    assert pinned == pytest.approx(kept / memory.bytes_per_s + (size - kept) / host.bytes_per_s)
    assert prefetch == pytest.approx(max(size / memory.bytes_per_s, (size - kept) / host.bytes_per_s))


def test_prefetch_hides_what_fits_under_the_work() -> None:
    """A little over the capacity the rest arrives in time; far over it the slow level sets the pace."""
    chip = CATALOG.chip("h100-sxm")
    memory, host = steps(chip, "host")[-2:]
    hidden = memory.capacity_bytes * (1 + 0.5 * host.bytes_per_s / memory.bytes_per_s)
    near, far = cliff(chip, np.array([hidden, 2 * hidden]), policy="prefetch", offload="host").bytes_per_s
    assert near == pytest.approx(memory.bytes_per_s)
    assert far < 0.1 * memory.bytes_per_s


def test_past_memory_there_is_nothing_without_offload() -> None:
    chip = CATALOG.chip("h100-sxm")
    size = 2 * chip.visible_memory_bytes
    alone, offloaded = cliff(chip, size), cliff(chip, size, offload="host")
    assert alone.level == ("none",)
    assert math.isnan(seconds(alone))
    assert offloaded.level == ("host",)
    assert seconds(offloaded) == size / steps(chip, "host")[-1].bytes_per_s


@pytest.mark.parametrize("chip", WITH_HOST, ids=lambda chip: chip.name)
def test_a_cliff_is_as_steep_as_the_ratio_of_two_bandwidths(chip: Chip) -> None:
    """What one seed says of "1 GB of fast memory": 900 MB at full speed, 1.1 GB a hundred times slower."""
    memory, host = steps(chip, "host")[-2:]
    sizes = memory.capacity_bytes * np.array([0.9, 1.1])
    under, over = cliff(chip, sizes, offload="host").bytes_per_s
    assert under / over == pytest.approx(memory.bytes_per_s / host.bytes_per_s)
    assert under / over == pytest.approx(memory.drop_ratio)


def test_a_hundred_times_slower_is_main_memory_over_a_host_link() -> None:
    """From cache to memory the cliff is a few times; only the way off the chip makes it fifty and more."""
    ladder = {step.name: step for step in steps(CATALOG.chip("h100-sxm"), "host")}
    assert 1.2 < ladder["l2"].drop_ratio < 5
    assert 40 < ladder["memory"].drop_ratio < 120


def test_a_measured_host_link_counts_before_its_datasheet() -> None:
    chip = Chip(
        name="x", title="X", vendor="", family="hopper", memory_bytes=1e9, memory_bytes_per_s=1e12,
        host_bytes_per_s=6.4e10, measured_host_bytes_per_s=5e10,
        levels=(
            Level(name="memory", capacity_bytes=1e9, bytes_per_s=1e12),
            Level(name="host", bytes_per_s=6.4e10),
        ),
    )  # fmt: skip
    memory, host = steps(chip, "host")
    assert host.bytes_per_s == 5e10
    assert memory.drop_ratio == 20


def test_what_is_kept_on_nvme_does_not_pass_through_the_hosts_memory() -> None:
    chips = [chip for chip in WITH_HOST if any(level.name == "nvme" for level in chip.levels)]
    assert chips
    for chip in chips:
        assert [step.name for step in steps(chip, "nvme")][-2:] == ["memory", "nvme"]
        memory, drive = steps(chip, "nvme")[-2:]
        ahead = scan(chip, 1.5 * memory.capacity_bytes, policy="prefetch", offload="nvme")
        assert ahead is not None
        assert ahead.level == "nvme"
        assert ahead.figure.value == pytest.approx(0.5 * memory.capacity_bytes / drive.bytes_per_s)


def test_a_place_is_named_only_where_it_holds_the_working_set() -> None:
    chip = CATALOG.chip("h100-sxm")
    assert holding_places(chip, 1e12) == ("host", "nvme")
    assert holding_places(chip, 3e12) == (
        "nvme",
    )  # a server's memory is taken to hold 2 TB, its drives 3.84 TB
    assert holding_places(chip, 30e12) == ()
    assert scan(chip, 30e12, offload="host") is None


@pytest.mark.parametrize("size", [0.0, -1.0, math.nan, math.inf])
def test_a_working_set_has_a_size(size: float) -> None:
    with pytest.raises(ScenarioError, match="larger than zero"):
        cliff(CATALOG.chip("h100-sxm"), np.array([1e6, size]))


def test_unknown_policies_and_places_name_those_there_are() -> None:
    chip = CATALOG.chip("h100-sxm")
    with pytest.raises(ScenarioError, match="unmanaged, pinned, prefetch"):
        cliff(chip, 1e6, policy="magic")
    with pytest.raises(ScenarioError, match="none, host, nvme"):
        steps(chip, "tape")


def test_a_chip_without_published_bandwidths_is_refused() -> None:
    blank = Chip(
        name="x", title="X", vendor="", family="hopper", levels=(Level(name="memory", capacity_bytes=1e9),)
    )
    with pytest.raises(UnsupportedError, match="no memory level of X"):
        steps(blank)
    known = Chip(
        name="x", title="X", vendor="", family="hopper",
        levels=(Level(name="memory", capacity_bytes=1e9, bytes_per_s=1e12),),
    )  # fmt: skip
    with pytest.raises(UnsupportedError, match="bandwidth of X to its host"):
        steps(known, "host")


TOY = Chip(
    name="toy", title="Toy", vendor="", family="hopper", memory_bytes=1000.0, memory_bytes_per_s=10.0,
    levels=(
        Level(name="registers", capacity_bytes=10.0, bytes_per_s=1e9),
        Level(name="l1", capacity_bytes=50.0),
        Level(name="l2", capacity_bytes=100.0, bytes_per_s=100.0),
        Level(name="memory", capacity_bytes=1000.0, bytes_per_s=10.0),
        Level(name="host", bytes_per_s=1.0),
        Level(name="nvme", capacity_bytes=3e12, bytes_per_s=0.1),
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("size", "policy", "time_s", "home"),
    [
        (100.0, "unmanaged", 1.0, "l2"),
        (100.0, "prefetch", 1.0, "l2"),
        (200.0, "unmanaged", 20.0, "memory"),
        (200.0, "pinned", 1.0 + 10.0, "memory"),  # 100 bytes stay in the cache
        (200.0, "prefetch", 10.0, "memory"),
        (105.0, "prefetch", 1.05, "memory"),  # five bytes come in half a second, behind the work on all
        (2000.0, "pinned", 100.0 + 1000.0, "host"),
        (2000.0, "prefetch", 1000.0, "host"),
        (2000.0, "unmanaged", 2000.0, "host"),
    ],
)
def test_a_scan_by_hand(size: float, policy: str, time_s: float, home: str) -> None:
    found = cliff(TOY, size, policy=policy, offload="host")
    assert found.level == (home,)
    assert found.time_s[0] == pytest.approx(time_s)
    assert found.bytes_per_s[0] == pytest.approx(size / time_s)
    one = scan(TOY, size, policy=policy, offload="host")
    assert one is not None
    assert one.figure.value == pytest.approx(time_s)  # and the chain of it


def test_curves_begin_inside_the_smallest_level() -> None:
    drawn = curves(TOY)
    assert drawn.sizes_bytes[0] == pytest.approx(25.0)
    assert drawn.rates_bytes_per_s["unmanaged"][0] == pytest.approx(100.0)
    assert drawn.sizes_bytes[-1] == pytest.approx(1000.0)
    assert drawn.rates_bytes_per_s["unmanaged"][-1] == pytest.approx(10.0)


def test_levels_by_hand() -> None:
    """Neither registers nor a cache of unknown speed; each level over the next."""
    assert [(one.name, one.drop_ratio) for one in steps(TOY)][:1] == [("l2", 10.0)]
    assert [one.name for one in steps(TOY)] == ["l2", "memory"]
    l2, memory, nvme = steps(TOY, "nvme")
    assert (l2.drop_ratio, memory.drop_ratio) == pytest.approx((10.0, 100.0))
    assert math.isnan(nvme.drop_ratio)
    assert nvme.capacity_bytes == 3e12
    assert steps(TOY, "host")[-1].capacity_bytes == 2e12  # of a usual server
    assert [one.name for one in steps(TOY, "host")] == ["l2", "memory", "host"]
    assert memory.capacity_bytes == 1000.0
    visible = steps(msgspec.structs.replace(TOY, visible_memory_bytes=900.0))
    assert [one.capacity_bytes for one in visible] == [100.0, 900.0]


def test_each_place_to_offload_to_needs_a_bandwidth() -> None:
    no_drives = msgspec.structs.replace(TOY, levels=TOY.levels[:-1])
    assert len(steps(no_drives, "host")) == 3
    with pytest.raises(UnsupportedError, match="to its nvme"):
        steps(no_drives, "nvme")
    sizeless = msgspec.structs.replace(TOY, levels=(*TOY.levels[:-1], Level(name="nvme", bytes_per_s=0.1)))
    with pytest.raises(UnsupportedError, match="capacity of the nvme of Toy is not known"):
        steps(sizeless, "nvme")
    unknown = msgspec.structs.replace(TOY, levels=(*TOY.levels[:-2], Level(name="host")))
    with pytest.raises(UnsupportedError, match="to its host"):
        steps(unknown, "host")


@pytest.mark.parametrize("size", [0.0, -1.0, math.inf])
def test_one_size_that_is_none_spoils_all(size: float) -> None:
    with pytest.raises(ScenarioError, match="larger than zero"):
        cliff(TOY, np.array([size, 5.0]))


def test_a_working_set_is_counted_in_the_capacity_of_a_level() -> None:
    level = Step(name="memory", capacity_bytes=80e9, bytes_per_s=3e12, drop_ratio=math.nan)
    assert level.fill_ratio(200e9) == pytest.approx(2.5)
    assert level.chips_to_hold(200e9) == 3
    assert level.chips_to_hold(80e9) == 1
    assert level.chips_to_hold(80e9 + 1) == 2
    assert level.fill_ratio(level.filled_bytes(0.5)) == pytest.approx(0.5)


def test_a_scan_says_how_much_slower_than_the_fastest_level_it_is() -> None:
    chip = CATALOG.chip("h100-sxm")
    fastest, *_, slowest = steps(chip)
    inside = scan(chip, fastest.capacity_bytes / 2)
    assert inside is not None
    assert inside.slowdown_ratio == pytest.approx(1.0)
    outside = scan(chip, slowest.capacity_bytes)
    assert outside is not None
    assert outside.slowdown_ratio == pytest.approx(math.prod(step.drop_ratio for step in steps(chip)[:-1]))

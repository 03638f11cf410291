"""What NCCL takes, what it costs, and what cannot be asked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import datahall as dh
from datahall.errors import InfeasibleError, ScenarioError
from datahall.fabric.collectives.algorithms.bus import COLLECTIVES, Collective
from datahall.fabric.collectives.algorithms.table import estimates
from datahall.fabric.collectives.choice import choose_collective, collective_times, crossovers
from datahall.fabric.collectives.constants import library
from datahall.fabric.collectives.system import System, system_of
from datahall.fabric.collectives.tuner import Setting, choose

CHIPS = ("a100-sxm-80gb", "h100-sxm", "h200-sxm", "b200-sxm", "gb200", "h800-sxm", "mi300x", "l40s")


@pytest.fixture(scope="module")
def hopper() -> System:
    return system_of("h100-sxm", nic_bytes_per_s=50e9)


@given(
    chip=st.sampled_from(CHIPS), collective=st.sampled_from(COLLECTIVES), nodes=st.integers(1, 64),
    level=st.sampled_from([None, "datasheet"]),
)  # fmt: skip
def test_every_answer_is_a_positive_time_below_the_speed_of_its_links(
    chip: str, collective: Collective, nodes: int, level: str | None
) -> None:
    system = system_of(chip, nic_bytes_per_s=50e9, level=level)
    ranks = max(2, nodes * min(8, system.num_domain))
    size = np.geomspace(1e3, 16e9, 12)
    time, pairs = collective_times(system, collective, size, ranks)
    assert (time > 0).all()
    assert len(pairs) == 12
    widest = max(system.scale_up_bytes_per_s, 50e9 * 8)
    if collective != "barrier":
        assert (size / time <= widest * 1.05).all()


@given(
    chip=st.sampled_from(CHIPS),
    nodes=st.integers(1, 32),
    size=st.floats(1e3, 1e10),
    more=st.floats(1.0, 50.0),
)
def test_one_algorithm_never_gets_faster_with_size(chip: str, nodes: int, size: float, more: float) -> None:
    """The choice may jump down at a crossover, and multicast steps down once past 4 GiB; a ring and a tree may not."""
    system = system_of(chip, nic_bytes_per_s=50e9)
    ranks = max(2, nodes * min(8, system.num_domain))
    found = [choose_collective(system, "all-reduce", one, ranks).candidates for one in (size, size * more)]
    for one in found[0]:
        later = next(
            two for two in found[1] if (two.algorithm, two.protocol) == (one.algorithm, one.protocol)
        )
        if one.algorithm in {"ring", "tree"}:
            assert later.time_s >= one.time_s * (1 - 1e-9)


def test_sharp_in_the_switch_came_with_2_17_and_trees_of_it_with_2_18() -> None:
    old = Setting(family="hopper", num_ranks=8, num_nodes=1, version=(2, 16))
    new = Setting(family="hopper", num_ranks=8, num_nodes=1, version=(2, 17))
    assert choose(estimates(old, "all-reduce", 1e9)) == [("ring", "Simple")]
    assert choose(estimates(new, "all-reduce", 1e9)) == [("NVLS", "Simple")]


def test_pat_runs_with_one_rank_a_node_from_2_23() -> None:
    def pairs(version: tuple[int, int]) -> set[str]:
        setting = Setting(
            family="hopper", num_ranks=16, num_nodes=16, node_network_bytes_per_s=50e9, version=version
        )
        return {pair[0] for pair in estimates(setting, "all-gather", 1e6)}

    assert "PAT" in pairs((2, 23))
    assert "PAT" not in pairs((2, 22))


@pytest.mark.parametrize(
    ("family", "collective", "ranks", "stays_bytes", "leaves_bytes"),
    [
        ("blackwell", "all-gather", 8, 8 * 2**20, 16 * 2**20), ("blackwell", "all-gather", 4, 4 * 2**20, 8 * 2**20),
        ("hopper", "all-gather", 4, 2 * 2**20, 4 * 2**20), ("ampere", "all-gather", 4, 2**20, 2 * 2**20),
    ],
)  # fmt: skip
def test_nccl_leaves_ll_where_its_tables_jump(
    family: str, collective: Collective, ranks: int, stays_bytes: float, leaves_bytes: float
) -> None:
    """The sizes between which measured tables of NCCL 2.27 and 2.29 jump upwards."""
    setting = Setting(family=family, num_ranks=ranks, num_nodes=1, ll128=False)
    before, after = choose(estimates(setting, collective, np.array([stays_bytes, leaves_bytes])))
    assert (before, after) == (("ring", "LL"), ("ring", "Simple"))


def test_a_small_array_runs_ll_and_a_large_one_the_switch(hopper: System) -> None:
    found = crossovers(hopper, "all-reduce", 8)
    assert found[0].before == "ring LL"
    assert found[-1].after == "NVLS"
    assert choose_collective(hopper, "all-reduce", 1e4, 8).protocol == "LL"


def test_the_answer_holds_every_alternative(hopper: System) -> None:
    found = choose_collective(hopper, "all-reduce", 1e9, 1024)
    assert {one.algorithm for one in found.candidates} == {"ring", "tree", "NVLS tree"}
    assert found.level == "family-calibrated"
    assert found.latency_s < 0.1 * found.time_s


def test_a_forced_algorithm_is_taken(hopper: System) -> None:
    assert choose_collective(hopper, "all-reduce", 1e9, 1024, only=("ring",)).algorithm == "ring"


def test_datasheet_level_knows_neither_chip_nor_network() -> None:
    known, plain = system_of("h100-sxm"), system_of("h100-sxm", level="datasheet")
    assert known.level(16) == "family-calibrated"
    assert plain.level(16) == "datasheet only"
    assert known.level(8) == "measured"


def test_a_relative_scales_with_its_own_links() -> None:
    slow, fast = system_of("h800-sxm"), system_of("h100-sxm")
    assert slow.inside_level == "family-calibrated"
    assert slow.inside.simple.bytes_per_s == pytest.approx(fast.inside.simple.bytes_per_s * 200 / 450)


def test_a_mesh_of_few_chips_has_few_links() -> None:
    system = system_of("mi300x")
    two, eight = (choose_collective(system, "all-reduce", 4e9, n).busbw_bytes_per_s for n in (2, 8))
    assert 5 < eight / two < 9


def test_every_set_of_constants_says_where_it_is_from() -> None:
    shelf = library()
    groups = (shelf.inside, shelf.across, shelf.wire, shelf.multicast, shelf.experts)
    for one in (shelf.ctran, *(one for group in groups for one in group.values())):
        assert one.source.title
        assert one.fitted_on
    assert all(low < high for low, high in shelf.bands.values())


@pytest.mark.parametrize(
    ("collective", "size", "ranks", "words"),
    [
        ("all-reduce", -1.0, 8, "bytes of 0 or more"), ("all-reduce", float("nan"), 8, "bytes of 0 or more"),
        ("all-reduce", 1e6, 1, "moves nothing"), ("all-reduce", 1e6, 0, "moves nothing"),
        ("all-sum", 1e6, 8, "not a collective"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_said(
    hopper: System, collective: Collective, size: float, ranks: int, words: str
) -> None:
    with pytest.raises(ScenarioError, match=words):
        choose_collective(hopper, collective, size, ranks)


def test_more_ranks_than_a_lone_domain_holds_is_infeasible() -> None:
    alone = system_of("gh200", num_domain=4)
    if alone.nic_bytes_per_s:
        alone = System(
            **{field: getattr(alone, field) for field in alone.__struct_fields__}
            | {"nic_bytes_per_s": 0.0, "across": None}
        )
    with pytest.raises(InfeasibleError, match="no network joins"):
        choose_collective(alone, "all-reduce", 1e6, 8)


def test_an_algorithm_that_is_not_there_names_those_that_are(hopper: System) -> None:
    with pytest.raises(ScenarioError, match="has no PAT for all-reduce") as error:
        choose_collective(hopper, "all-reduce", 1e6, 8, only=("PAT",))
    assert "nvls" in error.value.hint


def test_nccl_thinks_nothing_of_what_it_does_not_weigh() -> None:
    found = dh.show_collective("all-to-all", size="1GB", chips=64)
    assert [row[2] for row in found.tables[0].rows] == [None]
    weighed = dh.show_collective("all-reduce", size="1GB", chips=64)
    assert all(row[2] is not None for row in weighed.tables[0].rows)
    assert all(row[2] != row[1] for row in weighed.tables[0].rows)

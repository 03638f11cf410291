"""From words to a system, and from a system to the answer with all its alternatives."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from datahall.catalog import load
from datahall.catalog.entries.chip import FAMILIES
from datahall.errors import ScenarioError, UnsupportedError
from datahall.fabric.collectives.algorithms.bus import bus_factor
from datahall.fabric.collectives.algorithms.table import times
from datahall.fabric.collectives.choice import band_name, choose_collective, collective_times, crossovers
from datahall.fabric.collectives.constants import Inside, library
from datahall.fabric.collectives.engine_all_reduce import constants_of, custom_sets, serving_all_reduce_times
from datahall.fabric.collectives.system import ALIKE, System, family_of, generic, inside_of, scaled, system_of
from datahall.fabric.collectives.tuner import LL_MOST
from datahall.validation.collectives.testbed import CHIPS, Rig, chip_named, network_rate, read_testbed


def bed(hardware: str = "H100", network: str = "NVLink4 + 8x400G NDR InfiniBand", **more: object) -> Rig:
    return read_testbed(hardware, network, **{"num_ranks": 16, "num_nodes": 2} | more)


def test_every_chip_of_the_table_is_in_the_catalogue() -> None:
    for _, name in CHIPS:
        assert load().chip(name).name == name
    assert chip_named("nothing") is None


@pytest.mark.parametrize(
    ("words", "fabric"),
    [
        ("EFA v3 3200 Gb/s per node", "efa"), ("EFA 400 Gb/s per node", "efa-1"), ("RoCEv2 400G", "roce"),
        ("Slingshot 200G", "slingshot"), ("400G CX7", "infiniband"), ("Ethernet 100G", "roce"), ("400G", "infiniband"),
    ],
)  # fmt: skip
def test_a_network_is_known_by_its_words(words: str, fabric: str) -> None:
    assert bed(network=words).system.fabric == fabric


@pytest.mark.parametrize(
    ("words", "per_node", "gbit"),
    [
        ("2 NICs/rank 200G", 8, 400.0), ("2 NICs/rank", 8, 800.0), ("4x200G", 8, 100.0),
        ("1600 Gb/s per node", 8, 200.0),
        ("a3-mega", 8, 200.0), ("a3-ultra", 8, 400.0), ("ndv4", 8, 200.0), ("p4d", 8, 50.0), ("p6-b200", 4, 800.0),
        ("100G", 8, 100.0), ("nothing", 8, 0.0),
    ],
)  # fmt: skip
def test_a_rank_has_its_share_of_the_nodes_network(words: str, per_node: int, gbit: float) -> None:
    assert network_rate(words, per_node, None) == pytest.approx(gbit * 1e9 / 8)


def test_relatives_are_sold_with_the_same_network() -> None:
    for one, other in [("h800-sxm", "h100-sxm"), ("h20", "h100-sxm"), ("a800-sxm-80gb", "a100-sxm-80gb")]:
        rate = network_rate("", 8, load().chip(one))
        assert rate == network_rate("", 8, load().chip(other)) > 0


def test_a_run_says_its_version_channels_harness_and_algorithms() -> None:
    plain = bed().system
    assert (plain.version, plain.num_channels, plain.harness_s, plain.nvls) == ((2, 27), 0, 0.0, True)
    told = bed(notes="NCCL 2.19.3, 16 channels, NVLS_ENABLE=0, torch").system
    assert (told.version, told.num_channels, told.nvls) == ((2, 19), 16, False)
    assert told.harness_s == library().harness_s["pytorch"] > 0
    assert bed(notes="CUDA 12.4").system.version == (2, 27)
    assert bed(algorithm="Tree").only == ("tree",)
    assert bed(algorithm="NVLink SHARP path").only == ("NVLS tree", "NVLS")
    assert bed(algorithm="NVLSTree").only == ("NVLS tree",)
    assert bed().only == ()


def test_ranks_nodes_and_domains_follow_from_the_counts() -> None:
    assert bed(num_ranks=9, num_nodes=2).system.num_domain == 5
    assert bed(num_ranks=4, num_nodes=4).system.num_domain == 1
    rack = bed("GB200 NVL72", "NVLink5 + 400G InfiniBand", num_ranks=100, num_nodes=25).system
    assert rack.num_domain == 50  # two racks share the ranks
    assert bed("GB200", "400G InfiniBand", num_ranks=8, num_nodes=2).system.num_domain == 4
    assert bed("H100 (NVLink disabled)", "400G InfiniBand").system.num_domain == 1
    with pytest.raises(UnsupportedError, match="what network joins"):
        bed("RTX PRO 6000", "PCIe", num_ranks=4, num_nodes=2)
    assert bed("RTX PRO 6000", "PCIe", num_ranks=4, num_nodes=1).system.across is None


def test_a_nic_is_no_faster_than_its_chips_host_link() -> None:
    host = load().chip("h100-sxm").host_bytes_per_s
    assert bed(network="4 NICs/rank 400G").system.nic_bytes_per_s == pytest.approx(0.85 * host)
    assert bed().system.nic_bytes_per_s == 50e9


def constants(name: str, level: str | None = None) -> tuple[Inside, str]:
    chip = load().chip(name)
    return inside_of(chip, load().scale_up_of(chip), level)


def test_constants_are_the_chips_own_its_familys_or_generic() -> None:
    own, basis = constants("h100-sxm")
    assert (own, basis) == (library().inside["h100-sxm"], "measured")
    assert constants("h100-sxm", "measured")[0] == own
    kin, basis = constants("h100-sxm", "family")
    assert basis == "family-calibrated"
    assert kin.simple.bytes_per_s == pytest.approx(own.simple.bytes_per_s)
    plain, basis = constants("h100-sxm", "datasheet")
    assert basis == "datasheet only"
    share = library().inside["generic"].simple.bytes_per_s
    assert plain.simple.bytes_per_s == pytest.approx(share * 450e9)
    assert plain.nvls_bytes_per_s > 0
    assert constants("a100-sxm-80gb", "datasheet")[0].nvls_bytes_per_s == 0
    assert constants("mi300x", "datasheet")[0].num_mesh_links == 7
    assert plain.num_mesh_links == 0
    with pytest.raises(ScenarioError, match='no collective constants of level "measured"'):
        constants("l40s" if "l40s" not in library().inside else "h20", "measured")
    with pytest.raises(ScenarioError, match="level"):
        constants("mi300x", "family")


def test_whose_relative_a_link_is_stands_in_its_entry_and_not_in_its_name() -> None:
    chip, wire = load().chip("h20"), load().link("nvlink-4")
    renamed = msgspec.structs.replace(wire, name="lab-link")
    assert inside_of(chip, renamed, "family") == inside_of(chip, wire, "family")
    assert generic(chip, renamed).nvls_bytes_per_s > 0
    other = msgspec.structs.replace(wire, technology="lab", wiring="mesh")
    with pytest.raises(ScenarioError, match="level"):
        inside_of(chip, other, "family")
    assert generic(chip, other).nvls_bytes_per_s == 0
    assert generic(chip, other).num_mesh_links == chip.num_scale_up_domain - 1


def test_a_faster_relative_moves_bytes_faster_and_waits_as_long() -> None:
    one = library().inside["h100-sxm"]
    twice = scaled(one, 2.0)
    for name in ("ll", "ll128", "simple", "exchange"):
        before, after = getattr(one, name), getattr(twice, name)
        if before is not None:
            assert after.bytes_per_s == 2 * before.bytes_per_s
            assert (after.base_s, after.hop_s) == (before.base_s, before.hop_s)
    assert twice.nvls_bytes_per_s == 2 * one.nvls_bytes_per_s
    assert twice.nvls_latency_s == one.nvls_latency_s


@pytest.mark.parametrize(
    ("chip", "family"),
    [("v100-sxm2-32gb", "volta"), ("a100-sxm-80gb", "ampere"), ("l40s", "ampere"), ("h100-sxm", "hopper"),
     ("b200-sxm", "blackwell"), ("gb300", "blackwell"), ("mi300x", "hopper")],
)  # fmt: skip
def test_the_tuner_knows_a_chip_by_its_generation(chip: str, family: str) -> None:
    assert family_of(load().chip(chip)) == family


def test_families_that_stand_for_others_are_of_the_catalogue_and_of_the_tuner() -> None:
    assert ALIKE.keys() <= set(FAMILIES) - LL_MOST.keys()
    assert set(ALIKE.values()) <= LL_MOST.keys()


def test_a_system_of_the_catalogue_has_the_network_of_its_server() -> None:
    made = system_of("h100-sxm")
    assert (made.num_domain, made.nic_bytes_per_s, made.scale_up_bytes_per_s) == (8, 50e9, 450e9)
    assert made.across == library().across["infiniband"]
    assert system_of("h100-sxm", num_domain=4, nic_bytes_per_s=1e9).nic_bytes_per_s == 1e9
    assert system_of("h100-sxm", num_domain=4).num_domain == 4
    assert system_of("gb200").num_domain == 72


@pytest.fixture(scope="module")
def hopper() -> System:
    return system_of("h100-sxm")


@pytest.mark.parametrize("collective", ["all-reduce", "all-gather", "all-to-all", "send-recv", "barrier"])
@pytest.mark.parametrize("ranks", [2, 8, 64])
def test_an_answer_is_one_of_its_candidates(hopper: System, collective: str, ranks: int) -> None:
    found = choose_collective(hopper, collective, 1e7, ranks)
    possible = times(hopper, collective, np.array([1e7]), ranks)
    assert {(one.algorithm, one.protocol): one.time_s for one in found.candidates} == {
        pair: float(time[0]) for pair, time in possible.items()
    }
    ordered = [one.time_s for one in found.candidates]
    assert ordered == sorted(ordered)
    assert found.time_s == float(possible[found.algorithm, found.protocol][0])
    smallest = times(hopper, collective, np.array([8.0]), ranks)[found.algorithm, found.protocol][0]
    assert found.latency_s == pytest.approx(min(smallest, found.time_s))
    assert found.algbw_bytes_per_s == pytest.approx(1e7 / found.time_s)
    assert found.busbw_bytes_per_s == pytest.approx(1e7 / found.time_s * bus_factor(collective, float(ranks)))
    # what is chosen has the smallest estimate of NCCL, where it estimates at all
    if collective in {"all-reduce", "all-gather"}:
        best = min(found.candidates, key=lambda one: one.estimate_s)
        assert (best.algorithm, best.protocol) == (found.algorithm, found.protocol)
    assert "inside" in band_name(hopper, 8)
    assert "across" in band_name(hopper, 9)


def test_crossovers_are_where_the_choice_changes(hopper: System) -> None:
    found = crossovers(hopper, "all-reduce", 64)
    assert found
    sizes = [one.size_bytes for one in found]
    assert sizes == sorted(sizes)
    assert min(sizes) > 1024
    assert max(sizes) <= 64 * 2**30
    step = 2.0 ** (1 / 8)
    for one in found:
        (_, (before, after)) = collective_times(
            hopper, "all-reduce", np.array([one.size_bytes / step, one.size_bytes]), 64
        )
        assert before != after
        assert one.before.startswith(before[0])
        assert one.after.startswith(after[0])
    assert crossovers(hopper, "all-to-all", 64) == ()


def test_without_an_algorithm_another_runs(hopper: System) -> None:
    usual = choose_collective(hopper, "all-reduce", 1e9, 8)
    _, [(other, _)] = collective_times(hopper, "all-reduce", 1e9, 8, without=(usual.algorithm,))
    assert usual.algorithm == "NVLS"
    assert other != "NVLS"
    assert collective_times(hopper, "all-reduce", 0.0, 8)[0][0] > 0
    with pytest.raises(ScenarioError):
        collective_times(hopper, "all-reduce", np.array([1.0, np.inf]), 8)


def test_an_engine_is_asked_where_it_has_a_kernel_and_the_library_elsewhere() -> None:
    hopper = system_of("h100-sxm")
    own = custom_sets()["h100-sxm-vllm"]
    assert constants_of(hopper, "vllm") == (own, "measured")
    assert serving_all_reduce_times(hopper, 1e4, own.most_ranks).level == "measured"
    for ranks in (own.most_ranks + 1, 16):
        plain, _ = collective_times(hopper, "all-reduce", 1e4, ranks)
        assert serving_all_reduce_times(hopper, 1e4, ranks).time_s.tolist() == plain.tolist()
    kin = system_of("h800-sxm")
    found = constants_of(kin, "vllm")
    assert found is not None
    assert found[1] == "family-calibrated"
    ratio = kin.scale_up_bytes_per_s / hopper.scale_up_bytes_per_s
    assert found[0].one_shot_bytes_per_s == pytest.approx(own.one_shot_bytes_per_s * ratio)
    assert found[0].two_shot_bytes_per_s == pytest.approx(own.two_shot_bytes_per_s * ratio)
    assert found[0].bus_bytes_per_s == pytest.approx([rate * ratio for rate in own.bus_bytes_per_s])
    assert found[0].base_s == own.base_s
    assert constants_of(system_of("mi300x"), "vllm") is None or "mi300x-vllm" in custom_sets()

"""Words that people describe their machines with."""

from __future__ import annotations

import pytest

from datahall.errors import UnsupportedError
from datahall.validation.collectives.testbed import chip_named, network_rate, read_testbed


@pytest.mark.parametrize(
    ("words", "chip"),
    [
        ("A100 80GB (2x p4de.24xlarge)", "a100-sxm-80gb"),
        ("A100 40GB (p4d.24xlarge)", "a100-sxm-40gb"),
        ("H100 (5 nodes, 4x400G RoCE)", "h100-sxm"),
        ("SM100 (Blackwell)", "b200-sxm"),
        ("GB300 (2 GPUs, IB only)", "gb300"),
        ("AMD MI300X", "mi300x"),
        ("TPU v5e (axis of 4, no wrap)", "tpu-v5e"),
        ("H20", "h20"),
        ("H200 (p5en)", "h200-sxm"),
    ],
)
def test_chips_are_found_in_words(words: str, chip: str) -> None:
    found = chip_named(words)
    assert found is not None
    assert found.name == chip


def test_a_gpu_that_nobody_names_is_not_guessed() -> None:
    assert chip_named("8-GPU NVLink node (GPU not named in excerpt)") is None
    with pytest.raises(UnsupportedError, match="does not name the chip"):
        read_testbed("some GPUs", "NVLink", num_ranks=8, num_nodes=1)


@pytest.mark.parametrize(
    ("words", "per_node", "rate"),
    [
        ("NVLink4 + 8x400G NDR InfiniBand", 8, 50e9),
        ("32x100G EFA", 8, 50e9),
        ("16x200G EFA", 8, 50e9),
        ("EFA 400 Gb/s per node", 8, 6.25e9),
        ("NVLink4 + EFA v3 3200 Gb/s per node", 8, 50e9),
        ("2 NICs/rank InfiniBand/RoCE, no intra-node path", 2, 100e9),
        ("one 400G NIC", 1, 50e9),
        ("100G InfiniBand (one NIC)", 8, 1.5625e9),
        ("HPE Slingshot 200G", 4, 25e9),
        ("400G CX7 IB, pure RDMA", 8, 50e9),
        ("(2x p5.48xlarge)", 8, 50e9),
    ],
)
def test_networks_are_read_per_rank(words: str, per_node: int, rate: float) -> None:
    assert network_rate(words, per_node, None) == rate


def test_what_is_left_open_is_what_the_chip_is_sold_with() -> None:
    bed = read_testbed("H100", "not stated", num_ranks=128, num_nodes=16)
    assert bed.system.nic_bytes_per_s == 50e9
    assert bed.system.num_domain == 8


@pytest.mark.parametrize(
    ("hardware", "network", "ranks", "nodes", "domain"),
    [
        ("GB200", "NVLink5", 8, 2, 8),
        ("GB300 (one rack)", "NVLink5 rack domain (MNNVL)", 72, 18, 72),
        ("GB200 NVL72", "InfiniBand 400G", 144, 36, 72),
        ("GB200 (2 GPU/node, NVLink disabled)", "2 NICs/rank", 16, 8, 1),
        ("H100 (2 GPUs, IB only)", "RDMA NICs only (P2P/SHM off)", 2, 1, 1),
        ("H100 (1 GPU/node, 4 NICs)", "4x400G RoCE", 2, 2, 1),
        ("H200 (4x p5en.48xlarge)", "NVLink4 + EFA v3 3200 Gb/s per node", 32, 4, 8),
    ],
)
def test_domains_are_racks_nodes_or_single_chips(
    hardware: str, network: str, ranks: int, nodes: int, domain: int
) -> None:
    assert read_testbed(hardware, network, num_ranks=ranks, num_nodes=nodes).system.num_domain == domain


def test_one_chip_cannot_feed_four_nics() -> None:
    bed = read_testbed("H100 (1 GPU/node, 4 NICs)", "4x400G RoCE", num_ranks=2, num_nodes=2)
    assert bed.system.nic_bytes_per_s < 60e9


def test_versions_switches_and_harness_come_from_the_words() -> None:
    off = read_testbed("H200", "NVSwitch", num_ranks=8, num_nodes=1, algorithm="Ring (NVLS disabled)")
    assert off.only == ("ring",)
    assert not off.system.nvls
    old = read_testbed(
        "H100", "NVLink4", num_ranks=8, num_nodes=1, algorithm="NCCL 2.9.9", notes="PyTorch bench"
    )
    assert old.system.version == (2, 9)
    assert old.system.harness_s > 0

"""Links are one way; servers stand on chips and links that exist."""

from __future__ import annotations

import math

import pytest

from datahall.catalog import Catalog

LINKS = [
    "nvlink-2", "nvlink-3", "nvlink-4", "nvlink-5", "nvlink-6", "nvlink-c2c", "pcie-3-x16",
    "pcie-4-x16", "pcie-5-x16", "pcie-6-x16", "infinity-fabric-mi250x", "infinity-fabric-mi300x",
    "infinity-fabric-mi355x", "ici-v4", "ici-v5e", "ici-v5p", "ici-v6e", "ici-v7x", "neuronlink-v2",
    "neuronlink-v3", "neuronlink-v4", "ualink-200", "infiniband-hdr", "infiniband-ndr",
    "infiniband-xdr", "ethernet-100", "ethernet-200", "ethernet-400", "ethernet-800", "ipu-link",
    "gaudi-roce-100", "gaudi-roce-200",
]  # fmt: skip

SERVERS = [
    "dgx-a100", "dgx-h100", "dgx-h200", "dgx-b200", "dgx-b300", "gb200-nvl72", "gb300-nvl72",
    "mi300x-platform", "mi325x-platform", "mi355x-platform", "tpu-v4-host", "tpu-v4-pod",
    "tpu-v5e-host", "tpu-v5e-pod", "tpu-v5p-host", "tpu-v5p-pod", "tpu-v6e-host", "tpu-v6e-pod",
    "tpu-v7x-host", "tpu-v7x-pod", "trn2-instance", "trn2-ultraserver", "gaudi3-server", "l40s-server",
    "meta-24k-roce", "xai-colossus",
]  # fmt: skip


@pytest.mark.parametrize("name", LINKS)
def test_every_link_is_there_with_a_sourced_bandwidth(catalog: Catalog, name: str) -> None:
    link = catalog.link(name)
    assert link.bytes_per_s > 0
    assert {"bytes_per_s", *(["latency_s"] if math.isfinite(link.latency_s) else [])} <= link.facts.keys()
    assert link.both_ways_bytes_per_s == 2 * link.bytes_per_s


def test_latencies_are_called_estimates(catalog: Catalog) -> None:
    for link in catalog.links():
        if (fact := link.facts.get("latency_s")) is not None:
            assert fact.source.kind == "estimate", link.name


def test_each_generation_is_faster(catalog: Catalog) -> None:
    for family in (
        ("infiniband-hdr", "infiniband-ndr", "infiniband-xdr"),
        ("pcie-3-x16", "pcie-4-x16", "pcie-5-x16"),
    ):
        speeds = [catalog.link(name).bytes_per_s for name in family]
        assert speeds[1] == 2 * speeds[0]
        assert speeds[2] == 2 * speeds[1]


def test_a_network_port_is_in_bytes_inside(catalog: Catalog) -> None:
    assert catalog.link("ndr").bytes_per_s == 50e9
    assert catalog.link("roce-800").bytes_per_s == 100e9


@pytest.mark.parametrize("name", SERVERS)
def test_every_server_is_there(catalog: Catalog, name: str) -> None:
    server = catalog.server(name)
    assert catalog.chip(server.chip).name == server.chip
    assert server.num_chips % server.num_hosts == 0 or server.form == "cluster"


def test_every_number_of_a_server_has_a_source(catalog: Catalog) -> None:
    for server in catalog.servers():
        for attribute in server.__struct_fields__:
            value = getattr(server, attribute)
            counted = (
                attribute.startswith("num_")
                and attribute not in {"num_hosts", "num_scale_up_domain"}
                and value
            )
            if (isinstance(value, float) and math.isfinite(value)) or counted:
                assert attribute in server.facts, f"{server.name}.{attribute}"


def test_a_scale_up_domain_is_that_of_the_chip_or_smaller(catalog: Catalog) -> None:
    for server in catalog.servers():
        limit = max(catalog.chip(server.chip).num_scale_up_domain, 64 if "trn2" in server.name else 0)
        assert server.num_scale_up_domain <= limit, server.name


def test_the_network_share_of_a_chip(catalog: Catalog) -> None:
    assert catalog.server("dgx-h100").network_bytes_per_s_per_chip == 50e9
    assert catalog.server("p4d.24xlarge").network_bytes_per_s_per_chip == 6.25e9
    assert catalog.server("trn2-instance").network_bytes_per_s == pytest.approx(3.2e12 / 8)


def test_nvl72_is_a_domain_of_72_ranks(catalog: Catalog) -> None:
    rack = catalog.server("nvl72")
    assert (rack.num_chips, rack.num_cpus, rack.num_hosts, rack.num_scale_up_domain) == (72, 36, 18, 72)
    both_ways = 2 * rack.num_chips * catalog.chip(rack.chip).scale_up_bytes_per_s
    assert both_ways == pytest.approx(129.6e12)


def test_a_pods_torus_holds_its_chips(catalog: Catalog) -> None:
    for server in catalog.servers():
        if server.torus:
            assert math.prod(int(side) for side in server.torus.split("x")) == server.num_chips


@pytest.mark.parametrize(("name", "holds"), [("infiniband", True), ("roce", True), ("tcp", False)])
def test_a_transport_holds_senders_back_by_credits_or_pauses(name: str, holds: bool) -> None:
    assert Catalog(user=False).transport(name).holds_back is holds

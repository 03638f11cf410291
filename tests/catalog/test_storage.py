"""Storage tiers and data sets: every number has a source, and what is an estimate is called one."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from datahall.catalog import Catalog
from datahall.errors import DocumentError, UnknownNameError

TIERS = [
    "hdd", "sata-ssd", "nvme", "nvme-gen5", "nvme-qlc", "cloud-hdd", "cloud-ssd", "parallel", "lustre", "cloud-lustre",
    "tectonic", "object", "page-cache", "pinned",
]  # fmt: skip
NUMBERS = (
    "read_bytes_per_s",
    "write_bytes_per_s",
    "stream_bytes_per_s",
    "usd_per_gb_month",
    "egress_usd_per_gb",
)


@pytest.mark.parametrize("name", TIERS)
def test_every_number_of_a_tier_has_a_source(catalog: Catalog, name: str) -> None:
    tier = catalog.storage(name)
    known = {one for one in NUMBERS if math.isfinite(getattr(tier, one))}
    known |= {"latency_s"} | ({"num_reads_per_s"} if tier.num_reads_per_s else set())
    assert known <= tier.facts.keys()
    assert all(fact.source.title and fact.source.date for fact in tier.facts.values())
    assert math.isfinite(tier.read_bytes_per_s) or math.isfinite(tier.stream_bytes_per_s)


def test_faster_tiers_are_faster(catalog: Catalog) -> None:
    rates = [catalog.storage(name).read_bytes_per_s for name in ("hdd", "sata-ssd", "nvme", "nvme-gen5")]
    assert rates == sorted(rates)
    waits = [catalog.storage(name).latency_s for name in ("nvme", "hdd", "object")]
    assert waits == sorted(waits)


def test_the_object_store_is_limited_by_requests_and_streams(catalog: Catalog) -> None:
    s3 = catalog.storage("s3")
    assert (s3.num_reads_per_s, s3.usd_per_gb_month, s3.egress_usd_per_gb) == (5500, 0.023, 0.02)
    assert s3.latency_spread_s == pytest.approx(0.1 / math.sqrt(12))
    assert catalog.storage("nvme").latency_spread_s == 0.0


@pytest.mark.parametrize(
    ("name", "chip", "needed"),
    [
        ("resnet50", "h100-sxm", 204.8e6),
        ("resnet50", "a100-sxm-80gb", 105.4e6),
        ("unet3d", "h100-sxm", 3177.1e6),
        ("unet3d", "a100-sxm-80gb", 1613.5e6),
        ("cosmoflow", "h100-sxm", 808.1e6),
        ("cosmoflow", "a100-sxm-80gb", 513.3e6),
    ],
)
def test_a_chip_needs_what_the_benchmark_derives(
    catalog: Catalog, name: str, chip: str, needed: float
) -> None:
    """Rows `required_rate` of the published configurations: record · batch / computation time."""
    data = catalog.dataset(name)
    assert data.sample_bytes * data.batch / data.step_s[chip] == pytest.approx(needed, rel=1e-3)


def test_every_step_is_of_a_chip_that_there_is(catalog: Catalog) -> None:
    for data in catalog.datasets():
        for chip in data.step_s:
            assert catalog.chip(chip).name == chip
            assert f"step.{chip}" in data.facts


def test_an_unknown_tier_is_an_error_that_names_those_there_are(catalog: Catalog) -> None:
    with pytest.raises(UnknownNameError, match="nvmee") as caught:
        catalog.storage("nvmee")
    assert "nvme" in caught.value.nearest
    assert "cloud-lustre" in caught.value.hint


def test_a_step_that_is_no_table_is_a_problem(catalog: Catalog, tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(
        '[dataset.x]\nsource = { title = "t", date = 2026 }\ntitle = "x"\nsample = "1 kB"\nsamples = 10\nstep = 3\n'
    )
    with pytest.raises(DocumentError, match="must be a table of chips"):
        catalog.check(file)

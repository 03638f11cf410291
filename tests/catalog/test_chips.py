"""The accelerators: all there, dense, sourced, and honest about what they lack."""

from __future__ import annotations

import math

import pytest

from datahall.catalog import Catalog
from datahall.catalog.number_formats import PEAK_FORMATS, unit_for
from datahall.errors import UnknownNameError, UnsupportedError

# name: dense 16-bit TFLOP/s (None: not published), memory GB, memory GB/s
ACCELERATORS: dict[str, tuple[float | None, float, float]] = {
    "v100-sxm2-32gb": (125, 32, 900), "a100-sxm-40gb": (312, 40, 1555), "a100-sxm-80gb": (312, 80, 2039),
    "a100-pcie-80gb": (312, 80, 1935), "h100-sxm": (989, 80, 3350), "h100-pcie": (756, 80, 2000),
    "h100-nvl": (835.5, 94, 3938), "h200-sxm": (989, 141, 4800), "gh200": (989, 96, 4000),
    "h20": (148, 96, 4000), "h800-sxm": (989, 80, 3350), "b100": (1750, 192, 8000),
    "b200-sxm": (2250, 180, 7700), "gb200": (2500, 186, 8000), "b300-sxm": (2250, 270, 7700),
    "gb300": (2500, 279, 8000), "rubin": (4000, 288, 22000), "l4": (121, 24, 300),
    "l40s": (362, 48, 864), "a10": (125, 24, 600), "rtx-4090": (165.2, 24, 1008),
    "rtx-5090": (209.5, 32, 1792), "rtx-pro-6000": (467.8, 96, 1792), "mi250x": (383, 128, 3280),
    "mi300x": (1307, 192, 5300), "mi325x": (1307, 256, 6000), "mi355x": (2516, 288, 8000),
    "mi455x": (5000, 432, 19600), "gaudi2": (432, 96, 2450), "gaudi3": (1677, 128, 3700),
    "tpu-v4": (275, 34.36, 1200), "tpu-v5e": (197, 16, 819), "tpu-v5p": (459, 95, 2765),
    "tpu-v6e": (918, 32, 1640), "tpu-v7x": (2307, 192, 7370), "tpu-8t": (None, 216, 6528),
    "tpu-8i": (None, 288, 8601), "trainium1": (190, 34.36, 880.5), "trainium2": (667, 103.1, 2900),
    "trainium3": (671, 154.6, 4900), "inferentia2": (190, 34.36, 880.5), "groq-lpu": (188, 0.23, 80000),
    "cerebras-wse3": (15800, 44, 21e6), "sambanova-sn40l": (638, 68.7, 2000),
    "graphcore-bow": (350, 0.9, 65400), "ascend-910c": (800, 128, 3200), "ascend-950dt": (486, 96, 4000),
    "maia-100": (800, 64, 1800), "t4": (65, 16, 320), "epyc-9654": (21.8, 1500, 460.8),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCELERATORS)
def test_every_accelerator_of_the_survey_is_there_with_its_dense_rate(catalog: Catalog, name: str) -> None:
    chip = catalog.chip(name)
    tflops, memory_gb, bandwidth_gb_per_s = ACCELERATORS[name]
    rates = [chip.peak_flop_per_s[p] for p in ("bf16", "fp16") if p in chip.peak_flop_per_s]
    if tflops is None:
        assert rates == []
    else:
        assert rates == pytest.approx([tflops * 1e12] * len(rates))
        assert rates
    assert chip.memory_bytes == pytest.approx(memory_gb * 1e9, rel=1e-3)
    assert chip.memory_bytes_per_s == pytest.approx(bandwidth_gb_per_s * 1e9, rel=1e-3)


def test_a_sparse_peak_is_above_the_dense_one(catalog: Catalog) -> None:
    for chip in catalog.chips():
        for precision, sparse in chip.sparse_peak_flop_per_s.items():
            assert sparse > chip.peak(precision), f"{chip.name} {precision}"


def test_nobody_measured_more_than_the_dense_peak(catalog: Catalog) -> None:
    for chip in catalog.chips():
        for precision, measured in chip.measured_peak_flop_per_s.items():
            assert 0.4 < measured / chip.peak(precision) < 1, f"{chip.name} {precision}"


def test_every_number_has_a_source_with_a_date(catalog: Catalog) -> None:
    for chip in catalog.chips():
        facts = {
            **chip.facts,
            **{f"{level.name}.{key}": fact for level in chip.levels for key, fact in level.facts.items()},
        }
        for attribute in chip.__struct_fields__:
            value = getattr(chip, attribute)
            if isinstance(value, float) and math.isfinite(value):
                assert attribute in facts, f"{chip.name}.{attribute}"
        for level in chip.levels:
            for attribute in ("capacity_bytes", "bytes_per_s", "latency_s", "capacity_per_sm_bytes"):
                assert math.isnan(getattr(level, attribute)) or attribute in level.facts
        assert {f"peak.{precision}" for precision in chip.peak_flop_per_s} <= facts.keys()
        for name, fact in facts.items():
            assert fact.source.title, f"{chip.name}.{name}"
            assert fact.source.date[:2] == "20", f"{chip.name}.{name}"


def test_where_sources_differ_the_value_lies_among_them(catalog: Catalog) -> None:
    tables = [
        table for chip in catalog.chips() for table in (chip.facts, *(level.facts for level in chip.levels))
    ]
    facts = [fact for table in tables for fact in table.values()]
    disputed = [fact for fact in facts if fact.low is not None and fact.high is not None]
    assert len(disputed) > 20
    for fact in disputed:
        assert fact.low is not None
        assert fact.high is not None
        assert fact.low <= fact.value <= fact.high, fact


def test_scale_up_bandwidth_is_one_way_and_a_whole_number_of_links(catalog: Catalog) -> None:
    for chip in catalog.chips():
        if chip.scale_up_link and math.isfinite(chip.scale_up_bytes_per_s):
            links = chip.scale_up_bytes_per_s / catalog.link(chip.scale_up_link).bytes_per_s
            assert links == pytest.approx(round(links)), f"{chip.name}: {links} × {chip.scale_up_link}"
    assert catalog.chip("h100").scale_up_bytes_per_s == 450e9


def test_host_bandwidth_is_that_of_the_host_link_or_a_share_of_it(catalog: Catalog) -> None:
    for chip in catalog.chips():
        if chip.host_link:
            chips_per_link = catalog.link(chip.host_link).bytes_per_s / chip.host_bytes_per_s
            assert chips_per_link in {1.0, 2.0}, chip.name


def test_main_memory_and_host_levels_repeat_the_chips_own_figures(catalog: Catalog) -> None:
    chip = catalog.chip("h100")
    assert [level.name for level in chip.levels] == ["registers", "shared", "l2", "memory", "host", "nvme"]
    assert chip.level("memory").capacity_bytes == chip.memory_bytes
    assert chip.level("memory").bytes_per_s == chip.memory_bytes_per_s
    assert chip.level("host").bytes_per_s == chip.host_bytes_per_s
    assert chip.level("memory").latency_s == pytest.approx(273e-9)


def test_a_level_is_slower_and_larger_than_the_one_above_it(catalog: Catalog) -> None:
    for chip in catalog.chips():
        known = [level for level in chip.levels if math.isfinite(level.bytes_per_s)]
        speeds = [level.bytes_per_s for level in known]
        assert speeds == sorted(speeds, reverse=True), chip.name


def test_levels_within_an_sm_are_summed_over_the_chip(catalog: Catalog) -> None:
    shared = catalog.chip("a100").level("shared")
    assert shared.capacity_bytes == 108 * 192 * 1024
    assert shared.addressable_per_sm_bytes == 164 * 1024
    assert shared.bytes_per_s == pytest.approx(108 * 128 * 1.41e9)
    assert shared.facts["bytes_per_s"].source.kind == "estimate"


def test_the_driver_sees_more_bytes_than_the_datasheet_says(catalog: Catalog) -> None:
    assert catalog.chip("h100").visible_memory_bytes == 81559 * 2**20
    for chip in catalog.chips():
        if math.isfinite(chip.visible_memory_bytes):
            assert 1.0 < chip.visible_memory_bytes / chip.memory_bytes < 1.08, chip.name


def test_a100_has_no_fp8_and_says_what_624_is(catalog: Catalog) -> None:
    with pytest.raises(
        UnsupportedError, match="has no FP8; 624 TFLOP/s is its dense INT8 or sparse FP16/BF16"
    ):
        catalog.chip("a100").peak("fp8")


def test_v100_refuses_bf16(catalog: Catalog) -> None:
    with pytest.raises(UnsupportedError, match="has no BF16; 125 TFLOP/s is its dense FP16 rate") as caught:
        catalog.chip("v100").peak("bfloat16")
    assert "it has fp64, fp32, fp16" in caught.value.hint


def test_an_unpublished_peak_is_not_called_missing_hardware(catalog: Catalog) -> None:
    with pytest.raises(UnsupportedError, match="is not known to the catalogue"):
        catalog.chip("tpu-8t").peak("bf16")


def test_a_precision_nobody_knows_is_refused(catalog: Catalog) -> None:
    with pytest.raises(UnsupportedError, match='"fp3" is not a precision'):
        catalog.chip("h100").peak("fp3")


@pytest.mark.parametrize("name", ["float16", "Half", "torch.bfloat16", "nvfp4", "MXFP8", "INT8"])
def test_precisions_have_many_spellings(name: str) -> None:
    assert unit_for(name) in PEAK_FORMATS


@pytest.mark.parametrize(
    ("asked", "found"),
    [("H100", "h100-sxm"), ("a100", "a100-sxm-80gb"), ("H200 SXM", "h200-sxm"),
     ("NVIDIA B200 SXM", "b200-sxm"), ("ironwood", "tpu-v7x"), ("mi300X", "mi300x"),
     ("RTX_4090", "rtx-4090")],
)  # fmt: skip
def test_names_resolve_in_any_case_by_alias_and_by_title(catalog: Catalog, asked: str, found: str) -> None:
    assert catalog.chip(asked).name == found


def test_an_unknown_chip_names_the_nearest_three(catalog: Catalog) -> None:
    with pytest.raises(UnknownNameError) as caught:
        catalog.chip("h100-sxm6")
    assert len(caught.value.nearest) == 3
    assert caught.value.nearest[0] == "h100-sxm"


def test_no_two_chips_share_a_name_or_alias(catalog: Catalog) -> None:
    names = [name for chip in catalog.chips() for name in (chip.name, *chip.aliases)]
    assert len(names) == len(set(names))


def test_superchips_count_one_gpu(catalog: Catalog) -> None:
    assert catalog.chip("gb200").peak("fp4") == 10e15


def test_blackwell_ultra_trades_int8_for_fp4(catalog: Catalog) -> None:
    b200, b300 = catalog.chip("b200"), catalog.chip("b300")
    assert b300.peak("int8") < b200.peak("int8") / 25
    assert b300.peak("fp4") > b200.peak("fp4")

"""Published failures in the catalogue: counts that add up, components that exist, and files of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from datahall.catalog import Catalog
from datahall.errors import DatahallError, DocumentError, UnknownNameError

CATALOG = Catalog(user=False)
OWN = """
[source.ours]
title = "our own count"
date = "2026-11"
kind = "measured"

[failures.ours]
source = "ours"
title = "ours"
chip = "h100-sxm"
node_chips = 8
chips = 800
span = "100 days"
interruptions = {total}
[failures.ours.causes]
"a GPU" = {{ count = 30, component = "{component}" }}
"a bug" = {{ count = 10, component = "software" }}
"""


@pytest.mark.parametrize("preset", CATALOG.failure_presets(), ids=lambda preset: preset.name)
def test_every_preset_says_how_often_and_of_what(preset: object) -> None:
    assert 1e-3 < preset.rate_per_node_day < 1e-2  # type: ignore[attr-defined]
    table = preset if preset.causes else CATALOG.failure_preset(preset.causes_of)  # type: ignore[attr-defined]
    assert {CATALOG.component(cause.component).name for cause in table.causes}  # type: ignore[attr-defined]
    assert CATALOG.chip(preset.chip)  # type: ignore[attr-defined]


def test_rates_are_those_that_were_published() -> None:
    rates = {one.name: round(one.rate_per_node_day * 1000, 2) for one in CATALOG.failure_presets()}
    assert rates == {
        "llama-3": 3.79, "rsc-1": 6.5, "rsc-2": 2.34, "ft-hsdp": 2.3, "tpu-v4": 1.42, "gb200-field": 2.3,
    }  # fmt: skip
    assert sum(cause.num_interruptions for cause in CATALOG.failure_preset("ft-hsdp").causes) == 678


def test_a_rate_of_a_part_is_per_day_whatever_it_was_printed_as() -> None:
    assert CATALOG.component("link").rate_per_day == pytest.approx(0.057e-2 * 12 / 365.25)
    assert CATALOG.component("ocs").rate_per_day == pytest.approx(4e-4)


@pytest.mark.parametrize("component", CATALOG.every("component"), ids=lambda component: component.name)
def test_what_is_repaired_has_a_time_to_repair(component: object) -> None:
    if component.repair_fraction:  # type: ignore[attr-defined]
        assert component.repair_median_s < component.repair_mean_s  # type: ignore[attr-defined]
    if component.in_rack:  # type: ignore[attr-defined]
        assert CATALOG.component(component.in_rack).survives == "remote"  # type: ignore[attr-defined]


def read(tmp_path: Path, text: str) -> Catalog:
    (tmp_path / "ours.toml").write_text(text, encoding="utf-8")
    return Catalog(extra=[tmp_path], user=False)


def test_a_count_of_ones_own_is_a_preset_like_the_others(tmp_path: Path) -> None:
    found = read(tmp_path, OWN.format(total=40, component="gpu")).failure_preset("ours")
    assert found.rate_per_node_day == pytest.approx(40 / (100 * 100))
    assert [cause.num_interruptions for cause in found.causes] == [30, 10]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (OWN.format(total=41, component="chip"), "add up to 40"),
        (OWN.format(total=40, component="chip").replace('span = "100 days"\n', ""), "how often"),
        (OWN.format(total=40, component="chip").replace("count = 30", "count = -3"), "count"),
        (OWN.format(total=40, component="chip").partition("[failures.ours.causes]")[0], "no causes"),
    ],
)
def test_a_count_that_does_not_add_up_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read(tmp_path, text).failure_preset("ours")
    assert words in str(caught.value)


def test_a_component_that_is_none_is_refused(tmp_path: Path) -> None:
    catalog = read(tmp_path, OWN.format(total=40, component="gpus"))
    with pytest.raises(DatahallError, match="gpus"):
        catalog.failure_preset("ours")


def test_an_unknown_preset_offers_those_that_are_there() -> None:
    with pytest.raises(UnknownNameError, match="not a failure preset") as caught:
        CATALOG.failure_preset("llama-4")
    assert caught.value.nearest == ("llama-3",)
    assert "rsc-1" in caught.value.hint

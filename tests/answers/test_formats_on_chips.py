"""A number format that a chip does not have is refused by every verb for one reason, never taken for another."""

from __future__ import annotations

import msgspec
import pytest

import datahall as dh
from datahall.answer import Answer
from datahall.catalog import Catalog
from datahall.catalog.claim import judge
from datahall.catalog.number_formats import unit_for
from datahall.errors import InfeasibleError, ScenarioError, UnsupportedError
from datahall.inference.engine.build import replica_of
from datahall.inference.memory.remedy import fits
from datahall.scenario.sections.deployment import Deployment

SHELF = Catalog(user=False)
MODEL = "llama-3.1-8b"
LOAD = {"rate": 1.0}
TRAINED = {"chips": 64, "global_batch": 64}
VERBS = {
    "show roofline": lambda chip, name: dh.show_roofline(chip, model=MODEL, precision=name),
    "show memory": lambda chip, name: dh.show_memory(MODEL, chip=chip, precision=name, **TRAINED),
    "show techniques": lambda chip, name: dh.show_techniques(MODEL, chip=chip, precision=name, **LOAD),
    "simulate serve": lambda chip, name: dh.simulate_serve(
        MODEL, chip=chip, precision=name, duration="20s", **LOAD
    ),
    "plan train": lambda chip, name: dh.plan_train(MODEL, tokens=1e9, chip=chip, precision=name, **TRAINED),
    "simulate train": lambda chip, name: dh.simulate_train(MODEL, chip=chip, precision=name, **TRAINED),
}
# what multiplies in it, by the makers' words
NATIVE = {
    "fp8": {"h100-sxm", "b200-sxm", "mi300x", "mi355x"},
    "mxfp8": {"b200-sxm", "mi355x"},
    "nvfp4": {"b200-sxm"},
}
CHIPS = ("a100-sxm-80gb", "h100-sxm", "b200-sxm", "mi300x", "mi355x")
MISSING = [(chip, name) for name, chips in NATIVE.items() for chip in CHIPS if chip not in chips]


def reason(chip: str, name: str) -> str:
    with pytest.raises(UnsupportedError) as caught:
        SHELF.chip(chip).peak(name)
    return caught.value.message


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(("chip", "name"), MISSING)
def test_a_format_that_a_chip_lacks_is_refused_by_name(verb: str, chip: str, name: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        VERBS[verb](chip, name)
    assert caught.value.field == "precision"
    assert caught.value.message == reason(chip, name)


@pytest.mark.parametrize(("chip", "name"), MISSING)
def test_plans_and_fits_say_no_for_the_same_reason(chip: str, name: str) -> None:
    why = reason(chip, name)
    with pytest.raises(InfeasibleError, match="serves") as caught:
        dh.plan_serve(MODEL, chips=chip, precision=name, **LOAD)
    assert why in caught.value.message
    found = dh.show_fit(MODEL, chip=chip, precision=name)
    assert found.verdict == "no"
    assert why.split(";")[0] in found.headline
    (row,) = fitting(name, chip)
    assert why.split(";")[0].split(" has ")[1] in str(row)


def fitting(name: str, chip: str) -> tuple[tuple[object, ...], ...]:
    """What a model in some format fits on."""
    tables = dh.show_model(MODEL, precision=name, chips=chip).tables
    return next(table.rows for table in tables if table.title.startswith("what it fits on"))


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("chip", "name"), [("h100-sxm", "fp8"), ("b200-sxm", "mxfp8"), ("b200-sxm", "nvfp4")]
)
def test_a_format_that_a_chip_has_is_taken(verb: str, chip: str, name: str) -> None:
    found = VERBS[verb](chip, name)
    assert isinstance(found, Answer)
    assert found.inputs["precision"] == name


def test_a_chip_multiplies_in_what_it_has_a_peak_for() -> None:
    for chip in SHELF.chips():
        for name in (*chip.peak_flop_per_s, "mxfp8", "mxfp4", "nvfp4", "fp8", "fp4"):
            try:
                assert chip.peak(name) > 0
                is_there = True
            except UnsupportedError:
                is_there = False
            assert chip.multiplies(name) is is_there


@pytest.mark.parametrize(
    ("chip", "is_there"),
    [
        ("b200-sxm", True), ("rtx-pro-6000", True), ("mi355x", True), ("trainium3", True), ("ascend-950dt", True),
        ("gh200", False), ("l40s", False), ("mi325x", False), ("gaudi3", False), ("trainium2", False),
    ],
)  # fmt: skip
def test_scales_per_small_group_came_with_the_units_for_four_bits(chip: str, is_there: bool) -> None:
    assert SHELF.chip(chip).multiplies("fp8")
    assert SHELF.chip(chip).multiplies("mxfp8") is SHELF.chip(chip).multiplies("mxfp4") is is_there


@pytest.mark.parametrize(("chip", "is_there"), [("h100-sxm", False), ("b200-sxm", True)])
def test_a_replica_in_a_format_that_its_chip_lacks_does_not_fit(chip: str, is_there: bool) -> None:
    replica = replica_of(Deployment(chip=chip, precision="mxfp8"), SHELF.model(MODEL), SHELF)
    assert fits(replica, 1000) is is_there


def test_a_chip_of_which_nobody_says_so_is_not_said_to_lack_it() -> None:
    silent = msgspec.structs.replace(SHELF.chip("h100-sxm"), lacks=("fp4",))
    with pytest.raises(UnsupportedError, match="whether NVIDIA H100 SXM multiplies MXFP8 is not known"):
        silent.peak("MX-FP8")


@pytest.mark.parametrize("chip", ["mi350x", "mi355x", "trainium3", "ascend-950dt"])
def test_units_for_mx_formats_take_no_nvfp4(chip: str) -> None:
    found = SHELF.chip(chip)
    assert found.multiplies("mxfp4")
    assert not found.multiplies("nvfp4")
    with pytest.raises(
        UnsupportedError, match="has no NVFP4; its FP4 units take the scales of MX formats only"
    ):
        found.peak("NVFP4")


@pytest.mark.parametrize("chip", ["mi455x", "tpu-8t"])
def test_four_bit_units_of_which_nobody_says_it_are_not_taken_for_nvidias(chip: str) -> None:
    with pytest.raises(UnsupportedError, match="multiplies NVFP4 is not known"):
        SHELF.chip(chip).peak("nvfp4")
    assert "is not known to have NVFP4" in dh.show_fit(MODEL, chip=chip, precision="nvfp4").headline


@pytest.mark.parametrize(("chip", "is_there"), [("b200-sxm", True), ("mi355x", False), ("h100-sxm", False)])
def test_techniques_offer_nvfp4_where_it_is_multiplied(chip: str, is_there: bool) -> None:
    found = dh.show_techniques(MODEL, chip=chip, **LOAD)
    words = " ".join(str(row) for table in found.tables for row in table.rows)
    assert "fp8 weights" in words
    assert ("nvfp4" in words) is is_there


@pytest.mark.parametrize("name", ["mxfp8", "MX-FP8", "mxfp6", "mxfp4", "NVFP4", "fp8", "float16"])
def test_a_list_of_chips_by_a_format_has_those_that_multiply_it(name: str) -> None:
    rows = dh.catalog_chips(precision=name, catalog=SHELF).tables[0].rows
    wanted = {chip.name: chip.peak(name) for chip in SHELF.chips() if chip.multiplies(name)}
    assert wanted
    assert {row[0]: row[4] for row in rows} == wanted


@pytest.mark.parametrize(("name", "unit"), [("w4a16", "bf16"), ("fp8-kv8", "fp8"), ("W4A8", "fp8")])
def test_a_list_of_chips_by_a_format_to_serve_in_names_what_multiplies_it(name: str, unit: str) -> None:
    with pytest.raises(ScenarioError, match="is a format to serve in") as caught:
        dh.catalog_chips(precision=name)
    assert caught.value.field == "precision"
    assert f"precision={unit}" in caught.value.hint.replace("⟦", "").replace('"', "")
    assert dh.catalog_chips(precision=unit).tables[0].rows


@pytest.mark.parametrize(
    ("chip", "name", "outcome"),
    [
        ("h100-sxm", "mxfp8", "unsupported"), ("mi355x", "nvfp4", "unsupported"), ("mi455x", "NVFP4", "unknown"),
        ("b200-sxm", "nvfp4", "correct"), ("mi355x", "mxfp4", "correct"), ("h100-sxm", "e4m3", "correct"),
    ],
)  # fmt: skip
def test_a_claim_in_a_format_is_not_held_against_the_peak_of_another(
    chip: str, name: str, outcome: str
) -> None:
    unit = SHELF.chip(chip).peak_flop_per_s[unit_for(name)]
    assert judge(SHELF, chip, f"peak.{name}", f"{unit / 1e12:g} TFLOP/s").outcome == outcome

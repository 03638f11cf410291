"""Which constants a chip gets, and that the shipped ones make sense."""

from __future__ import annotations

import json
import math
from importlib import resources
from itertools import chain

import msgspec
import pytest

from datahall.catalog import Catalog
from datahall.catalog.entries.chip import FAMILIES, Chip
from datahall.errors import ScenarioError
from datahall.scenario.words import LEVELS
from datahall.silicon.calibration import (
    Constants,
    Path,
    calibrate,
    constant_sets,
    num_sms,
    weakest,
)
from datahall.silicon.kernel_formats import kernel_format

CATALOG = Catalog(user=False)
SETS = constant_sets()
MEASURED = [one for one in SETS.values() if one.chip]
KINDS = {"gemm", "attention", "grouped_gemm", "stream", "pass"}

every_set = pytest.mark.parametrize("name", list(SETS))


@pytest.mark.parametrize(
    ("chip", "level"),
    [
        ("h200-sxm", "measured"),
        ("h100-sxm", "measured"),
        ("a100-sxm-80gb", "measured"),
        ("b200-sxm", "measured"),
        ("h100-pcie", "family-calibrated"),
        ("a100-sxm-40gb", "family-calibrated"),
        ("l4", "family-calibrated"),
        ("tpu-v5p", "datasheet only"),
        ("mi300x", "datasheet only"),
        ("v100-sxm2-32gb", "datasheet only"),
    ],
)
def test_a_chip_gets_the_best_level_there_is(chip: str, level: str) -> None:
    assert calibrate(CATALOG.chip(chip)).level == level


def test_a_measured_chip_keeps_its_constants_as_fitted() -> None:
    found = calibrate(CATALOG.chip("h100-sxm"))
    assert found.constants is next(one for one in MEASURED if one.chip == "h100-sxm")


@pytest.mark.parametrize(("asked", "level"), LEVELS.items())
def test_a_level_asked_for_is_the_level_given(asked: str, level: str) -> None:
    assert calibrate(CATALOG.chip("h200-sxm"), asked).level == level


@pytest.mark.parametrize(
    ("chip", "level", "have"),
    [
        ("h100-pcie", "measured", "family, datasheet"),
        ("mi300x", "measured", "datasheet"),
        ("mi300x", "family", "datasheet"),
    ],
)
def test_a_level_that_a_chip_lacks_is_an_error_that_names_its_own(chip: str, level: str, have: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        calibrate(CATALOG.chip(chip), level)
    assert level in caught.value.message
    assert caught.value.hint == f"it has {have}"


def test_an_unknown_level_names_those_there_are() -> None:
    with pytest.raises(ScenarioError, match="one of datasheet, family, measured"):
        calibrate(CATALOG.chip("h200-sxm"), "guess")


def test_a_stack_chooses_among_the_sets_of_one_chip() -> None:
    chip = CATALOG.chip("h200-sxm")
    stacks = [one.stack for one in MEASURED if one.chip == chip.name]
    assert len(stacks) > 1
    for stack in stacks:
        found = calibrate(chip, stack=stack)
        assert (found.constants.stack, found.level) == (stack, "measured")


def test_an_unknown_stack_names_those_there_are() -> None:
    with pytest.raises(ScenarioError) as caught:
        calibrate(CATALOG.chip("h200-sxm"), stack="abacus")
    for stack in {one.stack for one in MEASURED}:
        assert stack in caught.value.hint


def test_a_stack_that_a_chip_was_not_measured_with_is_an_error_and_no_other_stack() -> None:
    with pytest.raises(ScenarioError, match='mi300x has no constants of stack "vllm"'):
        calibrate(CATALOG.chip("mi300x"), stack="vllm")
    assert calibrate(CATALOG.chip("mi300x"), "datasheet", "vllm").level == "datasheet only"


def test_a_chip_of_the_family_is_scaled_by_its_own_multiprocessors() -> None:
    chip, like = CATALOG.chip("h20"), calibrate(CATALOG.chip("h200-sxm")).constants
    scaled = calibrate(chip).constants
    factor = chip.peak("bf16") / num_sms(chip) / like.reference_sm_flop_per_s
    assert scaled.gemm.feed_bytes_per_s == pytest.approx(like.gemm.feed_bytes_per_s * factor)
    assert scaled.decode.sm_stream_bytes_per_s == pytest.approx(like.decode.sm_stream_bytes_per_s * factor)
    assert scaled.prefill.softmax_s == pytest.approx(like.prefill.softmax_s / factor)
    assert scaled.paths == like.paths


def test_the_best_published_product_bounds_a_chip_nobody_measured_here() -> None:
    chip = CATALOG.chip("mi300x")
    best = chip.measured_peak_flop_per_s["bf16"]
    path = calibrate(chip).constants.path("bf16")
    assert path.power_efficiency == pytest.approx(best / chip.peak("bf16"))


def test_a_family_without_peaks_keeps_the_constants_unscaled() -> None:
    blank = Chip(name="x", title="X", vendor="", family="hopper")
    assert calibrate(blank).constants.gemm == calibrate(CATALOG.chip("h200-sxm")).constants.gemm


def test_few_large_cores_and_seas_of_tiny_ones_count_as_a_hundred() -> None:
    assert num_sms(CATALOG.chip("h200-sxm")) == 132
    for chip in ("tpu-v5p", "cerebras-wse3", "trainium2"):
        assert num_sms(CATALOG.chip(chip)) == 100


def test_a_precision_that_was_not_measured_takes_the_path_of_its_width() -> None:
    constants = calibrate(CATALOG.chip("h200-sxm")).constants
    assert constants.path("fp16") == constants.path("bf16") == constants.paths["bf16"]
    assert constants.path("int8") == constants.path("mxfp8") == constants.paths["fp8"]
    plain = constants.gemm_for("fp8")
    assert plain.tensor_efficiency == constants.paths["fp8"].tensor_efficiency
    drooped = constants.gemm_for("fp8", sustained=True)
    assert drooped.power_efficiency == plain.power_efficiency * constants.sustained


@every_set
def test_a_set_says_what_it_was_fitted_on(name: str) -> None:
    one = SETS[name]
    assert one.name == name
    assert one.source.title
    assert one.source.date
    assert one.fitted_on
    assert one.stack
    assert one.source.kind == ("measured" if one.chip else "estimate")


@every_set
def test_a_set_belongs_to_a_chip_of_the_catalogue(name: str) -> None:
    one = SETS[name]
    if not one.chip:
        assert name == "generic"
        return
    chip = CATALOG.chip(one.chip)
    assert chip.name == one.chip, "by its name, not by an alias"
    assert chip.family == one.family in FAMILIES
    assert one.reference_sm_flop_per_s == pytest.approx(chip.peak("bf16") / num_sms(chip), rel=1e-3)


@every_set
def test_a_set_has_a_band_around_every_kind_of_kernel(name: str) -> None:
    bands = SETS[name].bands
    assert bands.keys() == KINDS
    for kind, (low, high) in bands.items():
        assert 0 < low < 1 < high < 4, kind


@every_set
def test_constants_have_the_size_of_what_they_mean(name: str) -> None:
    """Shares are shares, times of a kernel are microseconds, rates are above zero."""
    one = SETS[name]
    groups = [one.gemm, one.prefill, one.decode, one.grouped, one.batched, one.stream, *one.paths.values()]
    groups += [*one.experts.values(), *filter(None, (one.latent_prefill, one.latent_decode))]
    fields = chain.from_iterable(msgspec.structs.asdict(group).items() for group in groups)
    for field, value in fields:
        if isinstance(value, str):
            assert value in {"fine", "coarse"}
            continue
        if (field, value) == ("l2_bytes_per_s", math.inf):  # not measured
            continue
        if field == "eager_s":  # the host's work, not a kernel's
            assert 0 <= value < 1e-3
            continue
        if field.endswith("_s") and not field.endswith("_per_s"):
            assert 0 <= value < 1e-4, field
        else:
            assert 0 < value < math.inf, field
        if field.endswith("efficiency"):
            assert value <= 1.1, field
    assert 0.5 < one.sustained <= 1
    assert "bf16" in one.paths
    assert one.paths["bf16"].memory_factor == one.paths["bf16"].launch_factor == 1


@every_set
def test_nothing_outruns_the_datasheet_for_long(name: str) -> None:
    """Inside a tile a chip may boost past its datasheet; held at the power limit, or from memory, never."""
    one = SETS[name]
    shares = [one.prefill.power_efficiency, one.grouped.power_efficiency, one.decode.memory_efficiency]
    shares += [path.power_efficiency for path in one.paths.values()]
    shares += [one.gemm.memory_efficiency * path.memory_factor for path in one.paths.values()]
    shares += [one.grouped.memory_efficiency, one.stream.memory_efficiency, one.stream.row_efficiency]
    assert max(shares) <= 1


def test_no_two_sets_describe_the_same_chip_and_stack() -> None:
    keys = [(one.chip, one.stack) for one in SETS.values()]
    assert len(set(keys)) == len(keys)


def test_the_file_holds_nothing_that_is_not_read() -> None:
    """A misspelt constant would be left out silently."""
    text = resources.files("datahall.silicon").joinpath("data/constants.json").read_text(encoding="utf-8")
    for name, table in json.loads(text).items():
        read = msgspec.to_builtins(SETS[name])
        for key, value in table.items():
            if isinstance(value, dict) and key not in {"paths", "bands"}:
                assert value.keys() <= read[key].keys(), (name, key)
        assert table.keys() <= read.keys(), name


def test_an_engines_streams_leave_a_measured_cast_and_product_their_sum() -> None:
    """Tables hold both together: what a compiled cast saves stays with the product; training asks for no stack."""
    chip = CATALOG.chip("h100-sxm")
    plain, served = calibrate(chip).constants, calibrate(chip, stack="vllm").constants
    assert plain.name == served.name
    assert served.stream.kernel_s < plain.stream.kernel_s
    assert served.stream.row_element_s < plain.stream.row_element_s
    for form in ("fp8", "fp8-block"):
        sums = [one.gemm_for(form).launch_s + one.stream.kernel_s for one in (plain, served)]
        assert sums[0] == pytest.approx(sums[1])
    assert plain.gemm_for("bf16") == served.gemm_for("bf16")


def with_paths(*names: str) -> Constants:
    """A set in which each precision is told apart by its tensor efficiency."""
    paths = {
        name: Path(tensor_efficiency=float(place), power_efficiency=1.0) for place, name in enumerate(names)
    }
    return msgspec.structs.replace(SETS["generic"], paths=paths)


@pytest.mark.parametrize(
    ("measured", "wanted", "taken"),
    [
        (("bf16", "fp8", "fp4", "int8", "int4", "fp16"), "fp6", "fp4"),
        (("bf16", "fp8", "fp4", "int8", "int4", "fp16"), "int8", "int8"),
        (("bf16", "fp8", "fp4", "int8", "int4", "fp16"), "int4", "int4"),
        (("bf16", "fp8", "fp4", "int8", "int4", "fp16"), "nvfp4", "fp4"),
        (("bf16", "fp8"), "fp6", "fp8"),
        (("bf16", "fp8"), "nvfp4", "fp8"),
        (("bf16", "fp8"), "int4", "fp8"),
        (("bf16",), "fp8", "bf16"),
        (("bf16", "fp8"), "tf32", "bf16"),
        (("bf16", "tf32"), "tf32", "tf32"),
        (("bf16", "fp8"), "fp8-block", "fp8"),
        (("bf16", "fp8", "fp8-block"), "fp8-block", "fp8-block"),
        (("bf16", "fp8", "fp4"), "mxfp4-fp8", "fp8"),
        (("bf16", "fp8", "fp4"), "mxfp4-bf16", "bf16"),
        (("bf16", "int4", "int8"), "int4-bf16", "bf16"),  # weights alone are narrow: the arithmetic is not
        (("bf16", "int4", "int8"), "int8-bf16", "bf16"),
    ],
)
def test_a_precision_takes_the_nearest_path_that_was_measured(
    measured: tuple[str, ...], wanted: str, taken: str
) -> None:
    constants = with_paths(*measured)
    assert constants.path(wanted) == constants.paths[taken]


@pytest.mark.parametrize(
    ("measured", "wanted", "taken"),
    [
        (("bf16", "fp8"), "bf16", "bf16"),
        (("bf16", "fp8", "fp8-block"), "int8", "fp8"),
        (("bf16", "fp8-block"), "int8", "fp8-block"),
        (("bf16", "fp8-block"), "fp8", "fp8-block"),
        (("bf16", "fp8", "mxfp4-fp8"), "fp4", "mxfp4-fp8"),
        (("bf16", "fp8"), "fp8-block", "fp8"),
        (("bf16", "fp8", "mxfp4-bf16"), "int4-bf16", "mxfp4-bf16"),
        (("bf16", "fp8", "int4-bf16"), "mxfp4-bf16", "int4-bf16"),
        (("bf16", "fp8"), "mxfp4-bf16", "bf16"),
        (("bf16", "int4-bf16"), "int8-bf16", "int4-bf16"),
        (("bf16", "fp8", "fp8-block"), "mxfp4-fp8", "fp8-block"),
        (("fp8",), "bf16", "fp8"),
        (("bf16",), "tf32", "bf16"),
    ],
)
def test_experts_take_the_nearest_kernel_that_was_measured(
    measured: tuple[str, ...], wanted: str, taken: str
) -> None:
    some = next(one.experts["bf16"] for one in SETS.values() if "bf16" in one.experts)
    experts = {
        name: msgspec.structs.replace(some, launch_s=float(place)) for place, name in enumerate(measured)
    }
    constants = msgspec.structs.replace(SETS["generic"], experts=experts)
    assert constants.expert(wanted) == experts[taken]
    assert SETS["generic"].expert(wanted) is None


@pytest.mark.parametrize(
    ("precision", "weights", "block_scaled", "kernel"),
    [
        ("bf16", "fp8", False, "int8-bf16"),
        ("fp16", "nvfp4", False, "mxfp4-bf16"),
        ("fp16", "int8", True, "int8-bf16"),
        ("fp8", "int4", True, "mxfp4-fp8"),
        ("fp8", "int8", False, "fp8"),
        ("fp8", "fp8", False, "fp8"),
        ("int8", "int8", True, "int8"),
        ("fp16", "fp16", False, "fp16"),
    ],
)
def test_narrow_weights_name_the_kernel_of_wide_arithmetic(
    precision: str, weights: str, block_scaled: bool, kernel: str
) -> None:
    assert kernel_format(precision, weights, block_scaled=block_scaled) == kernel


def test_a_precision_changes_its_own_shares_of_a_product_and_nothing_else() -> None:
    path = Path(tensor_efficiency=0.7, power_efficiency=0.6, memory_factor=0.5, launch_factor=3.0)
    constants = msgspec.structs.replace(with_paths("bf16"), sustained=0.5)
    constants = msgspec.structs.replace(constants, paths=constants.paths | {"fp8": path})
    found, base = constants.gemm_for("fp8"), constants.gemm
    assert (found.tensor_efficiency, found.power_efficiency) == (0.7, 0.6)
    assert found.launch_s == pytest.approx(3 * base.launch_s)
    assert found.memory_efficiency == pytest.approx(0.5 * base.memory_efficiency)
    assert found.feed_bytes_per_s == base.feed_bytes_per_s
    assert constants.gemm_for("fp8", sustained=True).power_efficiency == pytest.approx(0.3)


FED = {
    "gemm": {"feed_bytes_per_s", "epilogue_bytes_per_s", "sm_stream_bytes_per_s", "choose_stream_bytes_per_s"},
    "decode": {"sm_stream_bytes_per_s"},
    "experts": {"feed_bytes_per_s"},
}  # fmt: skip


def test_twice_the_arithmetic_of_a_multiprocessor_is_fed_at_twice_the_rates() -> None:
    """A relative of a measured chip: what feeds a multiprocessor scales with it, all else stays."""
    own = SETS["h200-vllm"] if "h200-vllm" in SETS else next(one for one in MEASURED if one.experts)
    base = CATALOG.chip(own.chip)
    peak = 2 * own.reference_sm_flop_per_s * num_sms(base)
    kin = msgspec.structs.replace(base, name="kin", peak_flop_per_s={"bf16": peak})
    every = calibrate(base, stack=own.stack).constants
    found = calibrate(kin, stack=own.stack)
    assert found.level == "family-calibrated"
    if found.constants.name != own.name:
        every = next(one for one in MEASURED if one.name == found.constants.name)
        every = calibrate(CATALOG.chip(every.chip), stack=own.stack).constants
    for part, fields in FED.items():
        pairs = [(getattr(every, part), getattr(found.constants, part))]
        if part == "experts":
            pairs = [(one, found.constants.experts[name]) for name, one in every.experts.items()]
        for before, after in pairs:
            for field in before.__struct_fields__:
                ratio = 2.0 if field in fields else 1.0
                if isinstance(getattr(before, field), float):
                    assert getattr(after, field) == pytest.approx(ratio * getattr(before, field), rel=2e-3), (
                        field
                    )
    assert found.constants.prefill.softmax_s == pytest.approx(every.prefill.softmax_s / 2, rel=2e-3)
    for kind, (low, high) in every.bands.items():
        assert found.constants.bands[kind] == pytest.approx((0.9 * low, 1.12 * high))


@pytest.mark.parametrize(
    ("peaks", "taken"),
    [
        ({"bf16": 1.0, "fp16": 3.0, "fp8": 9.0}, 1.0),
        ({"fp16": 3.0, "fp8": 9.0}, 3.0),
        ({"fp8": 9.0, "int8": 4.0}, 9.0),
    ],
)
def test_a_chip_is_scaled_by_its_half_width_peak_or_the_best_it_has(
    peaks: dict[str, float], taken: float
) -> None:
    generic = SETS["generic"]
    chip = Chip(
        name="x", title="X", vendor="", family="x", peak_flop_per_s={k: v * 1e14 for k, v in peaks.items()}
    )
    factor = taken * 1e14 / 100 / generic.reference_sm_flop_per_s
    found = calibrate(chip).constants
    assert found.gemm.feed_bytes_per_s == pytest.approx(generic.gemm.feed_bytes_per_s * factor)
    assert found.bands == generic.bands  # nothing is nearer to it than the generic set is to any chip


@pytest.mark.parametrize(("cores", "counted"), [(15, 100), (16, 16), (512, 512), (513, 100)])
def test_multiprocessors_that_hold_a_tile_are_counted(cores: int, counted: float) -> None:
    assert num_sms(msgspec.structs.replace(CATALOG.chip("h200-sxm"), num_sms=cores)) == counted


def test_the_best_published_product_counts_only_where_the_peak_is_known_too() -> None:
    chip = Chip(
        name="x", title="X", vendor="", family="x", peak_flop_per_s={"bf16": 4e14},
        measured_peak_flop_per_s={"bf16": 3e14, "fp8": 5e14},
    )  # fmt: skip
    found, generic = calibrate(chip).constants, SETS["generic"]
    assert found.paths["bf16"].power_efficiency == pytest.approx(0.75)
    assert found.paths["bf16"].tensor_efficiency == generic.paths["bf16"].tensor_efficiency
    assert found.paths["fp8"] == generic.paths["fp8"]


def test_a_stack_is_served_and_a_chip_without_one_is_not() -> None:
    assert calibrate(CATALOG.chip("h200-sxm"), stack="vllm").serving
    assert calibrate(CATALOG.chip("h100-pcie"), stack="vllm").serving
    assert not calibrate(CATALOG.chip("h200-sxm")).serving
    assert not calibrate(CATALOG.chip("h100-pcie")).serving
    assert not calibrate(CATALOG.chip("h200-sxm"), "datasheet", "vllm").serving


def test_what_a_compiled_cast_saves_stays_with_products_whose_input_is_cast() -> None:
    plain, served = (calibrate(CATALOG.chip("h100-sxm"), stack=stack).constants for stack in (None, "vllm"))
    saved_s = plain.stream.kernel_s - served.stream.kernel_s
    for name, path in plain.paths.items():
        launch_s = served.gemm.launch_s * served.paths[name].launch_factor
        more_s = launch_s - plain.gemm.launch_s * path.launch_factor
        cast = name in {"fp8", "fp8-block", "fp4", "int8"}
        assert more_s == pytest.approx(saved_s if cast else 0.0, abs=1e-12), name


def test_what_rests_on_several_rests_on_the_weakest() -> None:
    assert weakest(("measured", "datasheet only", "family-calibrated")) == "datasheet only"
    assert weakest(("measured", "family-calibrated")) == "family-calibrated"
    assert weakest(("measured",)) == "measured"
    assert weakest(("measured", "")) == ""

"""What fits on which group of chips: memory divided without a rest, the smallest group, and why none holds it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.breakdown import false_nodes
from datahall.catalog import Catalog
from datahall.errors import UnsupportedError
from datahall.inference.early import check_format
from datahall.inference.engine.build import replica_of
from datahall.inference.engine.replica import Replica
from datahall.inference.memory.fit import (
    LARGEST_SEARCHED,
    best,
    fewest_chips,
    fits_on,
    legal_groups,
    on_group,
    smallest_fit,
    why_not,
)
from datahall.inference.memory.kv_pool import DRIVER_BYTES
from datahall.inference.memory.room import seen_figure
from datahall.scenario.sections.deployment import Deployment
from datahall.workload.precision import Precision

SHELF = Catalog(user=False)
BF16, FP8 = Precision.named("bf16"), Precision.named("fp8")


def replica(model: str = "llama-3.1-70b", chip: str = "h100-sxm", precision: str = "bf16") -> Replica:
    return replica_of(Deployment(chip=chip, precision=precision), SHELF.model(model), SHELF)


@settings(deadline=None)
@given(tp=st.sampled_from([2, 4, 8]), context=st.integers(1, 100_000), num=st.integers(0, 500))
def test_memory_is_weights_sequences_and_what_is_kept_back(tp: int, context: int, num: int) -> None:
    found = on_group(replica(), tp, context)
    assert found.weight_bytes + found.free_bytes + found.kept_back_bytes == pytest.approx(
        found.capacity.memory_bytes
    )
    assert found.held_bytes(num) == pytest.approx(found.weight_bytes + num * found.sequence_bytes)
    assert found.left_bytes(num) == -found.missing_bytes(num)
    assert found.missing_bytes(0) == pytest.approx(-found.free_bytes)
    assert found.weight_fraction == pytest.approx(
        found.weight_bytes / (found.weight_bytes + found.free_bytes)
    )
    holds = found.num_sequences
    assert found.holds(holds) == (found.free_bytes > 0)
    assert not found.holds(holds + 1)
    # blocks of all sequences that it holds are there, and those of one more are not
    if found.free_bytes > 0:
        assert found.missing_bytes(holds) <= 0
        assert found.missing_bytes(holds + 1) > -found.capacity.block_bytes


def test_weights_that_do_not_fit_leave_less_than_nothing() -> None:
    alone = on_group(replica(), 1, 4096)
    assert alone.weight_fraction > 1.0
    assert not alone.holds(0)
    assert not alone.holds(1)


def test_the_smallest_group_is_the_first_that_holds_the_sequences() -> None:
    few, many = fits_on(replica(), 4096, 1), fits_on(replica(), 4096, 400)
    assert few is not None
    assert many is not None
    assert few.tp < many.tp
    for found, num in ((few, 1), (many, 400)):
        smaller = [tp for tp in legal_groups(found.replica.model) if tp < found.tp]
        assert found.holds(num)
        assert not any(on_group(replica(), tp, 4096).holds(num) for tp in smaller)
    assert fits_on(replica(), 4096, 1, tp=8).tp == 8  # type: ignore[union-attr]
    assert fits_on(replica(), 4096, 1, tp=1) is None
    assert fits_on(replica(), 4096, 10**9) is None
    assert fits_on(replica(chip="a100-sxm-80gb"), 4096, 1) is not None
    assert fits_on(msgspec.structs.replace(replica(chip="a100-sxm-80gb"), precision=FP8), 4096, 1) is None


def test_why_no_group_holds_it_is_said() -> None:
    def fit(chip: str, num: int, precision: str = "bf16") -> object:
        return smallest_fit(
            SHELF.model("llama-3.1-70b"), SHELF.chip(chip), context=4096, num_sequences=num,
            precision=precision, catalog=SHELF,
        )  # fmt: skip

    found = fit("h100-sxm", 1)
    assert (found.tp, found.why) == (fits_on(replica(), 4096, 1).tp, "")  # type: ignore[attr-defined, union-attr]
    none = fit("h100-sxm", 10**9)
    assert (none.tp, none.why) == (0, f"too small, even {LARGEST_SEARCHED} of them")  # type: ignore[attr-defined]
    assert "FP8" in fit("a100-sxm-80gb", 1, "fp8").why  # type: ignore[attr-defined]


@pytest.mark.parametrize("context", [0, 4096, 131_072])
def test_the_fewest_chips_hold_one_sequence_and_half_of_them_none(context: int) -> None:
    asked = msgspec.structs.replace(replica(), max_context=context)
    fewest = fewest_chips(asked)
    assert on_group(replica(), fewest, context or 16).holds(1)
    smaller = [tp for tp in legal_groups(asked.model) if tp < fewest]
    assert not any(on_group(replica(), tp, context or 16).holds(1) for tp in smaller)
    assert fewest_chips(msgspec.structs.replace(asked, precision=FP8, chip=SHELF.chip("a100-sxm-80gb"))) == 1


def test_a_format_that_a_chip_cannot_multiply_in_is_said() -> None:
    h100, a100 = SHELF.chip("h100-sxm"), SHELF.chip("a100-sxm-80gb")
    assert why_not(h100, FP8) == why_not(a100, BF16) == ""
    assert why_not(a100, FP8).endswith("FP8")
    check_format(h100, FP8)
    with pytest.raises(UnsupportedError) as caught:
        check_format(a100, FP8)
    assert caught.value.field == "precision"


def test_the_best_row_has_the_fewest_chips_then_the_most_sequences() -> None:
    two, four = on_group(replica(), 2, 4096), on_group(replica(), 4, 4096)
    roomy = on_group(replica(chip="h200-sxm"), 4, 4096)
    none = msgspec.structs.replace(two, tp=0)
    assert best([none, four, roomy]) == 2
    assert best([four, two, none]) == 1
    assert best([none]) is None
    assert best([]) is None


def test_groups_are_powers_of_two_that_divide_the_heads() -> None:
    assert legal_groups(SHELF.model("llama-3.1-8b")) == [1, 2, 4, 8, 16, 32]
    assert max(legal_groups(SHELF.model("llama-3.1-70b"))) == LARGEST_SEARCHED


def test_a_group_larger_than_its_domain_leaves_it() -> None:
    inside, outside = on_group(replica(), 8, 4096), on_group(replica(), 16, 4096)
    assert (inside.num_domain, inside.leaves_domain, outside.leaves_domain) == (8, False, True)
    cards = on_group(replica(chip="l40s"), 2, 4096)
    assert cards.num_domain >= 1


def test_a_program_sees_what_the_driver_leaves_of_a_chip() -> None:
    for name in ("h100-sxm", "h200-sxm", "mi300x", "tpu-v5e"):
        chip = SHELF.chip(name)
        figure = seen_figure(chip)
        visible = chip.facts.get("visible_memory_bytes")
        assert figure.value == (visible.value - DRIVER_BYTES if visible else chip.memory_bytes)
        assert false_nodes(figure) == []
    bare = msgspec.structs.replace(SHELF.chip("h100-sxm"), facts={}, memory_bytes=5e9)
    assert (seen_figure(bare).value, seen_figure(bare).origin) == (5e9, "assumption")

"""What is exchanged: an array that was said, one number, or the tokens of an MoE layer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.breakdown import false_nodes
from datahall.errors import ScenarioError, spelled
from datahall.fabric.collectives.algorithms.dispatch import array_of, dispatch_of
from datahall.fabric.collectives.algorithms.moves import NUMBER_BYTES
from datahall.scenario.sections.fabric import CollectiveCall
from datahall.scenario.words import COLLECTIVES

LAYER = CollectiveCall(collective="all-to-all", experts=8, tokens=4096, topk=2, hidden=1000, precision="bf16")


def test_an_array_is_as_large_as_was_said() -> None:
    for kind in set(COLLECTIVES) - {"barrier"}:
        call = CollectiveCall(collective=kind, size_bytes=3e6)
        assert array_of(call, kind, None).value == 3e6
        with pytest.raises(ScenarioError, match="how large") as caught:
            array_of(CollectiveCall(collective=kind), kind, None)
        assert caught.value.field == "size"


def test_a_barrier_is_of_one_number_whatever_is_said() -> None:
    for call in (CollectiveCall(collective="barrier"), CollectiveCall(collective="barrier", size_bytes=3e6)):
        assert array_of(call, "barrier", None).value == NUMBER_BYTES


def test_a_layer_sizes_its_exchange() -> None:
    """512 tokens a device, each to two experts, 1,000 values of two bytes; an eighth of it stays."""
    layer = dispatch_of(LAYER, "all-to-all", num_chips=0)
    assert layer is not None
    array = array_of(LAYER, "all-to-all", layer)
    assert array.value == 512 * 2 * 1000 * 2
    assert false_nodes(array) == []
    assert layer.num_others == 7
    assert layer.sent_bytes == pytest.approx(array.value * 7 / 8)


@given(st.integers(2, 64), st.integers(1, 64))
def test_a_token_has_at_most_as_many_experts_as_there_are(experts: int, topk: int) -> None:
    call = CollectiveCall(collective="all-to-all", experts=experts, tokens=64, topk=topk, hidden=8)
    if topk <= experts:
        assert dispatch_of(call, "all-to-all", experts) is not None
        return
    with pytest.raises(ScenarioError, match=f"topk={topk} of {experts} experts") as caught:
        dispatch_of(call, "all-to-all", num_chips=0)
    assert caught.value.field == "topk"
    assert spelled(caught.value.hint) == f"at most topk={experts}"


def test_without_experts_there_is_no_layer() -> None:
    assert dispatch_of(CollectiveCall(size_bytes=1.0), "all-reduce", 8) is None


@pytest.mark.parametrize("missing", ["tokens", "topk", "hidden"])
def test_a_layer_without_one_of_its_numbers_is_refused(missing: str) -> None:
    said = {"tokens": 64, "topk": 2, "hidden": 8, missing: None}
    with pytest.raises(ScenarioError, match="is missing") as caught:
        dispatch_of(CollectiveCall(collective="all-to-all", experts=4, **said), "all-to-all", num_chips=0)
    assert caught.value.field == missing


def test_a_layer_sizes_an_all_to_all_of_one_chip_an_expert() -> None:
    assert dispatch_of(LAYER, "all-to-all", 8) == dispatch_of(LAYER, "all-to-all", 0)
    with pytest.raises(ScenarioError, match="8 experts on 16 chips") as caught:
        dispatch_of(LAYER, "all-to-all", 16)
    assert caught.value.field == "chips"
    with pytest.raises(ScenarioError, match="not all-reduce") as caught:
        dispatch_of(LAYER, "all-reduce", 8)
    assert caught.value.field == "experts"

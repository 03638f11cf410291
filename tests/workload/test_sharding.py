import re

import msgspec
import numpy as np
import pytest

from datahall.catalog.entries.model import Model
from datahall.errors import ScenarioError, spelled
from datahall.workload.division import check_stage
from datahall.workload.sharding import Sharding


@pytest.mark.parametrize("tp", [1, 2, 4, 8, 16, 32])
def test_llama_splits_by_heads_and_repeats_kv_heads_beyond_eight(llama: Model, tp: int) -> None:
    sharding = Sharding(tp=tp)
    sharding.check(llama)
    assert sharding.local_kv_heads(llama) == max(8 / tp, 1)


def test_an_illegal_split_names_rule_value_and_nearest(llama: Model) -> None:
    with pytest.raises(ScenarioError) as caught:
        Sharding(tp=6).check(llama)
    text = str(caught.value)
    assert "tp=6" in text
    assert "32 attention heads" in text
    assert "nearest legal: tp=4 or tp=8" in text


def test_the_nearest_legal_values_obey_every_rule(llama: Model) -> None:
    with pytest.raises(ScenarioError) as caught:
        Sharding(tp=12).check(llama)
    near = re.findall(r"tp=(\d+)", str(caught.value).partition("nearest")[2])
    assert len(near) == 2
    for value in near:
        Sharding(tp=int(value)).check(llama)


def test_experts_divide_by_ep(mixtral: Model) -> None:
    Sharding(tp=1, ep=8).check(mixtral)
    with pytest.raises(ScenarioError, match="8 experts divide by ep"):
        Sharding(ep=3).check(mixtral)


def test_ep_and_tp_nest(deepseek: Model) -> None:
    Sharding(tp=8, ep=4).check(deepseek)
    Sharding(tp=4, ep=64).check(deepseek)
    assert deepseek.moe is not None
    twelve = msgspec.structs.replace(deepseek, moe=msgspec.structs.replace(deepseek.moe, num_experts=12))
    with pytest.raises(ScenarioError, match="ep divides tp = 2 or is a multiple"):
        Sharding(tp=2, ep=3).check(twelve)


def test_the_experts_of_a_stage_lie_on_all_its_chips(mixtral: Model) -> None:
    """Two ranks of attention of two chips each: the experts may lie on 1, 2 or 4 of them."""
    for ep in (1, 2, 4):
        assert check_stage(mixtral, tp=2, dp=2, ep=ep).ep == ep
    with pytest.raises(ScenarioError, match="ep=8 does not divide the 4 chips of a stage"):
        check_stage(mixtral, tp=2, dp=2, ep=8)


@pytest.mark.parametrize(
    ("dp", "hint"), [(1, "ep=1; tp=8 has as many"), (2, "ep=1 or ep=2; tp=4 has as many")]
)
def test_experts_on_more_chips_than_there_are_are_told_how_to_have_them(
    mixtral: Model, dp: int, hint: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        check_stage(mixtral, dp=dp, ep=8)
    assert spelled(caught.value.hint) == hint
    assert "1 chips" not in caught.value.message
    assert check_stage(mixtral, tp=8 // dp, dp=dp, ep=8).ep == 8


def test_a_stage_without_experts_splits_by_tp_alone(llama: Model) -> None:
    split = check_stage(llama, tp=2, dp=3, ep=4)
    assert (split.tp, split.ep, split.num_groups) == (2, 1, 1)


def test_a_fraction_of_a_chip_is_refused(llama: Model) -> None:
    with pytest.raises(ScenarioError, match="whole number"):
        Sharding(tp=1.5).check(llama)


def test_columns_are_checked_value_by_value(llama: Model) -> None:
    Sharding(tp=np.array([1.0, 2.0, 8.0])).check(llama)
    with pytest.raises(ScenarioError, match="tp=3"):
        Sharding(tp=np.array([1.0, 3.0])).check(llama)


def test_dp_attention_frees_the_heads_from_tp(deepseek: Model) -> None:
    sharding = Sharding(tp=16, ep=16, dp_attention=True)
    sharding.check(deepseek)
    assert sharding.attention_tp == 1
    assert sharding.attention_dp == 16


@pytest.mark.parametrize(
    ("tp", "ep", "expert_tp", "groups"), [(8, 1, 8, 1), (8, 8, 1, 1), (8, 2, 4, 1), (2, 8, 1, 4)]
)
def test_experts_inside_or_across_groups(tp: int, ep: int, expert_tp: int, groups: int) -> None:
    sharding = Sharding(tp=tp, ep=ep)
    assert (sharding.expert_tp, sharding.expert_groups) == (expert_tp, groups)


def test_attention_ranks_may_meet_at_experts_that_are_also_sliced() -> None:
    """Four attention ranks of two chips: whole experts on each chip, pairs that share one, or slices of all."""
    for ep, sliced in ((8.0, 1.0), (4.0, 2.0), (1.0, 8.0)):
        spread = Sharding(tp=2.0, ep=ep, num_groups=4.0)
        assert (spread.expert_groups, spread.expert_tp) == (4.0, sliced)
    assert Sharding(tp=2.0, ep=8.0).expert_groups == 4.0  # what ep and tp imply

"""Every rule of a layout: who keeps it is legal, who goes a step beyond is not, and the input at fault is named."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.catalog import Catalog
from datahall.training.layout.layout import Layout
from datahall.training.layout.legality import broken_rules, nearest_legal

SHELF = Catalog(user=False)
LLAMA = SHELF.model("llama-3.1-8b")  # 32 layers, 32 heads
MIXED = SHELF.model("qwen3-30b-a3b")  # 128 experts of 768 columns
CHIPS, BATCH = 64, 128
PLAIN = Layout(tp=2, pp=2, dp=16)
ROUTED = Layout(tp=2, pp=1, ep=8, dp=32)


def blamed(layout: Layout, *, routed: bool = False, batch: int = BATCH, chips: int = CHIPS) -> set[str]:
    model = MIXED if routed else LLAMA
    return {one.blamed or one.field for one in broken_rules(layout, model, chips, batch)}


def laid_out(**changed: Any) -> Layout:
    """The plain layout with something changed, and as many replicas as the chips leave."""
    layout = msgspec.structs.replace(PLAIN, **changed)
    if "dp" in changed:
        return layout
    group = max(1, layout.tp * layout.pp * layout.cp)
    return msgspec.structs.replace(layout, dp=max(1, CHIPS // group))


@pytest.mark.parametrize(
    ("kept", "broken", "at"),
    [
        ({"tp": 4}, {"tp": 0}, "tp"),
        ({"pp": 4}, {"pp": -1}, "pp"),
        ({"dp": 16}, {"dp": 8}, "chips"),
        ({"zero": 3}, {"zero": 4}, "zero"),
        ({"zero": 0}, {"zero": -1}, "zero"),
        ({"context_exchange": "ring"}, {"context_exchange": "rong"}, "context_exchange"),
        ({"compression": "fp8"}, {"compression": "gzip"}, "compress"),
        ({"offload": ("optimizer:nvme",)}, {"offload": ("optimizer:tape",)}, "offload"),
        ({"offload": ("optimizer",)}, {"offload": ("everything",)}, "offload"),
        ({"offload": ("activations",)}, {"offload": ("activations",), "recompute": "full"}, "offload"),
        ({"recompute": "selective", "modules": ("mlp",)}, {"modules": ("mlp",)}, "recompute"),
        ({"recompute": "selective", "modules": ("mlp",)}, {"recompute": "selective", "modules": ("moe",)}, "modules"),
        (
            {"cp": 2, "context_exchange": "all-to-all"},
            {"tp": 32, "pp": 1, "cp": 2, "context_exchange": "all-to-all"},
            "cp",
        ),
        ({"pp": 4, "vpp": 8}, {"pp": 4, "vpp": 9}, "vpp"),
        ({"pp": 2, "split": (16, 16)}, {"pp": 2, "split": (16, 15)}, "split"),
        ({"pp": 2, "split": (0, 32)}, {"pp": 2, "split": (-1, 33)}, "split"),
        ({"pp": 2, "split": (16, 16)}, {"pp": 2, "split": (16, 8, 8)}, "split"),
        ({"pp": 2, "vpp": 2, "split": (16, 16)}, {"pp": 2, "vpp": 2, "split": (17, 15)}, "split"),
        ({"pp": 2, "vpp": 2, "split": (9, 7, 8, 8)}, {"pp": 2, "vpp": 2, "split": (9, 8, 8, 8)}, "split"),
        ({"shard": 4, "zero": 1}, {"shard": 5, "zero": 1}, "shard"),
        ({"shard": 4, "zero": 1}, {"shard": 4, "zero": 0}, "shard"),
        ({"shard": 16, "zero": 0}, {"shard": -1}, "shard"),
        ({"compression": "1-bit", "zero": 1}, {"compression": "1-bit", "zero": 2}, "compress"),
        ({"compression": "bf16", "zero": 2}, {"compression": "power-sgd", "zero": 3}, "compress"),
        ({"ep": 1}, {"ep": 2}, "ep"),
        ({"etp": 1}, {"etp": 2}, "etp"),
        ({"micro_batch": 8}, {"micro_batch": 16}, "global_batch"),
    ],
)  # fmt: skip
def test_a_rule_that_is_kept_and_broken(kept: dict[str, Any], broken: dict[str, Any], at: str) -> None:
    assert blamed(laid_out(**kept)) == set()
    assert at in blamed(laid_out(**broken))


@pytest.mark.parametrize(
    ("kept", "broken", "at"),
    [
        ({"ep": 8}, {"ep": 3}, "ep"),
        ({"tp": 2, "ep": 64, "dp": 32}, {"tp": 2, "ep": 128, "dp": 32}, "ep"),
        ({"ep": 8, "etp": 2}, {"ep": 8, "etp": 16}, "etp"),
        ({"ep": 8, "etp": 1}, {"ep": 8, "etp": -1}, "etp"),
        ({"ep": 2, "etp": 32}, {"ep": 2, "etp": 5}, "etp"),
    ],
)
def test_a_rule_of_experts(kept: dict[str, Any], broken: dict[str, Any], at: str) -> None:
    assert blamed(msgspec.structs.replace(ROUTED, **kept), routed=True) == set()
    assert at in blamed(msgspec.structs.replace(ROUTED, **broken), routed=True)


def test_interleaved_stages_need_whole_rounds_of_micro_batches() -> None:
    layout = Layout(pp=4, vpp=2, dp=16)
    assert blamed(layout, batch=16 * 8) == set()
    assert blamed(layout, batch=16 * 6) == {"global_batch"}
    assert blamed(msgspec.structs.replace(layout, vpp=1), batch=16 * 6) == set()
    assert blamed(layout, batch=0) == set()  # any that divides


def test_values_that_make_no_sense_are_said_before_rules_that_rest_on_them() -> None:
    assert blamed(Layout(tp=0, pp=2, dp=7)) == {"tp"}


def test_a_batch_that_does_not_divide_names_those_next_to_it() -> None:
    (one,) = broken_rules(laid_out(micro_batch=3), LLAMA, CHIPS, BATCH)
    assert "96" in one.hint
    assert "144" in one.hint
    (small,) = broken_rules(laid_out(micro_batch=16), LLAMA, CHIPS, BATCH)
    assert "256" in small.hint


@given(
    tp=st.integers(1, 9), pp=st.integers(1, 9), field=st.sampled_from(["tp", "pp", "micro_batch", "vpp"]),
    micro_batch=st.integers(1, 9),
)  # fmt: skip
def test_the_nearest_legal_values_are_legal_and_nothing_between_is(
    tp: int, pp: int, field: str, micro_batch: int
) -> None:
    layout = laid_out(tp=tp, pp=pp, micro_batch=micro_batch)
    here = getattr(layout, field)

    def legal(value: int) -> bool:
        changed = msgspec.structs.replace(layout, **{field: value})
        group = changed.tp * changed.pp * changed.cp
        if field in ("tp", "pp"):
            if CHIPS % group:
                return False
            changed = msgspec.structs.replace(changed, dp=CHIPS // group)
        return changed.is_legal(LLAMA, CHIPS, BATCH)

    most = {"micro_batch": BATCH, "vpp": LLAMA.num_layers}.get(field, CHIPS)
    below = [value for value in range(1, min(here, most + 1)) if legal(value)]
    above = [value for value in range(here + 1, most + 1) if legal(value)]
    wanted = (*below[-1:], *above[:1])
    assert nearest_legal(layout, field, LLAMA, CHIPS, BATCH) == wanted

"""What is exchanged: an array of some size, or the tokens that an MoE layer hands to its experts."""

from __future__ import annotations

import msgspec

from datahall.breakdown import Breakdown, assumed, given, product, quotient
from datahall.catalog.number_formats import bytes_per_value
from datahall.fabric.collectives.algorithms.all_to_all import dispatch_bytes
from datahall.fabric.collectives.algorithms.early import check_dispatch, check_size
from datahall.fabric.collectives.algorithms.moves import MOVES
from datahall.fabric.collectives.figure import one_number
from datahall.scenario.sections.fabric import CollectiveCall
from datahall.scenario.words import Collective


class Dispatch(msgspec.Struct, frozen=True, kw_only=True):
    """What an MoE layer hands over: tokens to top_k experts each, one expert a device."""

    num_experts: int
    num_tokens: int
    top_k: int
    hidden: int
    precision: str

    @property
    def num_others(self) -> int:
        """Devices that one device sends to."""
        return self.num_experts - 1

    @property
    def sent_bytes(self) -> float:
        """Bytes that one device sends to the others."""
        width = bytes_per_value(self.precision)
        return float(dispatch_bytes(self.num_tokens, self.top_k, self.hidden, self.num_experts, width))

    @property
    def array(self) -> Breakdown:
        """What one device holds for all others and itself, the size that nccl-tests means [B]."""
        tokens, experts = (
            given(name, num, "count", field=name)
            for name, num in (("tokens", self.num_tokens), ("experts", self.num_experts))
        )
        width = f"{self.precision}, by definition of the format"
        copies = (
            quotient("tokens of a device", tokens, experts, "count"),
            given("experts of a token", self.top_k, "count", field="topk"),
            given("values of a token", self.hidden, "count", field="hidden"),
            assumed("bytes of a value", bytes_per_value(self.precision), "bytes", width),
        )
        return product("array", copies, "bytes")


def dispatch_of(call: CollectiveCall, collective: Collective, num_chips: int) -> Dispatch | None:
    """The MoE layer that sizes an all-to-all, or None where no experts are given; one expert a chip."""
    check_dispatch(call, collective, num_chips)
    if call.experts is None:
        return None
    assert call.tokens is not None
    assert call.topk is not None
    assert call.hidden is not None
    return Dispatch(
        num_experts=call.experts,
        num_tokens=call.tokens,
        top_k=call.topk,
        hidden=call.hidden,
        precision=call.precision,
    )


def array_of(call: CollectiveCall, collective: Collective, moe: Dispatch | None) -> Breakdown:
    """The size of the whole array [B], as in nccl-tests."""
    if not MOVES[collective].is_sized:
        return one_number(collective)
    if moe is not None:
        return moe.array
    check_size(call, collective)
    assert call.size_bytes is not None
    return given("array", call.size_bytes, "bytes", field="size")

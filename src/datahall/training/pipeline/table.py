"""The table of pipeline schedules: one row says all of one, and whatever orders, checks, times or sizes one reads it.

Nothing here needs NumPy, for what a layout cannot have is refused before that is loaded; numbers of stages,
micro-batches and chunks may be columns all the same.

References: GPipe, Huang et al. (2019); 1F1B, Narayanan et al. (2019), PipeDream-Flush; interleaved, Narayanan et al.
(2021), Megatron-LM, section 2.2; zero bubble, Qi et al. (2023), ZB-H1 and table 2; DualPipe, DeepSeek-AI (2024),
DeepSeek-V3, table 2, whose B is our B + W.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from datahall.errors import UnknownNameError
from datahall.scenario.sections.training import USUAL_CHUNKED, USUAL_SCHEDULE
from datahall.scenario.words import SCHEDULES, Schedule
from datahall.training.pipeline import orders
from datahall.training.pipeline.orders import Counts, Row

if TYPE_CHECKING:
    from datahall.training.layout.columns import Column


class Slot(NamedTuple):
    """What one micro-batch takes on one stage, all its chunks together [s]."""

    forward_s: float  # F
    input_s: float  # B, backward for the input
    weight_s: float  # W, backward for the weights
    together_s: float  # F&B, a forward and a whole backward at once


class Depth(NamedTuple):
    """One stage of a pipeline, or of every pipeline of a space."""

    num_micro: Column  # m
    pp: Column | float
    vpp: Column | float
    stage: int


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One schedule: what is asked about it."""

    name: Schedule
    title: str  # as its paper calls it
    rows: Callable[[Counts], list[list[Row]]]  # each stage's work in its order
    held: Callable[
        [Depth], Column | float
    ]  # micro-batches whose activations a stage holds, where there are enough
    # idle time of a stage in a step of p stages [s]; None: a whole slot for each other stage, over the chunks
    bubble: Callable[[int, Slot], float] | None = None
    chunked: bool = (
        False  # stages hold several chunks each, dealt in rounds of as many micro-batches as stages
    )
    both_ways: bool = False  # micro-batches enter at both ends
    waits: bool = True  # a stage that holds its most goes on only when one of them has come back

    @property
    def num_copies(self) -> int:
        """Parts of the model, each as large as a stage's share, that a stage holds: one for each way."""
        return 2 if self.both_ways else 1

    @property
    def usual(self) -> bool:
        """Whether a layout has it where nobody names one: which of the two, its chunks decide."""
        return self.name in (USUAL_SCHEDULE, USUAL_CHUNKED)


def _all(depth: Depth) -> Column | float:
    """m: nothing is freed before the last forward."""
    return depth.num_micro


def _following(depth: Depth) -> Column | float:
    """pp − stage: the first gradient comes back when as many have gone as stages follow, itself among them."""
    return depth.pp - depth.stage


def _dealt(depth: Depth) -> Column | float:
    """(2·(pp − 1 − stage) + (vpp − 1)·pp + 1)/vpp, at stage 0: pp·(1 + (pp − 1)/(pp·vpp))."""
    return (2.0 * (depth.pp - depth.stage - 1.0) + (depth.vpp - 1.0) * depth.pp + 1.0) / depth.vpp


def _as_first(depth: Depth) -> Column | float:
    """pp on every stage, as weight gradients wait."""
    return depth.pp


def _from_both_ends(depth: Depth) -> Column | float:
    """pp + 1, both ways together."""
    return depth.pp + 1.0


def _weights_in_gaps(num_stages: int, slot: Slot) -> float:
    """(p − 1)(F + B − W)."""
    return (num_stages - 1) * (slot.forward_s + slot.input_s - slot.weight_s)


def _half_the_way(num_stages: int, slot: Slot) -> float:
    """(p/2 − 1)(F&B + B + W − 3W)."""
    return (num_stages / 2 - 1) * (slot.together_s + slot.input_s - 2 * slot.weight_s)


_ROWS = (
    Order(name="gpipe", title="GPipe", rows=orders.gpipe, held=_all, waits=False),
    Order(name="1f1b", title="1F1B", rows=orders.one_forward_one_backward, held=_following),
    Order(name="interleaved", title="interleaved 1F1B", rows=orders.interleaved, held=_dealt, chunked=True),
    Order(name="zb", title="ZB-H1", rows=orders.zero_bubble, held=_as_first, bubble=_weights_in_gaps),
    Order(
        name="dualpipe", title="DualPipe", rows=orders.dualpipe, held=_from_both_ends, bubble=_half_the_way,
        both_ways=True,
    ),
)  # fmt: skip
ORDERS: dict[str, Order] = {one.name: one for one in _ROWS}


def order_of(name: str) -> Order:
    """The row of a schedule; an unknown name is an error with the nearest ones.

    >>> order_of("1f1b").num_copies, order_of("dualpipe").num_copies
    (1, 2)
    """
    if name not in ORDERS:
        raise UnknownNameError(
            "schedule", name, SCHEDULES, hint=f"schedules: {', '.join(SCHEDULES)}", field="schedule"
        )
    return ORDERS[name]


def usual_order(num_chunks: int) -> str:
    """The name of the order where nobody names one."""
    return USUAL_CHUNKED if num_chunks > 1 else USUAL_SCHEDULE


def less_idle_order() -> Order:
    """The first that stands idle for less than the usual ones and holds no more parameters."""
    return next(one for one in ORDERS.values() if one.bubble is not None and one.num_copies == 1)

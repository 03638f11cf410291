"""Which orders of a pipeline's work a layout can have."""

from __future__ import annotations

from datahall.counted import counted
from datahall.errors import ScenarioError, option
from datahall.scenario.sections.training import USUAL_CHUNKED, USUAL_SCHEDULE
from datahall.training.pipeline.orders import Counts
from datahall.training.pipeline.table import Order, order_of


def check_order(name: str, *, num_stages: int, num_micro: int, num_chunks: int) -> None:
    """Refuse an order of work that a layout has no use for, or whose counts it cannot have: the same for every verb."""
    order = order_of(name)
    if num_stages == 1 and name != USUAL_SCHEDULE:
        raise ScenarioError(
            f"{name} orders the stages of a pipeline, and there is one stage",
            field="schedule",
            hint=f"{option('pp', 2)} or more, or {option('schedule', USUAL_SCHEDULE)}",
        )
    if order.chunked and num_chunks == 1:
        raise ScenarioError(
            f"{name} stages need at least two chunks each",
            field="vpp",
            hint=f"{option('vpp', 2)} or more",
        )
    check_counts(order, Counts(num_stages, num_micro, num_chunks))


def check_counts(order: Order, counts: Counts) -> None:
    """Refuse numbers of stages, micro-batches and chunks that a schedule cannot have."""
    num_stages, num_micro, num_chunks = counts
    for what, number in (("stages", num_stages), ("micro-batches", num_micro), ("chunks", num_chunks)):
        if number < 1:
            raise ScenarioError(f"{number} {what}: a schedule needs at least 1")
    if num_chunks > 1 and not order.chunked:
        raise ScenarioError(
            f"{order.name} gives a stage one chunk, not {num_chunks}",
            field="schedule",
            hint=f"{option('schedule', USUAL_CHUNKED)}, or {option('vpp', 1)}",
        )
    if num_chunks > 1 and num_micro % num_stages:
        near = (
            f"{max(1, num_micro // num_stages) * num_stages} or {(num_micro // num_stages + 1) * num_stages}"
        )
        raise ScenarioError(
            f"{order.name} chunks need micro-batches in multiples of the {num_stages} stages; there are {num_micro}",
            field="vpp",
            hint=f"{near} micro-batches would do; so would {option('vpp', 1)}",
        )
    if order.both_ways and (num_stages % 2 or num_micro % 2 or num_micro < 2 * num_stages):
        raise ScenarioError(
            f"{order.title} runs {counted(num_micro, 'micro-batch')} on {counted(num_stages, 'stage')} from both ends",
            field="schedule",
            hint="it needs even stages and an even number of micro-batches, at least two for each stage",
        )

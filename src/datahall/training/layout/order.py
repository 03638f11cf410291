"""Which orders of a pipeline's work a layout can have."""

from __future__ import annotations

from datahall.counted import counted
from datahall.errors import ScenarioError, option

USUAL = "1f1b"  # the order where nobody names one
BOTH_WAYS = "dualpipe"  # micro-batches enter at both ends, so that a stage holds a part for each way


def usual_order(num_chunks: int) -> str:
    """The order of work where nobody names one."""
    return "interleaved" if num_chunks > 1 else USUAL


def num_copies(name: str) -> int:
    """Parts of the model, each as large as a stage's share, that a stage holds.

    >>> num_copies("1f1b"), num_copies("dualpipe")
    (1, 2)
    """
    return 2 if name == BOTH_WAYS else 1


def check_order(name: str, *, num_stages: int, num_micro: int, num_chunks: int) -> None:
    """Refuse an order of work that a layout has no use for, or whose counts it cannot have: the same for every verb."""
    if num_stages == 1 and name != USUAL:
        raise ScenarioError(
            f"{name} orders the stages of a pipeline, and there is one stage",
            field="schedule",
            hint=f"{option('pp', 2)} or more, or {option('schedule', USUAL)}",
        )
    if name == "interleaved" and num_chunks == 1:
        raise ScenarioError(
            "interleaved stages need at least two chunks each",
            field="vpp",
            hint=f"{option('vpp', 2)} or more",
        )
    check_counts(name, num_stages, num_micro, num_chunks)


def check_counts(name: str, num_stages: int, num_micro: int, num_chunks: int) -> None:
    """Refuse numbers of stages, micro-batches and chunks that a schedule cannot have."""
    for what, number in (("stages", num_stages), ("micro-batches", num_micro), ("chunks", num_chunks)):
        if number < 1:
            raise ScenarioError(f"{number} {what}: a schedule needs at least 1")
    if num_chunks > 1 and name != "interleaved":
        raise ScenarioError(
            f"{name} gives a stage one chunk, not {num_chunks}",
            field="schedule",
            hint=f"{option('schedule', 'interleaved')}, or {option('vpp', 1)}",
        )
    if name == "interleaved" and num_chunks > 1 and num_micro % num_stages:
        near = (
            f"{max(1, num_micro // num_stages) * num_stages} or {(num_micro // num_stages + 1) * num_stages}"
        )
        raise ScenarioError(
            f"interleaved chunks need micro-batches in multiples of the {num_stages} stages; there are {num_micro}",
            field="vpp",
            hint=f"{near} micro-batches would do; so would {option('vpp', 1)}",
        )
    if name == BOTH_WAYS and (num_stages % 2 or num_micro % 2 or num_micro < 2 * num_stages):
        raise ScenarioError(
            f"DualPipe runs {counted(num_micro, 'micro-batch')} on {counted(num_stages, 'stage')} from both ends",
            field="schedule",
            hint="it needs even stages and an even number of micro-batches, at least two for each stage",
        )

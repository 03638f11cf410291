"""How many chips a store feeds, and how utilisation falls beyond."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from datahall.datapath.pipeline import Pipeline, Store
from datahall.datapath.supply import supply
from datahall.scenario.sections.deployment import MOST_CHIPS

POINTS_PER_DOUBLING = 4


def at_chips(job: Pipeline, num_chips: int) -> Pipeline:
    """The same job on so many chips, reading a data set of the same size."""
    return msgspec.structs.replace(job, num_chips=num_chips)


def most_chips(job: Pipeline, store: Store, promised: float) -> int:
    """The most chips that work as much as promised; 0 where not even one does.

    More chips never read faster from the same storage, but more hosts have more memory: the last power of two that
    holds is looked for, and the number between it and the next.
    """

    def holds(chips: int) -> bool:
        return utilisation_at(job, store, chips) >= promised

    low = next((2**power for power in range(MOST_CHIPS.bit_length() - 1, -1, -1) if holds(2**power)), 0)
    return low + largest(lambda more: holds(low + more), min(low, MOST_CHIPS - low)) if low else 0


def utilisation_at(job: Pipeline, store: Store, num_chips: int) -> float:
    """Utilisation of so many chips."""
    return supply(at_chips(job, num_chips), store).utilisation_fraction


def largest(holds: Callable[[int], bool], most: int) -> int:
    """The largest whole number from 1 to `most` of which something holds that holds of all smaller ones; 0 if none.

    >>> largest(lambda number: number**2 <= 50, 1000), largest(lambda number: number < 1, 10)
    (7, 0)
    """
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def drawn_to(job: Pipeline, fed: Sequence[int | None]) -> int:
    """The number of chips to which a curve is worth drawing: beyond what is asked, and beyond what stores feed."""
    return 2 * max(job.num_chips, *(one or 1 for one in fed))


def curve(job: Pipeline, store: Store, last: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Numbers of chips up to `last`, and the utilisation of each."""
    chips = sorted({*_steps(last), job.num_chips})
    return tuple(map(float, chips)), tuple(utilisation_at(job, store, one) for one in chips)


def _steps(last: int) -> Iterator[int]:
    number = 1.0
    while number < last:
        yield round(number)
        number *= 2.0 ** (1.0 / POINTS_PER_DOUBLING)
    yield last

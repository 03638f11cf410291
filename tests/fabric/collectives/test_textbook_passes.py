"""What a textbook's algorithm sends over a narrow place: every round of it, and nothing that stays in a domain."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.fabric.collectives.test_by_hand import changed

from datahall.fabric.collectives import textbook
from datahall.fabric.collectives.algorithms.steps import Domains, Phase
from datahall.fabric.collectives.textbook import Published, textbook_times
from datahall.fabric.topology.cuts import Cut

RATE = 0.05  # B/s, so that nothing else takes as long


def narrow(*sizes: int) -> Cut:
    return Cut(
        name="leaf", num_below=min(sizes), num_full=max(sizes), bytes_per_s=RATE, link_bytes_per_s=RATE,
        sizes=tuple((size, 1) for size in sizes), widest_bytes_per_s=RATE,
    )  # fmt: skip


def test_what_stays_in_a_domain_does_not_pass_the_end_of_a_leaf_inside_it() -> None:
    """Eight ranks in two domains of four, six of them on one leaf, by halving and doubling.

    Ranks 2 and 3 exchange half of the array with 6 and 7, on the way in and on the way back.  What 4 and 5 exchange
    with 6 and 7, a quarter, goes over the links of their domain; where each rank is one, over the way out too.
    """
    found = []
    for num_domain in (4, 1):
        machine = changed(num_domain=num_domain, cuts=(narrow(6, 2),))
        times = {one.name: one.time_s for one in textbook_times(machine, "all-reduce", 8.0, 8)}
        found.append(times["halving-doubling"])
    assert found == pytest.approx([2 * (2 * 4) / RATE, 2 * (2 * 4 + 2 * 2) / RATE])


@pytest.mark.parametrize("rounds", [1, 3])
def test_every_round_passes_the_narrow_place(rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Round after round the last of four ranks on a leaf sends a quarter of the array to the first of the next."""

    def sending(num_ranks: int, _: Domains) -> Iterator[Phase]:
        rank = np.arange(num_ranks, dtype=np.int32)
        yield Phase(name="on", source=rank, target=(rank + 1) % num_ranks, num_bytes=0.25, num_rounds=rounds)

    def at_once(*_: float, **__: float) -> float:
        return 0.0

    monkeypatch.setitem(textbook.FLAT, "all-gather", (Published("on and on", at_once, sending),))
    machine = changed(num_domain=1, cuts=(narrow(4, 4),))
    (found,) = textbook_times(machine, "all-gather", 80.0, 8)
    assert found.time_s == pytest.approx(rounds * 20.0 / RATE)

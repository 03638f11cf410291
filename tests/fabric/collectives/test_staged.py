"""Collectives through host memory."""

from __future__ import annotations

import numpy as np
import pytest

from datahall.errors import UnsupportedError
from datahall.fabric.collectives.engine_all_reduce import custom_sets, serving_all_reduce_times
from datahall.fabric.collectives.host_staged import SLICE_BYTES, staged_link, staged_times
from datahall.fabric.collectives.system import system_of

SIZES = np.geomspace(1024.0, 2.0**30, 161)
LINK = 18e9


@pytest.mark.parametrize("collective", ["all-reduce", "all-gather", "reduce-scatter"])
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_a_larger_message_takes_longer_and_no_faster_than_the_link(collective: str, ranks: int) -> None:
    times_s = staged_times(collective, SIZES, ranks, LINK)
    assert np.all(np.diff(times_s) > 0)
    assert np.all((ranks - 1) / ranks * SIZES / times_s < LINK)


def test_a_large_message_runs_at_the_rate_of_the_link() -> None:
    assert staged_times("all-gather", np.array([2.0**30]), 2, LINK)[0] == pytest.approx(
        2.0**29 / LINK, rel=1e-2
    )


def test_a_small_message_crosses_one_copy_after_the_other() -> None:
    size = SLICE_BYTES
    small, twice = staged_times("all-reduce", np.array([size, 2 * size]), 2, LINK)
    assert twice - small == pytest.approx(2.0 * size / LINK)


def test_a_reduction_is_a_scatter_and_a_gather() -> None:
    whole = staged_times("all-reduce", SIZES, 4, LINK)
    parts = staged_times("all-gather", SIZES, 4, LINK) + staged_times("reduce-scatter", SIZES, 4, LINK)
    assert np.all(whole < parts)
    assert whole[-1] == pytest.approx(parts[-1], rel=1e-3)


def test_both_copies_share_what_peers_reach() -> None:
    system = system_of("rtx-pro-6000", num_domain=2)
    link = staged_link(system)
    assert link.bytes_per_s == custom_sets()["rtx-pro-6000-vllm"].bus_bytes_per_s[0] / 2
    peers_s = serving_all_reduce_times(system, SIZES, 2).time_s
    assert np.all(staged_times("all-reduce", SIZES, 2, link.bytes_per_s) > peers_s)


def test_what_is_not_modelled_is_an_error() -> None:
    with pytest.raises(UnsupportedError, match="host memory"):
        staged_times("all-to-all", SIZES, 2, LINK)

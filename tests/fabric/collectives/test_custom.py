"""The all-reduce that serving engines bring along."""

from __future__ import annotations

import numpy as np
import pytest

from datahall.errors import ScenarioError
from datahall.fabric.collectives import collective_times, system_of
from datahall.fabric.collectives.engine_all_reduce import ENGINES, custom_sets, serving_all_reduce_times

SIZES = np.geomspace(1024.0, 2.0**30, 41)


@pytest.mark.parametrize("chip", ["h100-sxm", "b200-sxm", "a100-sxm-80gb"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_small_message_takes_a_few_microseconds(chip: str, engine: str) -> None:
    for ranks in (2, 4, 8):
        got = serving_all_reduce_times(system_of(chip), 16384.0, ranks, engine)
        assert got.level == "measured"
        assert 2e-6 < got.time_s[0] < 1e-5


@pytest.mark.parametrize("name", sorted(custom_sets()))
def test_time_grows_with_the_message_and_stays_below_the_links(name: str) -> None:
    one = custom_sets()[name]
    system = system_of(one.chip, num_domain=8)
    ranks = one.most_ranks
    got = serving_all_reduce_times(system, SIZES, ranks, one.engine).time_s
    assert np.all(np.diff(got) > 0)
    assert np.all(SIZES / got < 2.0 * system.scale_up_bytes_per_s)


def test_an_engine_beats_the_library_on_the_messages_of_a_decode_step() -> None:
    system = system_of("h100-sxm")
    sizes = np.array([8192.0, 131072.0])
    library, _ = collective_times(system, "all-reduce", sizes, 8)
    assert np.all(serving_all_reduce_times(system, sizes, 8).time_s < library)


def test_past_the_ranks_that_were_measured_the_library_answers() -> None:
    system = system_of("gb200")
    expected, _ = collective_times(system, "all-reduce", np.array([1e6]), 32)
    got = serving_all_reduce_times(system, 1e6, 32)
    assert got.time_s[0] == expected[0]


def test_a_relative_lends_its_constants() -> None:
    assert (
        serving_all_reduce_times(system_of("rtx-4090", num_domain=2), 65536.0, 2).level == "family-calibrated"
    )


def test_an_unknown_engine_is_an_error() -> None:
    with pytest.raises(ScenarioError, match="engine"):
        serving_all_reduce_times(system_of("h100-sxm"), 1.0, 2, "triton")

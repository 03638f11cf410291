"""The all-reduce that serving engines bring along."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from datahall.fabric.collectives import engine_all_reduce
from datahall.fabric.collectives.choice import collective_times
from datahall.fabric.collectives.engine_all_reduce import constants_of, custom_sets, serving_all_reduce_times
from datahall.fabric.collectives.system import system_of

SIZES = np.geomspace(1024.0, 2.0**30, 41)


@pytest.mark.parametrize("chip", ["h100-sxm", "b200-sxm", "a100-sxm-80gb"])
@pytest.mark.parametrize("engine", sorted({one.engine for one in custom_sets().values()}))
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


def test_an_engine_that_nobody_measured_runs_the_all_reduce_of_the_nearest() -> None:
    system = system_of("h100-sxm")
    assert constants_of(system, "pytorch") == constants_of(system, "vllm") != constants_of(system, "sglang")


def test_an_engine_has_an_all_reduce_of_its_own_as_soon_as_its_constants_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sets = custom_sets()
    mine = msgspec.structs.replace(
        sets["h100-sxm-vllm"], engine="mine", base_s=1e-3, two_shot_s=1e-3, library_s=1e-3
    )
    monkeypatch.setattr(engine_all_reduce, "custom_sets", lambda: {**sets, "h100-sxm-mine": mine})
    assert serving_all_reduce_times(system_of("h100-sxm"), 16384.0, 8, "mine").time_s[0] > 1e-3
    blackwell = system_of("b200-sxm")  # where nobody measured it
    assert constants_of(blackwell, "mine") == constants_of(blackwell, "vllm")

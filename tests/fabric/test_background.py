"""Flows that nobody waits for, and links that fail and come back while flows are under way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.errors import ScenarioError, spelled
from datahall.fabric.flows.asked import burst_of, changes_of, endpoints
from datahall.fabric.topology.fat_tree import fat_tree
from datahall.fabric.topology.graph import Wire
from datahall.scenario.sections.fabric import Background
from datahall.scenario.sections.failure import Failure
from datahall.units import parse

FABRIC = fat_tree(16, Wire(1e9, 1e-6))


def drawn(seed: int = 1, **said: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    burst = burst_of(Background(**said), 0, FABRIC, seed)
    return burst.source, burst.target, burst.start_s


@given(seed=st.integers(0, 50), num=st.integers(2, 16))
def test_in_a_permutation_who_sends_to_another_gets_from_one(seed: int, num: int) -> None:
    source, target, start_s = drawn(seed, pattern="permutation", hosts=tuple(range(num)), start_s=2.0)
    assert sorted(source.tolist()) == sorted(target.tolist())  # who would send to itself does neither
    assert len(set(source.tolist())) == source.size
    assert set(source.tolist()) <= set(range(num))
    assert (source != target).all()
    assert set(start_s.tolist()) <= {2.0}


def test_in_an_incast_all_others_send_to_one() -> None:
    source, target, _ = drawn(pattern="incast", hosts=(3, 5, 7))
    assert (sorted(source.tolist()), set(target.tolist())) == ([5, 7], {3})
    source, target, _ = drawn(pattern="incast", hosts=(3, 5, 7), target=5)
    assert (sorted(source.tolist()), set(target.tolist())) == ([3, 7], {5})
    source, target, _ = drawn(pattern="incast", hosts=(3, 5, 7), target=9)
    assert (sorted(source.tolist()), set(target.tolist())) == ([3, 5, 7], {9})


def test_random_flows_offer_their_share_of_the_line_rate() -> None:
    """A tenth of 16 ports of 1 GB/s for 0.1 s in flows of 10 kB: 16,000 of them."""
    source, target, start_s = drawn(
        pattern="random", load_fraction=0.1, size_bytes=1e4, until_s=0.1, start_s=5.0
    )
    assert source.size == pytest.approx(16_000, rel=0.03)
    assert (source != target).all()
    assert (np.diff(start_s) >= 0).all()
    assert start_s[0] >= 5.0
    assert 5.09 < start_s[-1] <= 5.1
    assert start_s.mean() == pytest.approx(5.05, abs=0.002)
    for ends in (source, target):
        assert np.bincount(ends, minlength=16) == pytest.approx(np.full(16, 1000), rel=0.15)
    pairs = np.unique(source * 16 + target)
    assert pairs.size == 16 * 15  # everybody to everybody else


def test_backgrounds_are_drawn_by_the_seed_and_their_place() -> None:
    one, same = drawn(1), drawn(1)
    assert np.array_equal(one[1], same[1])
    assert not np.array_equal(one[1], drawn(2)[1])
    assert not np.array_equal(one[1], burst_of(Background(), 1, FABRIC, 1).target)
    named = burst_of(Background(name="noise", size_bytes=7.0), 0, FABRIC, 1)
    assert (named.name, set(named.num_bytes.tolist())) == ("noise", {7.0})
    assert burst_of(Background(), 3, FABRIC, 1).name == "permutation 3"


def test_too_many_random_flows_and_strangers_are_refused() -> None:
    with pytest.raises(ScenarioError, match="background flows") as caught:
        drawn(pattern="random", load_fraction=1.0, size_bytes=1.0, until_s=10.0)
    assert caught.value.field == "size"
    large = spelled(caught.value.hint).partition("size=")[2]
    drawn(pattern="random", load_fraction=1.0, size_bytes=parse(large.strip(chr(34)), "bytes"), until_s=10.0)
    with pytest.raises(ScenarioError, match="endpoint 16 is not there") as caught:
        endpoints((3, 16), FABRIC, "hosts")
    assert caught.value.field == "hosts"
    assert endpoints((), FABRIC, "hosts").tolist() == [*range(16)]


def hit(*links: int) -> np.ndarray:
    found = np.zeros(4, np.bool_)
    found[list(links)] = True
    return found


def failure(start_s: float, duration_s: float | None, left: float = 0.0) -> Failure:
    return Failure(links=(0,), start_s=start_s, duration_s=duration_s, left_fraction=left)


def rows(*failures: tuple[Failure, np.ndarray]) -> list[tuple[float, int, float]]:
    found = changes_of(failures, np.array([10.0, 20.0, 30.0, 40.0]))
    return list(zip(found.at_s.tolist(), found.link.tolist(), found.bytes_per_s.tolist(), strict=True))


def test_a_link_is_out_or_slow_and_comes_back() -> None:
    assert rows((failure(1.0, 2.0), hit(0, 1))) == [
        (1.0, 0, 0.0),
        (1.0, 1, 0.0),
        (3.0, 0, 10.0),
        (3.0, 1, 20.0),
    ]
    assert rows((failure(1.0, None, 0.25), hit(3))) == [(1.0, 3, 10.0)]  # for good
    assert rows() == []


def test_a_link_that_two_have_hit_is_back_when_the_last_is_repaired() -> None:
    both = rows((failure(1.0, 4.0, 0.5), hit(0)), (failure(2.0, 1.0, 0.5), hit(0)))
    assert both == [(1.0, 0, 5.0), (2.0, 0, 2.5), (3.0, 0, 5.0), (5.0, 0, 10.0)]
    in_turn = rows((failure(1.0, 1.0), hit(0)), (failure(2.0, 1.0, 0.5), hit(0)))
    assert in_turn == [(1.0, 0, 0.0), (2.0, 0, 5.0), (3.0, 0, 10.0)]

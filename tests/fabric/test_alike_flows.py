"""Flows that are alike are found by colours: the hash is the published one, and the classes are those of sorting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.fabric.flows.simulate import Changes, Flows
from datahall.fabric.flows.symmetry import colours, folded, mixed, number
from datahall.fabric.topology.graph import Paths

GOLDEN = 0x9E3779B97F4A7C15


@pytest.mark.parametrize(
    ("seed", "first", "second"),
    [
        (0, 0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4),
        (1234567, 6457827717110365317, 3203168211198807973),
    ],
)
def test_the_hash_is_that_of_splitmix64(seed: int, first: int, second: int) -> None:
    """The first two numbers of two published sequences (Vigna; Rosetta Code)."""
    with np.errstate(over="ignore"):
        found = [int(mixed(np.uint64((seed + n * GOLDEN) % 2**64))) for n in (1, 2)]
    assert found == [first, second]


@given(st.lists(st.integers(0, 12), max_size=70))
def test_classes_are_numbered_as_they_are_met(values: list[int]) -> None:
    met = list(dict.fromkeys(values))
    classes, first, count = number(np.array(values, np.uint64))
    assert classes.tolist() == [met.index(value) for value in values]
    assert first.tolist() == [values.index(value) for value in met]
    assert count.tolist() == [values.count(value) for value in met]


def test_many_distinct_colours_each_have_a_class() -> None:
    distinct = np.arange(5000, dtype=np.uint64)
    classes, first, count = number(np.concatenate([distinct, distinct]))
    assert classes.tolist() == [*range(5000)] * 2
    assert first.tolist() == [*range(5000)]
    assert set(count.tolist()) == {2}


def flows_of(routes: list[list[int]], **columns: np.ndarray) -> Flows:
    links = np.array([link for one in routes for link in one], np.int32)
    given = {"num_bytes": np.full(len(routes), 8.0), **columns}
    return Flows(paths=Paths(links, np.cumsum([0, *(len(one) for one in routes)])), **given)


def alike(flows: Flows, rates: list[float], changes: Changes | None = None) -> list[int]:
    """The class of each flow, in the order they are met."""
    more = (changes,) if changes is not None else ()
    return number(colours(flows, np.array(rates), *more)[0])[0].tolist()


PAIRS = [[0, 1], [2, 3]]  # two flows, each over two links of its own


def test_flows_over_links_of_the_same_rates_are_alike() -> None:
    assert alike(flows_of(PAIRS), [1.0, 2.0, 1.0, 2.0]) == [0, 0]
    assert alike(flows_of(PAIRS), [1.0, 2.0, 2.0, 1.0]) == [0, 0]  # whichever comes first
    assert alike(flows_of(PAIRS), [1.0, 2.0, 1.0, 3.0]) == [0, 1]


@pytest.mark.parametrize("column", ["num_bytes", "start_s", "delay_s", "weight", "cap_bytes_per_s", "label"])
def test_a_flow_that_differs_in_anything_is_not_alike(column: str) -> None:
    kind = int if column == "label" else float
    same, other = np.array([3, 3], kind), np.array([3, 4], kind)
    assert alike(flows_of(PAIRS, **{column: same}), [1.0] * 4) == [0, 0]
    assert alike(flows_of(PAIRS, **{column: other}), [1.0] * 4) == [0, 1]


def test_what_others_on_its_links_are_tells_flows_apart() -> None:
    """The third flow shares a link with the first; the fourth one with the second makes them alike again."""
    assert alike(flows_of([*PAIRS, [0]]), [1.0] * 4) == [0, 1, 2]
    assert alike(flows_of([*PAIRS, [0], [3]]), [1.0] * 4) == [0, 0, 1, 1]


def test_what_a_flow_waits_for_tells_it_apart() -> None:
    four = [[0], [1], [2], [3]]
    after = {"after": np.array([0], np.int32), "after_offsets": np.array([0, 0, 0, 1, 1])}
    assert alike(flows_of(four, **after), [1.0] * 4) == [0, 0, 1, 0]
    both = {"after": np.array([0, 1], np.int32), "after_offsets": np.array([0, 0, 0, 1, 2])}
    assert alike(flows_of(four, **both), [1.0] * 4) == [0, 0, 1, 1]


def test_the_share_on_each_link_tells_flows_apart() -> None:
    same = flows_of(PAIRS, share_fraction=np.array([0.5, 0.25, 0.25, 0.5]))
    other = flows_of(PAIRS, share_fraction=np.array([0.5, 0.25, 0.5, 0.5]))
    assert alike(same, [1.0] * 4) == [0, 0]
    assert alike(other, [1.0] * 4) == [0, 1]


def test_a_link_that_changes_tells_its_flow_apart_by_when_and_how() -> None:
    def change(*rows: tuple[float, int, float]) -> Changes:
        at, link, rate = zip(*rows, strict=True)
        return Changes(np.array(at), np.array(link, np.int32), np.array(rate))

    flows, rates = flows_of(PAIRS), [1.0] * 4
    assert alike(flows, rates, change((1.0, 0, 0.5))) == [0, 1]
    assert alike(flows, rates, change((1.0, 0, 0.5), (1.0, 2, 0.5))) == [0, 0]
    assert alike(flows, rates, change((1.0, 0, 0.5), (2.0, 2, 0.5))) == [0, 1]
    assert alike(flows, rates, change((1.0, 0, 0.5), (1.0, 2, 0.7))) == [0, 1]


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 9))
def test_so_many_alike_are_one_that_carries_all(num: int, kinds: int) -> None:
    """Flows of a few sizes over a link each: as many classes as sizes, and no byte lost or counted twice."""
    sizes = 1.0 + np.arange(num) % kinds
    fold = folded(flows_of([[link] for link in range(num)], num_bytes=sizes), np.full(num, 2.0))
    assert fold.flows.num_flows == len(set(sizes.tolist()))
    assert fold.flows.num_bytes.sum() == pytest.approx(sizes.sum())
    assert fold.num_alike_flows.sum() == num
    assert fold.num_alike_links.sum() == num


def test_a_chain_without_symmetry_is_every_flow_for_itself() -> None:
    """Each flow of a row shares a link with its neighbours, and one end differs: refinement goes on to the end."""
    num = 600
    sizes = np.ones(num)
    sizes[0] = 2.0
    found = alike(flows_of([[n, n + 1] for n in range(num)], num_bytes=sizes), [1.0] * (num + 1))
    assert found == [*range(num)]

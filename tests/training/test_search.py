"""The search: its winner is the minimum of a loop over every layout, and it says why the others lost."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.answers.training.words import why_lost
from datahall.catalog import Catalog
from datahall.cluster.cluster import cluster_of
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.layout.search import (
    Search,
    front,
    loss,
    machine_sensitivity,
    pareto,
    search,
    sensitivity,
    step_parts,
)
from datahall.training.layout.space import Options, layout_space
from datahall.training.memory.bookkeeping import BOOKS
from datahall.training.memory.peak import peak_memory
from datahall.training.step.framework import framework
from datahall.training.step.parts import PARTS
from datahall.training.step.step import Job, step_times

SHELF = Catalog(user=False)
H100 = SHELF.chip("h100-sxm")
KIT = framework("nemo")
JOB = Job(model=SHELF.model("llama-3.1-8b"), seq=8192, global_batch=64)
FEW = Options(micro_batch=(1, 2), zero=(0, 3), vpp=(1,), recompute=("none", "full"))


@pytest.fixture(scope="module")
def found() -> Search:
    return search(JOB, cluster_of(H100, 16), KIT, options=FEW)


def test_the_winner_is_the_minimum_of_a_loop(found: Search) -> None:
    cluster = cluster_of(H100, 16)
    space = layout_space(JOB, 16, FEW)
    fastest = np.inf
    for row in range(len(space)):
        one = Space.of(space.row(row))
        if peak_memory(JOB, H100, one, BOOKS["nemo"]).headroom_bytes[0] >= 0:
            fastest = min(fastest, float(step_times(JOB, cluster, one, KIT).step_s[0]))
    assert float(found.step_s[found.order[0]]) == pytest.approx(fastest)


def test_the_winner_of_the_wide_space_is_the_minimum_of_a_loop() -> None:
    job = Job(model=SHELF.model("qwen3-30b-a3b"), seq=4096, global_batch=32)
    cluster = cluster_of(H100, 16, servers=SHELF.servers())
    wide = Options(
        micro_batch=(1,), zero=(1, 3), vpp=(1,), recompute=("selective",), tp=(2,), ep=(1, 8),
        etp=(0, 1, 2), shard=(0, 2, 4), context_exchange=("ring", "all-to-all"), offload=((), ("optimizer",)),
    )  # fmt: skip
    found = search(job, cluster, KIT, options=wide)
    rows = [found.space.row(row) for row in range(len(found.space))]
    assert {row.etp for row in rows} == {0, 1, 2}
    assert {row.shard for row in rows} == {0, 2, 4}
    fastest = np.inf
    for row in rows:
        row.check(job.model, 16, 32)
        one = Space.of(row)
        if peak_memory(job, H100, one, BOOKS["nemo"]).headroom_bytes[0] >= 0:
            fastest = min(fastest, float(step_times(job, cluster, one, KIT).step_s[0]))
    assert float(found.step_s[found.order[0]]) == pytest.approx(fastest)


def test_what_the_host_cannot_hold_does_not_fit() -> None:
    """All activations of 405B on one chip are more than a server has; its optimizer states are not."""
    job = Job(model=SHELF.model("llama-3.1-405b"), seq=8192, global_batch=64)
    options = Options(
        offload=(("optimizer",), ("optimizer", "activations")), pp=(1,), tp=(1, 8), cp=(1,), zero=(3,)
    )
    known = search(job, cluster_of(H100, 64, servers=SHELF.servers()), KIT, options=options)
    unknown = search(job, cluster_of(H100, 64), KIT, options=options)
    assert 0 < known.num_fitting < unknown.num_fitting
    lost = next(int(row) for row in unknown.order if row not in known.order)
    assert why_lost(loss(known, lost)) == "the host does not hold what it moves there"


def test_a_slower_network_makes_no_step_shorter(found: Search) -> None:
    changed = {
        (one.network_fraction, one.num_domain): one.step_s
        for one in machine_sensitivity(found, place=0)
        if one.chosen
    }
    own = float(found.step_s[found.order[0]])
    assert changed[-0.2, 0] >= own >= changed[0.2, 0]
    assert changed[0.0, 4] >= own >= changed[0.0, 16]
    for one in machine_sensitivity(found, place=0):
        one.layout.check(JOB.model, 16, 64)


def test_the_ranking_holds_all_that_fit_and_only_those(found: Search) -> None:
    fits = found.memory.headroom_bytes >= 0
    assert sorted(found.order.tolist()) == np.flatnonzero(fits).tolist()
    assert np.isinf(found.step_s[~fits]).all()
    ranked = found.step_s[found.order]
    assert (np.diff(ranked) >= 0).all()
    assert 0 < found.num_fitting < len(found.space)


def test_the_best_few_cut_the_model_differently(found: Search) -> None:
    places = found.best(5)
    assert places[0] == 0
    cuts = {(row.tp, row.pp, row.cp, row.ep) for row in map(found.layout, places)}
    assert len(cuts) == len(places) == 5


def test_parts_add_up_to_the_step(found: Search) -> None:
    parts = step_parts(found.times)
    assert parts.keys() <= PARTS.keys()
    total = np.sum(list(parts.values()), axis=0)
    assert total == pytest.approx(found.times.step_s, rel=1e-12)


def test_a_loser_says_why(found: Search) -> None:
    out = int(np.argmax(found.memory.total_bytes))
    why = loss(found, out)
    assert why.over_bytes == pytest.approx(-float(found.memory.headroom_bytes[out]))
    assert why_lost(why).startswith("does not fit by")
    slow = int(found.order[-1])
    late = loss(found, slow)
    assert 1 + late.slower_fraction == pytest.approx(float(found.step_s[slow] / found.step_s[found.order[0]]))
    assert "slower:" in why_lost(late)
    assert late.more_s > 0


def test_sensitivity_changes_one_choice_at_a_time(found: Search) -> None:
    winner = found.layout(0)
    changes = sensitivity(found, place=0)
    assert changes
    for change in changes:
        lost = change.loss
        differing = {
            name
            for name in winner.__struct_fields__
            if getattr(winner, name) != getattr(lost.layout, name) and name not in {"dp", "sequence_parallel"}
        }
        assert differing == {change.name}
        assert (change.before, change.after) == (
            getattr(winner, change.name),
            getattr(lost.layout, change.name),
        )


def test_a_layout_is_compared_with_the_one_at_a_place(found: Search) -> None:
    """From the middle of the ranking the first is faster, and the last slower than from the first."""
    first, middle, last = (int(found.order[place]) for place in (0, found.num_fitting // 2, -1))
    place = found.num_fitting // 2
    assert 1 + loss(found, first, place).slower_fraction == pytest.approx(
        found.step_s[first] / found.step_s[middle]
    )
    assert "faster" in why_lost(loss(found, first, place))
    assert 1 + loss(found, last, place).slower_fraction == pytest.approx(
        found.step_s[last] / found.step_s[middle]
    )
    for change in sensitivity(found, place):
        if change.loss.fits:
            row = next(row for row in found.order if found.space.row(int(row)) == change.loss.layout)
            assert 1 + change.loss.slower_fraction == pytest.approx(found.step_s[row] / found.step_s[middle])


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=25))
def test_the_front_is_what_loops_find(rows: list[tuple[int, int, int]]) -> None:
    table = np.array(rows, dtype=np.float64)
    kept = {tuple(table[row]) for row in pareto(*table.T)}

    def beaten(one: tuple[int, int, int]) -> bool:
        return any(all(a <= b for a, b in zip(other, one, strict=True)) and other != one for other in rows)

    assert kept == {one for one in rows if not beaten(one)}


def test_time_against_memory_is_a_front(found: Search) -> None:
    rows = found.order[front(found)]
    by_hand = pareto(found.step_s[found.order], found.memory.total_bytes[found.order])
    assert set(rows.tolist()) <= set(found.order.tolist())
    times, memory = found.step_s[rows], found.memory.total_bytes[rows]
    assert (np.diff(times) >= 0).all()
    assert (np.diff(memory) < 0).all()
    assert set(found.order[by_hand].tolist()) == set(rows.tolist())


def test_nothing_fits_is_an_empty_ranking() -> None:
    job = Job(model=SHELF.model("llama-3.1-405b"), seq=8192, global_batch=64)
    nothing = search(job, cluster_of(H100, 8), KIT)
    assert nothing.num_fitting == 0
    assert front(nothing).size == 0
    assert nothing.best(3) == []


def ranked(memory: list[float], cuts: list[tuple[int, int]]) -> Search:
    """A ranking of layouts of a second more each, with their memory and their cuts (tp, pp)."""
    space = Space.of([Layout(tp=tp, pp=pp, dp=16 // (tp * pp)) for tp, pp in cuts])
    bare: Any = SimpleNamespace(total_bytes=np.array(memory))
    none: Any = None
    return Search(
        job=JOB, cluster=none, framework=KIT, books=BOOKS["nemo"], space=space, memory=bare,
        step_s=np.arange(1.0, len(cuts) + 1), order=np.arange(len(cuts)), times=none,
    )  # fmt: skip


def test_a_front_by_hand() -> None:
    """Slower layouts stay in it only with less memory than all before them; as much is not less."""
    found = ranked([9.0, 9.0, 7.0, 8.0, 7.0, 3.0], [(1, 1)] * 6)
    assert front(found).tolist() == [0, 2, 5]


def test_the_best_of_each_cut_by_hand() -> None:
    found = ranked([1.0] * 5, [(2, 1), (2, 1), (1, 2), (2, 1), (4, 1)])
    assert found.best(1) == [0]
    assert found.best(2) == [0, 2]
    assert found.best(9) == [0, 2, 4]
    assert found.layout(2) == Layout(tp=1, pp=2, dp=8)


def test_sensitivity_goes_to_the_nearest_value_on_either_side(found: Search) -> None:
    """Of all layouts that differ from one in a single degree, the next below and the next above, found by a loop."""
    degrees = ("tp", "pp", "vpp", "cp", "ep", "zero", "micro_batch")
    rows = [found.space.row(row) for row in range(len(found.space))]
    for place in (0, found.num_fitting // 2):
        here = found.layout(place)
        reached = {
            (change.name, change.after) for change in sensitivity(found, place) if change.name in degrees
        }
        expected = set()
        for name in degrees:
            others = {
                getattr(row, name)
                for row in rows
                if row.recompute == here.recompute
                and all(getattr(row, other) == getattr(here, other) for other in degrees if other != name)
            }
            below = [value for value in others if value < getattr(here, name)]
            above = [value for value in others if value > getattr(here, name)]
            expected |= {(name, value) for value in (*sorted(below)[-1:], *sorted(above)[:1])}
        assert expected
        assert reached == expected

"""One data-parallel run on two kinds of chip: who gets how many micro-batches, who waits, and what it adds."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster
from datahall.scenario.read import read_names
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign
from datahall.training.layout.search import search
from datahall.training.layout.space import USUAL
from datahall.training.mixed.joined import Joined, joined
from datahall.training.mixed.share import Replicas, even_time, in_proportion, least_time, uneven_time
from datahall.training.setup import framework_of, job_of, machine_of

SHELF = Catalog(user=False)
KINDS = st.builds(
    Replicas,
    num=st.integers(1, 5),
    slot_s=st.floats(0.1, 5.0),
    once_s=st.floats(0.0, 4.0),
    multiple=st.sampled_from([1, 1, 1, 2, 4]),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(KINDS, min_size=1, max_size=3), st.integers(1, 24))
def test_no_other_shares_are_done_sooner(kinds: list[Replicas], num_micro: int) -> None:
    kinds = [one._replace(multiple=kinds[0].multiple) for one in kinds]
    counts = in_proportion(kinds, num_micro)
    assert sum(one.num * count for one, count in zip(kinds, counts, strict=True)) >= num_micro
    assert all(count % one.multiple == 0 for one, count in zip(kinds, counts, strict=True))
    steps = [range(0, num_micro + one.multiple, one.multiple) for one in kinds]
    best = min(
        uneven_time(kinds, tried)
        for tried in product(*steps)
        if sum(one.num * count for one, count in zip(kinds, tried, strict=True)) >= num_micro
    )
    assert uneven_time(kinds, counts) == pytest.approx(best)
    assert least_time(kinds, num_micro) <= best * (1.0 + 1e-9)
    assert best <= even_time(kinds, num_micro) * (1.0 + 1e-9)


def test_twice_as_fast_gets_twice_as_many() -> None:
    kinds = [Replicas(8, 1.0, 0.0), Replicas(8, 2.0, 0.0)]
    assert in_proportion(kinds, 48) == (4, 2)
    assert even_time(kinds, 48) == 6.0
    assert uneven_time(kinds, (4, 2)) == 4.0


def test_a_kind_that_would_only_be_waited_for_gets_none() -> None:
    assert in_proportion([Replicas(8, 1.0, 0.0), Replicas(1, 100.0, 0.0)], 16) == (2, 0)


def asked() -> Scenario:
    words = {"model": "llama-3.1-8b", "tokens": 1e12, "chips": 32, "global_batch": 256}
    return read_names(form_of("plan train"), words, SHELF, bare=True)


@cache
def cluster(chip: str, num_chips: int, nic_bytes_per_s: float | None = None) -> Cluster:
    scenario = asked()
    design = msgspec.structs.replace(
        scenario.one(FabricDesign), chip=chip, chips=None, nic_bytes_per_s=nic_bytes_per_s
    )
    return machine_of(scenario.having(design))(num_chips)


def run(first: Any, second: Any, counts: tuple[int, int]) -> Joined:
    scenario, total = asked(), sum(counts)
    clusters = [cluster(chip, total, nic) for chip, nic in (first, second)]
    found = joined(job_of(scenario), clusters, counts, framework_of(scenario), USUAL)
    assert found is not None
    return found


H100, A100 = ("h100-sxm", None), ("a100-sxm-80gb", None)


def test_equal_kinds_are_one_run_on_all_chips() -> None:
    """What the usual search finds, of the layouts that need nobody elsewhere during a micro-batch."""
    found = run(H100, H100, (32, 32))
    alone = search(job_of(asked()), cluster("h100-sxm", 64), framework_of(asked()), options=USUAL)
    rows = [place for place in range(alone.num_fitting) if alone.layout(place).zero < 2]
    assert found.step_s == pytest.approx(float(alone.times.step_s[rows[0]]))
    assert found.even_s == pytest.approx(found.step_s)


def test_in_proportion_is_between_the_faster_kind_alone_on_all_and_an_even_split() -> None:
    found, fast = run(H100, A100, (32, 32)), run(H100, H100, (32, 32))
    assert fast.step_s < found.step_s < found.even_s
    assert found.last.replicas.busy_s(found.last.num_micro) == max(
        one.replicas.busy_s(one.num_micro) for one in found.parts
    )


def test_the_whole_batch_is_computed() -> None:
    found = run(H100, A100, (32, 64))
    assert found.num_micro * found.layout.micro_batch == 256
    assert sum(one.replicas.num * one.num_micro for one in found.parts) >= found.num_micro
    assert sum(one.replicas.num for one in found.parts) == found.layout.dp
    assert [one.num_chips for one in found.parts] == [32, 64]


def test_replicas_exchange_over_the_slower_network() -> None:
    slow = run(H100, ("h100-sxm", 2e9), (32, 32))
    both = [one.data_s for one in slow.parts]
    assert both[0] < both[1] == slow.data_s
    assert slow.step_s > run(H100, H100, (32, 32)).step_s


def test_what_does_not_fit_on_one_kind_does_not_run() -> None:
    """8 billion parameters on 24 GB: the layouts are those of the smaller memory."""
    large, small = run(H100, H100, (32, 32)), run(H100, ("l4", 50e9), (32, 32))
    assert small.layout != large.layout
    alone = search(job_of(asked()), cluster("l4", 64, 50e9), framework_of(asked()), options=USUAL)
    assert small.layout in [alone.layout(place) for place in range(alone.num_fitting)]


def test_replicas_of_no_size_that_divides_both_are_none() -> None:
    scenario = asked()
    job = msgspec.structs.replace(job_of(scenario), model=SHELF.model("llama-3.1-405b"))
    clusters = [cluster(chip, 65) for chip in ("h100-sxm", "a100-sxm-80gb")]
    assert joined(job, clusters, (64, 1), framework_of(scenario), USUAL) is None


@pytest.mark.parametrize("second", [H100, A100])
@pytest.mark.parametrize("counts", [(32, 32), (32, 16), (24, 8), (32, 64)])
def test_nobody_waits_for_another_kind_during_a_micro_batch(second: Any, counts: tuple[int, int]) -> None:
    """ZeRO-2 and 3 exchange in each of them, so that a state is shared inside a kind."""
    found = run(H100, second, counts)
    if found.layout.zero >= 2:
        assert found.layout.shard
        assert all(one.replicas.num % found.layout.shard == 0 for one in found.parts)

"""Times between tokens (ITL): those of a request add up to what it takes after its first token, come what may."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.inference.reference_scheduler import Rules
from tests.inference.serving_case import fleet, poisson, replica, table
from tests.inference.test_scheduler import CASES, both
from tests.inference.ticking_case import one_pool, records, rows, simulated, ticking

from datahall.inference.engine.disaggregation import Handoff
from datahall.inference.engine.replica import Speculation
from datahall.inference.fleet.fleet import Fleet, Pool, ReplicaOutage
from datahall.inference.simulation import histogram
from datahall.inference.simulation.histogram import ITL, NUM_BINS, add
from datahall.inference.simulation.run import ServingRun
from datahall.inference.simulation.simulate import ALWAYS, simulate_serving
from datahall.workload.traffic.requests import Requests

BIN = 1.0 / histogram.BINS_PER_E  # a value is known to within half of it


def gaps(run: ServingRun) -> tuple[float, float]:
    """How many gaps were counted, and their sum [s]."""
    num = float(run.histograms[ITL].sum())
    return num, num * run.mean_s(ITL) if num else 0.0


def add_up(run: ServingRun, *, tokens_per_gap: bool = True) -> None:
    """The gaps of all requests are as many as their tokens after the first, and as long as E2E − TTFT."""
    made = records(run)
    num, sum_s = gaps(run)
    wanted_s = float((made.e2e_s - made.ttft_s).sum())
    assert sum_s == pytest.approx(wanted_s, rel=BIN / 2 + 1e-9, abs=1e-6 * max(1.0, num))
    if tokens_per_gap:
        assert num == int((made.output - 1).sum())


@pytest.mark.parametrize("max_leap", [1, 1 << 40])
def test_a_request_alone_waits_for_its_decode_steps_only(max_leap: int) -> None:
    """A prompt of ten seconds, three gaps of one; then, on an idle replica, the same again."""
    made = ticking(prefill_s=0.9)
    run = simulated(one_pool(table=made), requests=rows((0.0, 10, 4), (50.0, 10, 4)), max_leap=max_leap)
    assert gaps(run) == (6.0, pytest.approx(6.0, rel=BIN))
    assert run.itl_s(1.0) == pytest.approx(1.0, rel=BIN)


def test_answers_of_one_token_have_no_gap() -> None:
    run = simulated(one_pool(), requests=rows((0.0, 10, 1), (0.2, 60, 1), (3.0, 10, 1)))
    assert gaps(run) == (0.0, 0.0)


def test_a_prompt_that_stops_decodes_is_a_gap_of_those_it_stops_and_not_its_own() -> None:
    """Prompts at 0, 1 and 2; the first waits for two of them, the second for one, the third for none."""
    run = simulated(one_pool(mixed_steps=False), requests=rows((0.0, 4, 2), (0.5, 64, 2), (1.5, 64, 2)))
    assert (records(run).e2e_s - records(run).ttft_s).tolist() == [3.0, 2.0, 1.0]
    assert [run.itl_s(share) for share in (0.3, 0.6, 1.0)] == pytest.approx([1.0, 2.0, 3.0], rel=BIN)
    add_up(run)


def test_a_token_that_is_computed_again_ends_the_gap_since_the_one_before() -> None:
    """Its place is lost at 1 and given back at 4: the second token comes at 5."""
    run = simulated(one_pool(num_blocks=4), requests=rows((0.0, 32, 4), (0.0, 32, 2)))
    assert run.itl_s(1.0) == pytest.approx(4.0, rel=BIN)
    add_up(run)


def test_a_request_that_is_handed_over_waits_for_a_place_between_two_tokens() -> None:
    """One place to decode: both caches land at once, and one is decoded when the other has ended."""
    handoff = Handoff(setup_s=0.5, token_s=0.0, shown_fraction=0.0)
    pools = (one_pool(role="prefill", handoff=handoff), one_pool(role="decode", max_sequences=1))
    run = simulated(*pools, requests=rows((0.0, 10, 4), (0.0, 10, 4)))
    assert run.itl_s(1.0) == pytest.approx(4.0, rel=BIN)
    add_up(run)


@pytest.mark.parametrize("max_leap", [1, 1 << 40])
def test_what_a_lost_replica_has_sent_counts_and_so_does_the_wait_for_another(max_leap: int) -> None:
    """Tokens at 1, 2 … 5; lost at 5.2, computed again until 6.2."""
    run = simulated(
        one_pool(2), requests=rows((0.0, 10, 8)), max_leap=max_leap,
        outages=(ReplicaOutage(replica=0, start_s=5.2, duration_s=2.0),),
    )  # fmt: skip
    add_up(run)
    assert run.itl_s(1.0) == pytest.approx(1.2, rel=BIN)


def test_only_gaps_of_requests_that_are_measured_count() -> None:
    requests = poisson(200, 20.0, 300, 60, spread=0.9)
    end_s = float(requests.arrival_s[-1])
    run = simulate_serving(
        fleet(num_blocks=400), requests, record=True, warmup_s=end_s / 4, measure_until_s=end_s / 2,
        drain_apart=True,
    )  # fmt: skip
    made = records(run)
    seen = (made.arrival_s >= end_s / 4) & (made.arrival_s < end_s / 2)
    num, sum_s = gaps(run)
    assert num == int((made.output[seen] - 1).sum())
    assert sum_s == pytest.approx(float((made.e2e_s - made.ttft_s)[seen].sum()), rel=BIN / 2)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("rate_per_s", [0.5, 3.0, 40.0])
def test_gaps_are_those_of_the_plain_scheduler(name: str, rate_per_s: float) -> None:
    expected, run = both(CASES[name], poisson(120, rate_per_s, 400, 100, spread=0.9), max_leap=1)
    wanted = np.zeros((ITL + 1, NUM_BINS))
    for gap_s in expected.gaps:
        add(wanted, ITL, gap_s)
    num, _ = gaps(run)
    assert num == len(expected.gaps)
    # a value at the border of two bins may fall in either
    far = np.abs(np.cumsum(run.histograms[ITL]) - np.cumsum(wanted[ITL]))
    assert np.minimum(far[1:], far[:-1]).max() <= 0.01 * num
    assert run.mean_s(ITL) == pytest.approx(float(np.mean(expected.gaps)), rel=BIN / 2)
    add_up(run)


@pytest.mark.parametrize("name", CASES)
def test_gaps_of_leaps_are_those_of_single_steps(name: str) -> None:
    requests = poisson(60, 4.0, 400, 150, spread=0.9)
    _, stepped = both(CASES[name], requests, 1)
    _, leaped = both(CASES[name], requests, ALWAYS)
    add_up(leaped)
    for share in (0.5, 0.9, 0.99):
        assert leaped.itl_s(share) == pytest.approx(stepped.itl_s(share), rel=2.5 * BIN)


traffic = st.lists(
    st.tuples(st.floats(0.0, 3.0), st.integers(1, 600), st.integers(1, 60)), min_size=1, max_size=30
)


def drawn(rows: list[tuple[float, int, int]]) -> Requests:
    arrival, prompt, output = (np.array(column) for column in zip(*sorted(rows), strict=True))
    return Requests.of(arrival.astype(float), prompt, output)


@settings(max_examples=40, deadline=None)
@given(
    traffic, st.integers(64, 400), st.integers(60, 300), st.integers(1, 20), st.booleans(), st.booleans(),
    st.sampled_from([1, ALWAYS]),
)  # fmt: skip
def test_gaps_add_up_to_the_time_after_the_first_token(
    rows: list[tuple[float, int, int]], budget: int, num_blocks: int, sequences: int, mixed: bool, swaps: bool,
    max_leap: int,
) -> None:  # fmt: skip
    rules = Rules(
        budget=budget, num_blocks=num_blocks, sequences=sequences, mixed=mixed, swap_token_s=1e-6 * swaps
    )
    _, run = both(rules, drawn(rows), max_leap)
    add_up(run)


@settings(max_examples=30, deadline=None)
@given(
    traffic, st.booleans(), st.booleans(), st.booleans(), st.floats(0.05, 4.0), st.integers(60, 300),
    st.sampled_from(["continuous", "static"]),
)  # fmt: skip
def test_gaps_add_up_with_drafts_pools_lost_replicas_and_batches(
    rows: list[tuple[float, int, int]], drafts: bool, apart: bool, lost: bool, lost_s: float, num_blocks: int,
    batching: str,
) -> None:  # fmt: skip
    one = replica(token_budget=256, max_sequences=8, batching="continuous" if apart else batching)
    if drafts:
        one = msgspec.structs.replace(one, speculation=Speculation(num_draft=3, acceptance=0.6))
    late = msgspec.structs.replace(one, engine=msgspec.structs.replace(one.engine, first_token_s=0.02))
    made = table(4 if drafts else 1)
    handoff = Handoff(setup_s=0.01, token_s=1e-5, shown_fraction=0.25)
    roles = [("prefill", one), ("decode", late)] if apart else [("both", one), ("both", late)]
    pools = tuple(
        Pool(
            replica=of,
            count=2,
            role=role,
            table=made,
            num_blocks=num_blocks,
            handoff=handoff if apart else None,
        )  # type: ignore[arg-type]
        for role, of in roles
    )
    outages = (
        (
            ReplicaOutage(replica=0, start_s=lost_s, duration_s=1.0),
            ReplicaOutage(replica=3, start_s=lost_s / 2, duration_s=0.7),
        )
        if lost
        else ()
    )
    run = simulate_serving(
        Fleet(pools=pools, routing="round-robin", outages=outages), drawn(rows), record=True
    )
    assert run.num_finished == len(rows)
    add_up(run, tokens_per_gap=not drafts and (apart or batching == "continuous"))

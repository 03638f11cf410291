"""What MLPerf Storage states of a run, beside a run of its loop that is played through."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.datapath.benchmark import delivered_fraction, stated_utilisation


def played(step_s: float, fetch_s: float, num_readers: int, num_steps: int) -> tuple[float, float]:
    """Readers that load a batch each and share a pipe that brings one in `fetch_s`; delivered share and AU as DLIO
    counts them: throughput over all, AU without the first step."""
    owed = {
        batch: fetch_s for batch in range(min(num_readers, num_steps))
    }  # of the pipe's time, still to come
    later, now, taken, first_s = len(owed), 0.0, 0, 0.0
    working_until = 0.0
    ready: set[int] = set()
    while taken < num_steps:
        if taken in ready and now >= working_until:
            ready.discard(taken)
            taken, working_until = taken + 1, now + step_s
            if taken == 1:
                first_s = working_until
            if later < num_steps:
                owed[later] = fetch_s
                later += 1
            continue
        alone = min(owed.values(), default=float("inf")) * max(1, len(owed))
        waits = working_until - now if taken in ready and working_until > now else float("inf")
        passed = min(alone, waits)
        owed = {batch: left - passed / len(owed) for batch, left in owed.items()}
        done = {batch for batch, left in owed.items() if left <= 1e-12}
        ready |= done
        owed = {batch: left for batch, left in owed.items() if batch not in done}
        now += passed
    whole_s = working_until
    return num_steps * step_s / whole_s, (num_steps - 1) * step_s / (whole_s - first_s)


@pytest.mark.parametrize("num_readers", [1, 4, 16, 32])
def test_a_saturated_run_states_what_the_closed_form_says(num_readers: int) -> None:
    """Storage brings 95 % of what is needed, over 500 steps."""
    delivered, stated = played(1.0, 1.0 / 0.95, num_readers, 500)
    assert stated_utilisation(delivered, 500, num_readers, "whole batches") == pytest.approx(
        stated, abs=0.006
    )
    assert stated - delivered > 0.0017 * num_readers - 0.002  # the gap that readers make


def test_the_published_run_of_ddn() -> None:
    """36 H100 on 18 hosts with 16 readers each: 708.23 samples/s and an AU of 93.52 %."""
    delivered = delivered_fraction(708.23, 36, 7, 0.323)
    assert delivered == pytest.approx(0.908, abs=5e-4)
    assert stated_utilisation(delivered, 500, 16, "whole batches") == pytest.approx(0.9352, abs=0.003)


@given(st.floats(0.01, 1.0), st.floats(2.0, 1e6), st.integers(1, 500))
def test_it_is_a_share_and_grows_with_what_is_delivered(delivered: float, steps: float, readers: int) -> None:
    found = stated_utilisation(delivered, steps, readers, "whole batches")
    assert 0.0 <= found <= 1.0
    assert stated_utilisation(min(1.0, delivered * 1.01), steps, readers, "whole batches") >= found - 1e-12
    assert stated_utilisation(delivered, steps, readers + 1, "whole batches") >= found - 1e-12


def test_an_endless_run_states_what_was_delivered() -> None:
    assert stated_utilisation(0.7, 1e12, 64, "whole batches") == pytest.approx(0.7)
    assert stated_utilisation(0.7, 500, 64, "one batch") == stated_utilisation(0.7, 500, 1, "whole batches")

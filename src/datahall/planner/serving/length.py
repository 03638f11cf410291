"""How many of a number of replicas are simulated, and for how long, so that a queue that grows is seen.

The number of sequences n that decode at once forgets what it was in a time τ, near the most that replicas hold many
times as long as a request stays:

    τ = 1 / X′(n)          X: requests per second that n sequences finish, in closed form
    run = max(10 stays, 3 τ to fill + 6 τ that are measured + 2 stays to drain)
    replicas ≥ 12, and ≥ τ / (stay · n · 7 %²)          chance then moves the load of all of them by 7 %
    requests ≥ 4,500 times as many as come together     a burst is met by all of them, and counts as one

Some that do not keep the limits are simulated again with as many more as 60,000 requests allow: all of them share
what comes better than some of them do.  Where that comes to more than 400,000 requests it is of fewer replicas, four
at least, and then shorter, 10 stays at least.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np

from datahall.inference.closed_form.capacity import Held
from datahall.inference.closed_form.steady_state import Curve, State
from datahall.inference.fleet.span import EDGE_STAYS, MeasuredWindow, measured_window
from datahall.workload.traffic.arrivals import Arrivals

USUALLY_SIMULATED = 12  # replicas: a request finds the least busy of them, and of few that is a busier one
LEAST_SIMULATED = 4  # near the most that they hold: there all are busy
REQUESTS_SIMULATED, STAYS_SIMULATED = 4500, 10  # at least, and times that a request stays
MOST_OF_ALL = 60_000  # requests, where more replicas are simulated for so long because some did not do
MOST_SIMULATED = 400_000  # requests
FILLS, MEASURED = 3.0, 6.0  # times that the number of sequences takes to forget
CHANCE = 0.07  # of the number of sequences of all replicas that are simulated
MUCH_SHORTER = 4
LEAST_PULL = 1e-3  # of X/n, where a curve is flat
IDLE = 1e-6  # of the most that a replica holds: nobody waits for others there


class Length(NamedTuple):
    """Of a run: replicas, requests, and when it is full."""

    num_replicas: int
    num_requests: int
    stay_s: float
    fills_s: float
    rate_per_s: float  # of all these replicas

    @property
    def window(self) -> MeasuredWindow:
        """Which of its requests are measured."""
        coming_s = self.num_requests / self.rate_per_s
        first_s = min(self.fills_s, coming_s / 2.0)
        return measured_window(coming_s, self.stay_s, num_requests=self.num_requests, first_s=first_s)


def glance(long: Length) -> Length:
    """The beginning of a run, where it is much shorter: a queue that grows is shorter there than it will be."""
    num_requests = max(REQUESTS_SIMULATED, int(STAYS_SIMULATED * long.rate_per_s * long.stay_s))
    if num_requests * MUCH_SHORTER > long.num_requests:
        return long
    return long._replace(num_requests=num_requests, fills_s=0.0)


def wide(long: Length, count: int) -> Length:
    """A run as long, of more replicas: of more a request finds a less busy one, and the first token comes earlier."""
    more = min(count / long.num_replicas, MOST_OF_ALL / long.num_requests)
    num = max(long.num_replicas, int(more * long.num_replicas))
    ratio = num / long.num_replicas
    return long._replace(
        num_replicas=num, num_requests=int(long.num_requests * ratio), rate_per_s=long.rate_per_s * ratio
    )


def length_of(
    most: Held,
    rate_per_s: float,
    count: int,
    *,
    before_s: float = 0.0,
    least_replicas: int = 1,
    arrivals: Arrivals | None = None,
) -> Length:
    """Of a run of some of so many replicas that each get such a rate; a request has been elsewhere for so long before.

    It rests on the load alone, not on what is promised: whatever the limits, a number of replicas has one run.
    """
    state = most.at(rate_per_s)
    answer_s = state.tpot_s * most.load.output
    stay_s = before_s + min(state.ttft_s, longest_wait_s(most, state)) + answer_s
    settles_s = settling_s(most.curve, state.decoding)
    long_s = max(STAYS_SIMULATED * stay_s, (FILLS + MEASURED) * settles_s + EDGE_STAYS * stay_s)
    each = rate_per_s * long_s
    steady = settles_s / (stay_s * max(1.0, state.decoding) * most.replica.dp * CHANCE**2)
    wanted = max(USUALLY_SIMULATED, least_replicas, ceil(steady), int(REQUESTS_SIMULATED / each))
    num = min(count, max(LEAST_SIMULATED, least_replicas, min(wanted, int(MOST_SIMULATED / each))))
    stays = int(STAYS_SIMULATED * num * rate_per_s * stay_s)
    clump = 1.0 if arrivals is None else max(1.0, arrivals.shared(num / count).clump)
    bursts = int(min(REQUESTS_SIMULATED * clump, MOST_SIMULATED))
    num_requests = max(bursts, stays, int(min(num * each, MOST_SIMULATED)))
    return Length(num, num_requests, stay_s, FILLS * settles_s, num * rate_per_s)


def longest_wait_s(most: Held, state: State) -> float:
    """For a first token, of a queue without end: not longer than the answer takes, which its run is not to last [s]."""
    return most.at(most.most_per_s * IDLE).ttft_s + state.tpot_s * most.load.output


def settling_s(found: Curve, decoding: float) -> float:
    """τ: in which the number of sequences of a rank forgets what it was, over the numbers that chance reaches [s]."""
    reach = max(decoding, 1.0) ** 0.5
    places = np.clip([decoding - reach, decoding + reach], found.decoding[0], found.decoding[-1])
    rates = np.interp(places, found.decoding, found.rate_per_s)
    there = max(decoding, float(found.decoding[0]))
    pull = float((rates[1] - rates[0]) / (places[1] - places[0])) if places[1] > places[0] else 0.0
    return 1.0 / max(pull, LEAST_PULL * float(np.interp(there, found.decoding, found.rate_per_s)) / there)

"""Prompts and answers on replicas of their own (disaggregation), beside the plan: the fewest chips of each kind.

prefill  = ⌈offered / (prompts · (1 − headroom))⌉     prompts: one at a time, as many as keep the TTFT
decode   = ⌈offered / (held · (1 − headroom))⌉        held: as many as keep the TPOT where nobody computes prompts
chips    = (prefill + decode + a spare one of each, where there are) · chips of a replica

Both pools are of the same group of chips.  The least of each chip is simulated, and its pools are made larger, or
smaller one after the other, until as few as keep both limits are left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

import msgspec

from datahall.catalog import Catalog
from datahall.cluster.wiring import Wiring
from datahall.errors import InfeasibleError, ScenarioError, UnsupportedError
from datahall.inference.closed_form.capacity import Held, num_replicas
from datahall.inference.early import check_format
from datahall.inference.engine.machine import placed
from datahall.inference.engine.replica import Replica
from datahall.inference.fleet.fleet import Fleet, Pool
from datahall.inference.ladder.techniques import PromptPool, pools_apart
from datahall.inference.simulation.run import ServingRun
from datahall.planner.serving.candidate import Candidate
from datahall.planner.serving.confirm import MOST_ADDED, in_share
from datahall.planner.serving.demand import Demand
from datahall.planner.serving.fewest import fewest
from datahall.planner.serving.length import STAYS_SIMULATED, Length, length_of
from datahall.scenario.sections.deployment import Deployment

WHOLE = 200  # replicas that are simulated, all of them; of more a part, as long as each pool keeps so many:
LEAST_OF_A_POOL = 8
STEP = 0.05  # of a pool, by which it is made larger


class Apart(msgspec.Struct, frozen=True, kw_only=True):
    """A pool of replicas for prompts, and one for answers."""

    replica: Replica
    precision: str
    demand: Demand
    headroom_fraction: float
    prompts: PromptPool
    answers: Held
    num_prefill: int  # that are needed
    num_decode: int
    num_spare: int  # of each pool, beside these
    together: Candidate  # the best of this chip where each replica does both
    run: ServingRun | None = None

    @property
    def pools(self) -> tuple[int, int]:
        """All replicas for prompts and for answers."""
        return self.num_prefill + self.num_spare, self.num_decode + self.num_spare

    @property
    def num_chips(self) -> int:
        return sum(self.pools) * self.replica.num_chips

    @property
    def num_more(self) -> int:
        """Chips more than where each replica does both; below 0: fewer."""
        return self.num_chips - self.together.num_chips

    @property
    def keeps(self) -> bool:
        """Whether enough requests kept both limits when it was simulated."""
        run = self.run
        return run is not None and run.stable and run.good_fraction >= self.demand.promise.percentile

    @property
    def full_rate_per_s(self) -> float:
        """What comes when the headroom is used up."""
        return self.demand.rate_per_s / (1.0 - self.headroom_fraction)


def weighed_apart(
    best: Sequence[Candidate],
    looked: Sequence[tuple[Deployment, Replica]],
    catalog: Catalog,
    wiring: Wiring,
    seed: int,
) -> tuple[Apart, ...]:
    """The least of each chip of which pools can be made, those that keep the limits first, fewest chips first."""
    found = []
    for one in best:
        of_chip = [pair for pair in looked if pair[1].chip.name == one.replica.chip.name]
        ways = list(_ways(one, of_chip, catalog, wiring))
        if ways:
            least = min(ways, key=lambda way: (way.num_chips, way.answers.state.tpot_s))
            found.append(_confirmed(least, seed))
    return tuple(sorted(found, key=lambda way: (not way.keeps, way.num_chips)))


def _ways(
    best: Candidate, looked: Sequence[tuple[Deployment, Replica]], catalog: Catalog, wiring: Wiring
) -> Iterator[Apart]:
    """Groups whose pools keep the limits in closed form."""
    demand = best.demand
    for there, group in looked:
        try:
            check_format(group.chip, group.precision)
            replica = placed(group, 2, wiring, catalog, hands_over=True)
            prompts, answers = pools_apart(replica, demand.load, demand.promise)
        except (InfeasibleError, UnsupportedError, ScenarioError):
            continue
        if not prompts.rate_per_s:
            continue
        used = 1.0 - best.headroom_fraction
        yield Apart(
            replica=replica,
            precision=there.precision,
            demand=demand,
            headroom_fraction=best.headroom_fraction,
            prompts=prompts,
            answers=answers,
            num_prefill=max(1, ceil(demand.rate_per_s / (prompts.rate_per_s * used) - 1e-9)),
            num_decode=num_replicas(answers, demand.rate_per_s, best.headroom_fraction),
            num_spare=best.num_spare,
            together=best,
        )


def _confirmed(way: Apart, seed: int) -> Apart:
    """The smallest pools that keep the limits when simulated; where none do, those that came nearest in this search."""
    known: dict[tuple[int, int], Apart] = {}

    def at(prefill: int, decode: int) -> Apart:
        if (prefill, decode) not in known:
            known[prefill, decode] = _simulated(way, prefill, decode, seed)
        return known[prefill, decode]

    prefill, decode = way.num_prefill, way.num_decode
    most = [count + max(2, ceil(MOST_ADDED * count)) for count in (prefill, decode)]
    while not (found := at(prefill, decode)).keeps:
        late = _waits_for_prompts(found)
        if (late or decode >= most[1]) and prefill < most[0]:
            prefill = min(most[0], prefill + max(1, round(STEP * prefill)))
        elif decode < most[1]:
            decode = min(most[1], decode + max(1, round(STEP * decode)))
        else:
            return found
    held_by = ceil(way.full_rate_per_s / way.answers.most_per_s)  # fewer have a queue that only grows
    least = fewest(lambda count: at(prefill, count).keeps, expected=decode, least=held_by, most=decode)
    decode = min(decode, least.enough)
    least = fewest(lambda count: at(count, decode).keeps, expected=prefill, least=1, most=prefill)
    return at(min(prefill, least.enough), decode)


def _waits_for_prompts(way: Apart) -> bool:
    """Whether the time to the first token is further beyond its limit than the time per token."""
    assert way.run is not None
    promise, run = way.demand.promise, way.run
    first = run.ttft_s(promise.percentile) / promise.ttft_s
    return not run.tpot_s(promise.percentile) / promise.tpot_s > first


def _simulated(way: Apart, prefill: int, decode: int, seed: int) -> Apart:
    """Both pools, or of very many replicas a part of both, under their share of the load with the headroom used up."""
    part = max(WHOLE / (prefill + decode), LEAST_OF_A_POOL / min(prefill, decode))
    counts = (prefill, decode) if part >= 1.0 else (int(prefill * part), int(decode * part))
    part = min(1.0, counts[0] / prefill, counts[1] / decode)
    first = Pool(replica=way.replica, count=counts[0], role="prefill", table=way.answers.price.table)
    second = Pool(replica=way.replica, count=counts[1], role="decode", table=way.answers.price.table)
    long = _length(way, decode, counts[1], way.full_rate_per_s * part)
    run = in_share(Fleet(pools=(first, second)), way.demand, long, part, seed)
    return msgspec.structs.replace(way, num_prefill=prefill, num_decode=decode, run=run)


def _length(way: Apart, decode: int, count: int, rate_per_s: float) -> Length:
    """Of a run of so many of the replicas for answers, with what comes to them."""
    before_s = way.prompts.prompt_s + way.prompts.handed_s
    arrivals = way.demand.traffic.arrivals
    long = length_of(
        way.answers, way.full_rate_per_s / decode, count, before_s=before_s, least_replicas=count,
        arrivals=arrivals.shared(count / decode) if arrivals else None,
    )  # fmt: skip
    num_requests = max(long.num_requests, int(STAYS_SIMULATED * rate_per_s * long.stay_s))
    return long._replace(num_requests=num_requests, rate_per_s=rate_per_s)

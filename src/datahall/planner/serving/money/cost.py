"""A candidate of a service with its bill: the cheapest way to have its chips, and what its tokens cost.

tokens of a replica a month = what it holds · (1 − headroom) · tokens of a request · month / peak over mean
"""

from __future__ import annotations

from functools import cached_property

import msgspec

from datahall.economics.break_even import Dedicated
from datahall.economics.hosted import Hosted, hosted
from datahall.economics.market import day_of
from datahall.economics.sections.service import ServiceCost
from datahall.economics.service import Bought, Fleet, bought
from datahall.economics.tokens import TokenCosts, token_costs
from datahall.economics.ways import Way, ways_of
from datahall.planner.serving.candidate import Candidate
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.hosted import Business, HostedModel
from datahall.scenario.sections.money.purchase import Purchase
from datahall.units import MONTH_S

LESS = 1.0 - 1e-6  # than what was seen to be too much


class Served(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A candidate as it is bought, each way that is priced, the cheapest first."""

    candidate: Candidate
    ways: tuple[Way, ...]
    bought: tuple[Bought, ...]  # at least one
    peak_ratio: float

    @property
    def num_chips(self) -> int:
        return self.candidate.num_chips

    @property
    def had(self) -> Way:
        """The cheapest way."""
        return self.bought[0].way

    @property
    def own(self) -> Dedicated:
        return self.bought[0].own

    @property
    def month_usd(self) -> float:
        return self.bought[0].month.value

    @property
    def fixed_usd(self) -> float:
        """What is paid whatever a chip-hour costs."""
        return self.own.fixed.value if self.own.fixed is not None else 0.0

    @cached_property
    def tokens(self) -> TokenCosts:
        """At the mean load, before overheads."""
        one = self.candidate
        rate = one.replica_rate_per_s / self.peak_ratio
        return token_costs(one.held, one.held.at(rate), self.bought[0].hour, rate)


def ways_to_have(scenario: Scenario, candidate: Candidate) -> tuple[Way, ...]:
    """Every way that is allowed to have the chips of a candidate, the cheapest first."""
    replica = candidate.replica
    return ways_of(scenario, replica.chip, candidate.num_chips, job_chips=replica.num_chips, trains=False)


def served(scenario: Scenario, candidate: Candidate) -> Served | None:
    """A candidate with its bill; None where nobody prices its chip."""
    ways = ways_to_have(scenario, candidate)
    priced = [way for way in ways if way.is_priced]
    if not priced:
        return None
    peak = peak_ratio(scenario, candidate)
    fleet = Fleet(
        chip=candidate.replica.chip,
        num_replicas=candidate.num_deployed,
        num_replica_chips=candidate.replica.num_chips,
        replica_tokens=_replica_tokens(candidate, peak),
    )
    found = sorted((bought(scenario, fleet, way) for way in priced), key=lambda one: one.month.value)
    return Served(candidate=candidate, ways=ways, bought=tuple(found), peak_ratio=peak)


def peak_ratio(scenario: Scenario, candidate: Candidate) -> float:
    """The load over the mean of a month: as said, or of a trace its busiest stretch over all of it."""
    recorded = candidate.demand.stretch
    if recorded is None or scenario.given("peak_to_mean"):
        return scenario.one(Business).peak_ratio
    return max(1.0, recorded.rate_per_s / recorded.mean_per_s)


def request_tokens(candidate: Candidate) -> float:
    """Tokens of a mean request, of its prompt and its answer."""
    return candidate.demand.load.prompt + candidate.demand.load.output


def _replica_tokens(candidate: Candidate, peak: float) -> float:
    """Tokens of a month that a replica serves where the busiest hour leaves the headroom.

    Where simulation asked for more of them: what it holds alone, or a little less than each of too few got.
    """
    kept, full = candidate.held_per_s, candidate.full_rate_per_s
    if candidate.num_added > 0 and candidate.num_fewer:
        too_much = full / (candidate.num_replicas - candidate.num_fewer)
        kept = min(candidate.held.rate_per_s, too_much * LESS)
    elif candidate.num_added:
        kept = full / candidate.num_replicas
    return kept * (1.0 - candidate.headroom_fraction) * request_tokens(candidate) * MONTH_S / peak


def offered_api(scenario: Scenario, input_share: float) -> Hosted | None:
    """The tokens of an API to compare with; None where nobody hosts the model."""
    day = day_of(scenario.one(Purchase), scenario.catalog)
    return hosted(scenario.one(HostedModel), scenario.root.model, input_share, day, scenario.catalog)


def cost_section(scenario: Scenario, candidate: Candidate, found: Served | None) -> ServiceCost:
    """What a plan says of the money of its chosen candidate."""
    load, peak = candidate.demand.load, peak_ratio(scenario, candidate)
    asks_api = "api" in scenario.one(Purchase).buy
    ways = ways_to_have(scenario, candidate) if found is None else found.ways
    return ServiceCost(
        chip=candidate.replica.chip.name,
        bought=() if found is None else found.bought,
        unpriced=tuple(way for way in ways if not way.is_priced),
        tokens=candidate.offered_per_s * request_tokens(candidate) * MONTH_S / peak,
        peak_ratio=peak,
        costs=None if found is None else found.tokens,
        api=offered_api(scenario, load.prompt / request_tokens(candidate)) if asks_api else None,
        asks_api=asks_api,
    )

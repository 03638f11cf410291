"""A service of so many tokens a month beside an API: the planner's chips, priced, and where the answer flips.

rate at the peak = tokens a month / tokens of a request / month · peak over mean
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from datahall.breakdown import Breakdown
from datahall.economics.break_even import Point, break_even, curve, point
from datahall.economics.hosted import Hosted
from datahall.errors import InfeasibleError, UnsupportedError
from datahall.planner.serving.demand import demand_of
from datahall.planner.serving.money.cost import Served, offered_api, request_tokens
from datahall.planner.serving.plan import ServingPlan
from datahall.planner.serving.question import plan_serving
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.hosted import Business, HostedModel
from datahall.scenario.sections.traffic import Traffic
from datahall.scenario.sections.wanted.promise import Promise
from datahall.units import MONTH_S


class At(NamedTuple):
    """One volume on a chip that serves it."""

    chip: str
    point: Point


def _paid(one: At) -> float:
    return one.point.own_usd


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Serving oneself beside buying tokens, at one volume."""

    tokens: float  # a month
    request_tokens: float
    input_share: float  # of tokens, those of prompts
    served: tuple[Served, ...]  # cheapest first
    unserved: str  # why nothing serves it; nothing where something does
    api: Hosted | None
    api_is_late: bool  # its measured latency is beyond what is asked
    plan: ServingPlan | None = None

    @property
    def best(self) -> Served | None:
        return next(iter(self.served), None)

    @property
    def at_volume(self) -> Point | None:
        """Both ways at the volume asked; None where only one of them can be had."""
        if self.best is None or self.api is None:
            return None
        return point(self.best.own, self.api.blended.value, self.tokens)

    @property
    def builds(self) -> bool:
        """Whether serving oneself is the answer."""
        if self.best is None:
            return False
        both = self.at_volume
        return both is None or self.api_is_late or both.own_usd < both.api_usd

    @property
    def is_possible(self) -> bool:
        return self.best is not None or (self.api is not None and not self.api_is_late)

    @property
    def break_even(self) -> Breakdown | None:
        """Tokens a month from which serving oneself is cheaper, on whichever chip that is soonest; None: never."""
        if self.api is None:
            return None
        found = (break_even(one.own, self.api.blended) for one in self.served)
        return min((one for one in found if one is not None), key=lambda one: one.value, default=None)

    @property
    def fullest(self) -> Served | None:
        """The chip whose full replica serves tokens the cheapest."""
        return min(self.served, key=lambda one: one.own.full_usd_per_mtok, default=None)

    @property
    def curve(self) -> tuple[At, ...]:
        """Both ways at volumes around the one that is asked, each on the chip that serves it the cheapest."""
        if self.api is None or not self.served:
            return ()
        lines = [curve(one.own, self.api.blended.value, self.tokens) for one in self.served]
        return tuple(
            min(
                (
                    At(one.candidate.replica.chip.name, at)
                    for one, at in zip(self.served, column, strict=True)
                ),
                key=_paid,
            )
            for column in zip(*lines, strict=True)
        )


class Asked(NamedTuple):
    """A volume as a load: the question for the planner, and what a request is."""

    scenario: Scenario
    request_tokens: float
    input_share: float


def asked_of(scenario: Scenario, monthly_tokens: float) -> Asked:
    """The planner's question of a volume: its busiest hour, within the latency that is asked."""
    business, said = scenario.one(Business), scenario.one(Traffic)
    one = msgspec.structs.replace(said, rate_per_s=1.0)
    load = demand_of(scenario.having(one), scenario.model()).load
    request = load.prompt + load.output
    rate = monthly_tokens / request / MONTH_S * business.peak_ratio
    promise = scenario.one(Promise)
    if business.latency_s is not None:
        promise = msgspec.structs.replace(promise, ttft_s=business.latency_s)
    there = scenario.having(msgspec.structs.replace(said, rate_per_s=rate), promise)
    return Asked(there, request, load.prompt / request)


def choice_of(scenario: Scenario, monthly_tokens: float) -> Choice:
    """Build or buy, at a volume."""
    asked = asked_of(scenario, monthly_tokens)
    plan, why = _planned(asked.scenario)
    served = () if plan is None else _served(scenario, plan)
    business, api = scenario.one(Business), scenario.one(HostedModel)
    offered = offered_api(scenario, asked.input_share)
    late = api.answers_s is not None and business.latency_s is not None and api.answers_s > business.latency_s
    unpriced = "" if served or plan is None else "no chip that serves it has a price"
    return Choice(
        tokens=monthly_tokens,
        request_tokens=asked.request_tokens,
        input_share=asked.input_share,
        served=served,
        unserved=why or unpriced,
        api=offered,
        api_is_late=late,
        plan=plan,
    )


def _planned(asked: Scenario) -> tuple[ServingPlan | None, str]:
    """The planner's answer, or why nothing serves it."""
    try:
        return plan_serving(asked), ""
    except (InfeasibleError, UnsupportedError) as error:
        if error.field == "failure":
            raise
        return None, error.message


def _served(scenario: Scenario, plan: ServingPlan) -> tuple[Served, ...]:
    """The best of each chip, priced, cheapest a month at the volume first; those without a price are left out."""
    peak = scenario.one(Business).peak_ratio
    volume = plan.demand.rate_per_s * request_tokens(plan.chosen) * MONTH_S / peak
    return tuple(sorted(plan.served, key=lambda one: (one.own.month_usd(volume), one.num_chips)))

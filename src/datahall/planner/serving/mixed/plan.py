"""The plan of a service where only so many chips of a kind can be had: one kind alone, or several behind one router.

A mixture is weighed where there are not enough of the kind that is best alone, and chosen where no other kind alone
has less of the objective.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite, isinf

import msgspec

from datahall.cluster.wiring import wiring_of
from datahall.errors import InfeasibleError, option
from datahall.planner.plan import Plan
from datahall.planner.serving.candidate import Candidate, Proposal
from datahall.planner.serving.confirm import Confirmed, confirmed
from datahall.planner.serving.mixed.confirm import confirmed_mixture
from datahall.planner.serving.mixed.mixture import Mixture
from datahall.planner.serving.mixed.split import Kind, all_hold, cheapest_split
from datahall.planner.serving.mixed.stock import Stock, is_enough, short_of, stock_of
from datahall.planner.serving.mixed.totals import Totals, totals_of
from datahall.planner.serving.money.aim import aim_of
from datahall.planner.serving.money.cost import Served, served
from datahall.planner.serving.objective import Aim
from datahall.planner.serving.plan import ServingPlan
from datahall.planner.serving.question import finished, plan_of, proposed, question_of, weighed
from datahall.planner.serving.refusal import Refused
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.ownership import Ownership

UNKNOWN_USD = 1e12  # of a chip, where nobody prices it: it is taken last


class MixedPlan(Plan[Mixture], frozen=True, kw_only=True):
    """The best mixture, its pools each as a plan of its own, and what serves alone."""

    pools: tuple[ServingPlan, ...]
    best: tuple[Proposal, ...]  # of each kind alone, whether there are enough of it or not, best first
    stock: Stock
    bills: tuple[Served | None, ...]  # of each of these; None where nobody prices it
    value: float | None  # of the objective, that the mixture takes; None where nobody knows
    alone_more_fraction: (
        float | None
    )  # that the best kind takes more of which there are enough; None: there is none
    totals: Totals

    @property
    def kinds(self) -> tuple[Proposal, ...]:
        """The best of each kind that is a pool, as it would serve alone."""
        names = {one.replica.chip.name for one in self.chosen.alone}
        return tuple(one for one in self.best if one.replica.chip.name in names)

    def num_missing(self, one: Candidate) -> int:
        """Chips that there are too few of to serve alone."""
        return max(0, one.num_chips - self.stock.get(one.replica.chip.name, one.num_chips))


def plan_within_stock(scenario: Scenario) -> ServingPlan | MixedPlan:
    """The best kind of which there are enough, or a mixture where that has less of the objective or none has enough."""
    question, aim, stock = question_of(scenario), aim_of(scenario), stock_of(scenario)
    candidates, refused = weighed(question, scenario.catalog, wiring_of(scenario), aim)
    found = confirmed(candidates, seed=scenario.root.seed, aim=aim)
    enough = tuple(one for one in found.best if is_enough(one, stock))
    scarce = tuple(one for one in found.best if not is_enough(one, stock))
    mix = None
    if not is_enough(found.best[0], stock) and question.demand.reuse is None:
        mix = cheapest_mixture(scenario, aim, found.best, stock)
    if mix is not None and mix.keeps and _wins(scenario, aim, mix, enough):
        return _mixed(scenario, aim, mix, found.best, enough, stock)
    if not enough:
        raise too_few(found.best, stock, mix)
    names = {one.replica.chip.name for one in enough}
    plan = plan_of(
        question,
        aim,
        Confirmed(enough, tuple(one for one in found.kept if is_enough(one, stock))),
        [one for one in candidates if one.replica.chip.name in names],
        (*refused, *(short_of(one, stock) for one in scarce)),
        scenario,
    )
    if mix is None:
        return plan
    more = _more(mixture_value(scenario, aim, mix), aim.value(plan.chosen))
    return msgspec.structs.replace(plan, mixture=mix, mixture_more_fraction=more)


def cheapest_mixture(scenario: Scenario, aim: Aim, best: Sequence[Candidate], stock: Stock) -> Mixture | None:
    """The mixture of several kinds with the least of the objective, simulated; None where there is none."""
    usable = [one for one in best if one.keeps]
    demand = best[0].demand
    kinds = [_kind(scenario, aim, one, stock) for one in usable]

    def split(load_ratio: float) -> Mixture | None:
        counts = cheapest_split(kinds, demand.rate_per_s * load_ratio, best[0].num_spare, least_kinds=2)
        if counts is None:
            return None
        pools = [(one, count) for one, count in zip(usable, counts, strict=True) if count]
        return Mixture(
            alone=tuple(one for one, _ in pools),
            counts=tuple(count for _, count in pools),
            num_spare=best[0].num_spare,
        )

    return confirmed_mixture(split, seed=scenario.root.seed)


def mixture_value(scenario: Scenario, aim: Aim, mix: Mixture) -> float:
    """What a mixture has of the objective: of all its pools, staff once; of time the longest of them."""
    first, *others = (mix.pool(place) for place in range(len(mix.counts)))
    if aim.objective.name == "time":
        return max(map(aim.value, (first, *others)))
    rest = aim_of(_unstaffed(scenario))
    return aim.value(first) + sum(map(rest.value, others))


def too_few(best: Sequence[Candidate], stock: Stock, mix: Mixture | None) -> InfeasibleError:
    """The error where no kind alone and no mixture serves: what all that can be had holds, and the fewest more."""
    demand, first = best[0].demand, min(best, key=lambda one: one.num_chips)
    there = ", ".join(f"{count:,} {name}" for name, count in stock.items())
    used = 1.0 - first.headroom_fraction
    held = all_hold(
        [Kind(one.held_per_s * used, _most(one, stock), 1.0) for one in best if one.keeps], first.num_spare
    )
    why = (
        "conversations stay on their replica, and are planned on one kind of chip"
        if demand.reuse is not None
        else "too few requests keep both limits when it is simulated"
        if mix is not None
        else f"all together hold {held:,.4g} of {demand.rate_per_s:,.4g} requests/s"
    )
    return InfeasibleError(
        f"{there} are too few to serve {first.replica.model.name} as asked: {why}",
        field="available",
        hint=f"{option('available', f'{first.replica.chip.name}={first.num_chips}')} serves it alone; or another kind "
        f"in {option('chips')}",
    )


def _wins(scenario: Scenario, aim: Aim, mix: Mixture, enough: Sequence[Candidate]) -> bool:
    """Whether it takes less; what takes as much is one kind alone, and where nobody knows the fewer chips decide."""
    if not enough or not enough[0].keeps:
        return True
    value, (least, num_chips) = mixture_value(scenario, aim, mix), aim.key(enough[0])
    if isinf(value) and isinf(least):
        return mix.num_chips < num_chips
    return float(f"{value:.10g}") < least


def _mixed(
    scenario: Scenario,
    aim: Aim,
    mix: Mixture,
    best: Sequence[Candidate],
    enough: Sequence[Candidate],
    stock: Stock,
) -> MixedPlan:
    pools = []
    for place in range(len(mix.counts)):
        one = proposed(mix.pool(place))
        plan = ServingPlan(objective=aim.objective, chosen=one, best=(one,), num_candidates=1)
        asked = scenario if place == 0 else _unstaffed(scenario)
        pools.append(finished(plan, asked, aim_of(asked)))
    value = mixture_value(scenario, aim, mix)
    scarce: tuple[Refused, ...] = tuple(short_of(one, stock) for one in best if not is_enough(one, stock))
    return MixedPlan(
        objective=aim.objective,
        chosen=mix,
        refusals=scarce,
        pools=tuple(pools),
        best=tuple(map(proposed, best)),
        stock=stock,
        bills=tuple(served(scenario, one) for one in best),
        value=_known(value),
        alone_more_fraction=_more(aim.value(enough[0]), value) if enough and enough[0].keeps else None,
        totals=totals_of(mix, pools),
    )


def _kind(scenario: Scenario, aim: Aim, one: Candidate, stock: Stock) -> Kind:
    """One kind of replica as the split sees it, priced at as many as there may be of it."""
    most = _most(one, stock)
    usd, together = _price(scenario, aim, one, min(most, one.num_deployed))
    return Kind(one.held_per_s * (1.0 - one.headroom_fraction), most, usd, together)


def _price(scenario: Scenario, aim: Aim, one: Candidate, count: int) -> tuple[float, int]:
    """What one replica of so many takes of the objective, and how many are paid together."""
    demand = msgspec.structs.replace(one.demand, rate_per_s=one.demand.rate_per_s * count / one.num_deployed)
    some = msgspec.structs.replace(one, num_replicas=count, num_spare=0, demand=demand)
    if aim.objective.name == "cost":
        bill = served(scenario, some)
        known = (UNKNOWN_USD * one.replica.num_chips, 1)
        return known if bill is None else (bill.own.replica.value, bill.own.at_once)
    if aim.objective.name == "time":  # the same however many there are: the fewest chips of those
        return float(one.replica.num_chips), 1
    value = aim.value(some)
    return (value / count if isfinite(value) else UNKNOWN_USD * one.replica.num_chips), 1


def _most(one: Candidate, stock: Stock) -> int:
    """Replicas of a kind that there can be; of one that is not short, as many as serve alone."""
    there = stock.get(one.replica.chip.name, one.num_chips)
    return min(one.num_deployed, there // one.replica.num_chips)


def _unstaffed(scenario: Scenario) -> Scenario:
    """The same without staff, which is paid once however many pools there are."""
    return scenario.having(msgspec.structs.replace(scenario.one(Ownership), staff_usd_per_month=0.0))


def _more(value: float, least: float) -> float | None:
    """How much more one is than another; None where one of them is not known."""
    return value / least - 1.0 if isfinite(value) and isfinite(least) else None


def _known(value: float) -> float | None:
    return value if value < inf else None

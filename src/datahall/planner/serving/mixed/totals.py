"""What the pools of a mixture come to together: the month, its tokens, and the power of the site."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from datahall.economics.sections.service import ServiceCost
from datahall.planner.serving.mixed.mixture import Mixture
from datahall.planner.serving.plan import ServingPlan
from datahall.power.sections.service import ServicePower
from datahall.units import DAY_S


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """Power and energy of all pools."""

    provisioned_w: float
    site_w: float
    peak_w: float
    day_j: float
    day_kg: float
    token_j: float  # of an answer


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over pools; None where one of them is not known."""

    month_tokens: float
    month_usd: float | None
    api_month_usd: float | None
    drawn: Drawn | None


def totals_of(mix: Mixture, pools: Sequence[ServingPlan]) -> Totals:
    """The pools of a mixture, each a plan of its own, summed up."""
    costs = [pool.part(ServiceCost) for pool in pools]
    api = [cost.api_month.value for cost in costs if cost.api_month is not None]
    months = [cost.had.month.value for cost in costs if cost.had is not None]
    return Totals(
        month_tokens=sum(cost.tokens for cost in costs),
        month_usd=sum(months) if len(months) == len(costs) else None,
        api_month_usd=sum(api) if len(api) == len(costs) else None,
        drawn=_drawn(mix, [pool.section(ServicePower) for pool in pools]),
    )


def _drawn(mix: Mixture, powers: Sequence[ServicePower | None]) -> Drawn | None:
    known = [one for one in powers if one is not None]
    if len(known) < len(powers):
        return None
    day_j = sum(one.energy.value for one in known)
    demand = mix.demand
    return Drawn(
        provisioned_w=sum(one.provisioned.value for one in known),
        site_w=sum(one.drawn.value for one in known),
        peak_w=sum(one.peak.value for one in known),
        day_j=day_j,
        day_kg=sum(one.carbon.value for one in known),
        token_j=day_j / (demand.rate_per_s * demand.load.output * DAY_S),
    )

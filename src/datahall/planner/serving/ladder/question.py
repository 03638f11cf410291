"""The ladder of serving techniques that a scenario asks for, and what a chip that climbs it is rented for."""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

import msgspec

from datahall.cluster.host import host_of
from datahall.cluster.wiring import wiring_of
from datahall.economics.market import Market, market_of
from datahall.inference.closed_form.conversations import in_turns, reuse
from datahall.inference.closed_form.load import load_of
from datahall.inference.engine.asked import deployment_of
from datahall.inference.engine.build import replica_of, speculation_of
from datahall.inference.ladder.climb import Ladder, ladder
from datahall.inference.ladder.smaller import smaller_of
from datahall.inference.ladder.techniques import GROUPS
from datahall.inference.ladder.tiers import Stores, Tiered, tiers_of
from datahall.scenario.requests import requests_of
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.purchase import Purchase
from datahall.scenario.sections.traffic import Traffic
from datahall.scenario.sections.views import Lighter, Prefix
from datahall.scenario.sections.wanted.promise import Promise
from datahall.scenario.words import FREE_DRAFT
from datahall.units import HOUR_S
from datahall.workload.traffic.traffic import Traffic as Requests

MILLION = 1e6


class Climbed(NamedTuple):
    """The techniques of a replica on a load, in the format that was asked for, and what its chips cost."""

    ladder: Ladder
    traffic: Requests
    precision: str
    market: Market
    nobody_sells: bool  # whoever is asked
    tiers: tuple[Tiered, ...]  # of caches; nothing where no request is a turn of a conversation

    def tier_gain(self, tier: Tiered) -> float | None:
        """What a chip holds with caches so deep over that without any; None where that is nothing."""
        plain = self.tiers[0].held_per_s
        return tier.held_per_s / plain if plain else None

    def million_usd(self, held_per_s: float) -> float | None:
        """What a million tokens of answers cost where a chip holds so many requests; None where nobody prices it."""
        if self.market.price is None or not held_per_s > 0:
            return None
        output = self.ladder.setting.load.output
        return self.market.price.value / HOUR_S / (held_per_s * output) * MILLION


def climbed(scenario: Scenario) -> Climbed:
    """Every technique of what a scenario serves, alone and together."""
    deployment, said, lighter = deployment_of(scenario), scenario.one(Traffic), scenario.one(Lighter)
    model, catalog = scenario.model(), scenario.catalog
    speculation = speculation_of(
        msgspec.structs.replace(deployment, draft=deployment.draft or FREE_DRAFT), model, catalog
    )
    assert speculation is not None
    assert said.rate_per_s is not None
    traffic = requests_of(said, deployment.max_context or model.max_context)
    replica = replica_of(
        msgspec.structs.replace(
            deployment, draft="", tp=deployment.tp or GROUPS[-1], host_cache_bytes=0.0, drive_cache_bytes=0.0
        ),
        model,
        catalog,
        wiring_of(scenario),
        hands_over=True,
    )
    bought = scenario.one(Purchase)
    anybody = msgspec.structs.replace(bought, providers=())
    steps = ladder(
        replica,
        load_of(traffic),
        scenario.one(Promise),
        said.rate_per_s,
        cached=scenario.one(Prefix).cached_fraction,
        speculation=speculation,
        small=catalog.model(lighter.small) if lighter.small else smaller_of(model, catalog.models()),
        lighter=lighter,
        tp=deployment.tp,
    )
    return Climbed(
        ladder=steps,
        traffic=traffic,
        precision=deployment.precision,
        market=market_of(replica.chip.name, "on-demand", bought, catalog),
        nobody_sells=market_of(replica.chip.name, "on-demand", anybody, catalog).price is None,
        tiers=_tiers(scenario, steps, traffic, said.rate_per_s),
    )


def _tiers(scenario: Scenario, steps: Ladder, traffic: Requests, rate_per_s: float) -> tuple[Tiered, ...]:
    """Caches of conversations, with memory and drives as they are said, or as the chips' machine has them."""
    if not in_turns(traffic):
        return ()
    setting, said = steps.setting, deployment_of(scenario)
    num_chips = setting.replica.num_chips
    host = host_of(setting.replica.chip, scenario.catalog.servers())
    has_link = host.says_link or said.host_link_bytes_per_s is not None
    stores = Stores(
        host_bytes=(said.host_cache_bytes or num_chips * _published(host.memory_bytes)) if has_link else 0.0,
        drive_bytes=(said.drive_cache_bytes or num_chips * _published(host.nvme_bytes)) if has_link else 0.0,
    )
    return tiers_of(setting, steps.promise, rate_per_s, reuse(traffic), stores)


def _published(size_bytes: float) -> float:
    return size_bytes if isfinite(size_bytes) else 0.0

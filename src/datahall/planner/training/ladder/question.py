"""The ladder that a scenario asks for: of the layout that was said, or of the fastest where none was."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from datahall.breakdown import Breakdown, derived, given, product, quotient
from datahall.economics.market import Market, market_of
from datahall.planner.training.early import chips_of, in_half
from datahall.planner.training.laid.step import laid_step
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.money.purchase import Purchase
from datahall.scenario.sections.sites import Sites
from datahall.scenario.sections.training import TrainingJob
from datahall.scenario.usual import LADDER_CHIPS, LADDER_TOKENS
from datahall.training.early import says_layout
from datahall.training.ladder.climb import Ladder, climb
from datahall.training.ladder.setting import Setting
from datahall.training.ladder.sites import Apart, apart
from datahall.training.setup import Setup, machine_of
from datahall.training.used import Used
from datahall.units import HOUR_S


class Climbed(NamedTuple):
    """The ladder of a job, the same on several sites, and what its chips are rented for."""

    setup: Setup
    used: Used
    ladder: Ladder
    sites: Apart
    num_tokens: float
    market: Market
    nobody_sells: bool  # whoever is asked
    is_searched: bool  # nobody said how to lay it out

    def cost(self, step_s: float) -> Breakdown | None:
        """What the tokens cost in steps of so long, rented, without what failures add; None where nobody prices it."""
        if self.market.price is None:
            return None
        job, num_chips = self.setup.job, self.setup.cluster.num_chips
        tokens = given("tokens", self.num_tokens, "tokens", field="tokens")
        once = derived("tokens of a step", job.batch_tokens, "tokens")
        working = product(
            "time", (quotient("steps", tokens, once, "count"), derived("step", step_s, "s")), "s"
        )
        hours = quotient("hours", working, derived("an hour", HOUR_S, "s"), "count")
        return product("cost", (derived("chips", num_chips, "count"), hours, self.market.price), "usd")

    def cost_usd(self, step_s: float) -> float | None:
        """The same as a number."""
        found = self.cost(step_s)
        return None if found is None else found.value


def with_chips(scenario: Scenario) -> Scenario:
    """The question on the usual number of chips where nothing says how many, nor how they are laid out."""
    scenario = in_half(scenario)
    if chips_of(scenario) is not None or says_layout(scenario):
        return scenario
    return scenario.having(msgspec.structs.replace(scenario.one(FabricDesign), chips=LADDER_CHIPS))


def climbed(scenario: Scenario) -> Climbed:
    """The ladder of what a scenario trains."""
    asked = with_chips(scenario)
    laid = laid_step(asked)
    setup = laid.setup
    ladder = climb(
        Setting(
            job=setup.job,
            cluster=setup.cluster,
            layout=setup.layout,
            framework=setup.framework,
            schedule=setup.schedule,
        )
    )
    bought, chip = asked.one(Purchase), setup.cluster.chip.name
    anybody = msgspec.structs.replace(bought, providers=())
    return Climbed(
        setup=setup,
        used=laid.used,
        ladder=ladder,
        sites=apart(ladder.top, machine_of(asked), asked.one(Sites)),
        num_tokens=asked.one(TrainingJob).num_tokens or LADDER_TOKENS,
        market=market_of(chip, "on-demand", bought, asked.catalog),
        nobody_sells=market_of(chip, "on-demand", anybody, asked.catalog).price is None,
        is_searched=laid.is_searched,
    )

"""What a plan of a service says of the supply of its chips, and of the regions that they stand in."""

from __future__ import annotations

from datahall.breakdown import Breakdown, derived, given, product, quotient, total
from datahall.catalog.entries.chip import Chip
from datahall.economics.sections.reach import Reach, reach_of
from datahall.economics.sections.service import ServiceCost
from datahall.economics.sections.stands import stands_in, text_bytes
from datahall.economics.sections.supply import supplied
from datahall.planner.serving.candidate import Candidate
from datahall.planner.serving.money.cost import request_tokens
from datahall.planner.serving.plan import ServingPlan
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.traffic import Traffic
from datahall.scenario.sections.wanted.promise import Promise


def with_supply(plan: ServingPlan, scenario: Scenario) -> ServingPlan:
    """The plan with who makes and sells its chips, and where regions are named with those."""
    chip = plan.chosen.replica.chip
    plan = plan.with_section(supplied(scenario, chip))
    stands = stands_in(scenario, chip, _answers(plan, scenario, plan.chosen))
    plan = plan if stands is None else plan.with_section(stands)
    reach = _reach(plan, scenario, chip)
    return plan if reach is None else plan.with_section(reach)


def _reach(plan: ServingPlan, scenario: Scenario, chip: Chip) -> Reach | None:
    best, promise = plan.chosen, scenario.one(Promise)
    return reach_of(
        scenario,
        chip,
        best.num_chips,
        promise.ttft_s,
        best.run.ttft_s(promise.percentile),
        _answers(plan, scenario, best),
    )


def _answers(plan: ServingPlan, scenario: Scenario, best: Candidate) -> Breakdown:
    """The text of all answers of a month, whose mean is the load over the peak, and what is sent with them."""
    share = best.demand.load.output / request_tokens(best)
    tokens = product(
        "tokens of answers a month",
        (
            derived("tokens a month", plan.part(ServiceCost).tokens, "tokens", "at the mean load"),
            derived("share of answers", share, "fraction"),
        ),
        "tokens",
    )
    name, sent = "answers of a month", scenario.one(Traffic).sent_bytes
    if not sent:
        return text_bytes(scenario.catalog, name, tokens)
    requests = quotient(
        "requests a month",
        tokens,
        derived("tokens of an answer", best.demand.load.output, "tokens"),
        "count",
    )
    beside = product(
        "sent beside their text",
        (requests, given("beside the text of an answer", sent, "bytes", field="sent")),
        "bytes",
    )
    return total(name, (text_bytes(scenario.catalog, "their text", tokens), beside))

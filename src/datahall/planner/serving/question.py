"""A question for a serving plan: on each kind of chip the least hardware that keeps the limits at the load asked.

replicas = ⌈offered / (held · (1 − headroom))⌉ + those that simulation asks for
chips    = (replicas + spare) · chips of a replica
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.cluster.wiring import Wiring, wiring_of
from datahall.errors import DatahallError, InfeasibleError, ScenarioError, UnsupportedError, option
from datahall.fabric.design.chips import usual_chip
from datahall.inference.closed_form.bottleneck import mean_step, resource_shares
from datahall.inference.engine.machine import placed
from datahall.inference.engine.replica import Replica
from datahall.planner.serving.apart import Apart, weighed_apart
from datahall.planner.serving.candidate import Candidate, Proposal
from datahall.planner.serving.confirm import Confirmed, confirmed
from datahall.planner.serving.demand import Demand, demand_of
from datahall.planner.serving.early import candidate_chips, left_out_of
from datahall.planner.serving.figure import latency_figures
from datahall.planner.serving.groups import groups, on_its_fabric
from datahall.planner.serving.mixed.stock import stock_of, too_large
from datahall.planner.serving.money.aim import aim_of
from datahall.planner.serving.money.rivals import more_fraction, with_money
from datahall.planner.serving.money.supply import with_supply
from datahall.planner.serving.objective import CHIPS, Aim
from datahall.planner.serving.operations import with_operations
from datahall.planner.serving.plan import Lost, ServingPlan
from datahall.planner.serving.refusal import Refused, not_to_be_had, nothing_serves, refusal_of, unwired
from datahall.planner.serving.think import paces_of
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import Deployment
from datahall.scenario.sections.wanted.candidates import Candidates
from datahall.workload.sharding import Sharding

CURVE_ENDS = 2.5  # times the limit per token: beyond it the queue grows


class Question(NamedTuple):
    """What is to be served, and the groups that are worth a look or say why they are not."""

    model: Model
    demand: Demand
    headroom_fraction: float
    num_spare: int
    weighs_apart: bool
    chips: list[Chip]
    looked: list[tuple[Deployment, Replica] | Refused]  # a group with what it is part of


def question_of(scenario: Scenario) -> Question:
    """What a scenario asks for, made and checked before anything is weighed."""
    model = scenario.model()
    deployment = scenario.one(Deployment)
    demand, wiring = demand_of(scenario, model), wiring_of(scenario)
    asked, without = scenario.one(Candidates), left_out_of(scenario)
    chips = [chip for chip in candidate_chips(scenario) if chip.name not in without]
    if asked.disaggregated and demand.reuse is not None:
        raise _turns_apart()
    if deployment.tp:
        Sharding(tp=float(deployment.tp)).check(model)
    looked: list[tuple[Deployment, Replica] | Refused] = [not_to_be_had(*one) for one in without.items()]
    fitting = usual_chip(wiring.design, scenario.catalog)
    stock = stock_of(scenario)
    unjoined: ScenarioError | None = None
    for part, precision in ((chip, name) for chip in chips for name in asked.precision):
        there = msgspec.structs.replace(deployment, chip=part.name, precision=precision)
        try:
            found = list(groups(there, model, scenario.catalog, wiring))
        except ScenarioError as error:
            if error.field != "chip":  # other than a chip that the fabric does not join
                raise
            looked.append(unwired(part, precision, error, fitting))
            unjoined = unjoined or error
            continue
        looked += [too_large(part, precision, group, stock) or (there, group) for group in found]
    if unjoined is not None and all(isinstance(one, Refused) for one in looked):
        unjoined.field, unjoined.hint = "chips", option("chips", fitting.name)
        raise unjoined
    return Question(model, demand, asked.headroom_fraction, asked.spare, asked.disaggregated, chips, looked)


def plan_serving(scenario: Scenario) -> ServingPlan:
    """The least hardware of each kind, chosen in closed form and confirmed by simulation, and what it takes to run."""
    question, aim = question_of(scenario), aim_of(scenario)
    candidates, refused = weighed(question, scenario.catalog, wiring_of(scenario), aim)
    found = confirmed(candidates, seed=scenario.root.seed, aim=aim)
    return plan_of(question, aim, found, candidates, refused, scenario)


def plan_of(
    question: Question,
    aim: Aim,
    found: Confirmed,
    candidates: Sequence[Candidate],
    refused: tuple[Refused, ...],
    scenario: Scenario,
) -> ServingPlan:
    """The plan with what was confirmed, and what it takes to run."""
    best = tuple(proposed(candidate) for candidate in found.best)
    placed(
        best[0].replica, best[0].num_deployed, wiring_of(scenario), scenario.catalog
    )  # refuses parts it has not
    plan = ServingPlan(
        objective=aim.objective,
        chosen=best[0],
        alternatives=lost_to(best, candidates, aim),
        refusals=refused,
        best=best,
        kept=found.kept,
        num_candidates=len(candidates),
        is_weighed_apart=question.weighs_apart,
        apart=_apart(question, best, scenario) if question.weighs_apart else (),
        paces=paces_of(best[0]),
    )
    return finished(plan, scenario, aim)


def finished(plan: ServingPlan, scenario: Scenario, aim: Aim) -> ServingPlan:
    """The plan with all that other rooms add to it."""
    return with_supply(with_money(with_operations(plan, scenario), scenario, aim), scenario)


def _turns_apart() -> ScenarioError:
    return ScenarioError(
        "conversations on replicas for prompts and others for answers are not weighed",
        field="disaggregated",
        hint=f"leave it out; simulate serve follows them, e.g. {option('disaggregated', 'prefill=1,decode=2')}",
    )


def _apart(question: Question, best: Sequence[Candidate], scenario: Scenario) -> tuple[Apart, ...]:
    """Prompts and answers on replicas of their own, of each chip that was planned."""
    looked = [one for one in question.looked if not isinstance(one, Refused)]
    return weighed_apart(best, looked, scenario.catalog, wiring_of(scenario), scenario.root.seed)


def weighed(
    question: Question, catalog: Catalog, wiring: Wiring, aim: Aim = CHIPS
) -> tuple[list[Candidate], tuple[Refused, ...]]:
    """The groups that keep the limits in closed form, the best first and then the faster, and those that do not."""
    candidates, refused = [], []
    failure: DatahallError | None = None
    for group in question.looked:
        if isinstance(group, Refused):
            refused.append(group)
            continue
        there, replica = group
        try:
            most, count = on_its_fabric(
                replica, question.demand, question.headroom_fraction, catalog, wiring, question.num_spare
            )
        except (InfeasibleError, UnsupportedError, ScenarioError) as error:
            failure = failure or (error if error.field == "failure" else None)
            refused.append(refusal_of(replica, there.precision, error))
            continue
        candidates.append(
            Candidate(
                held=most,
                precision=there.precision,
                num_replicas=count,
                num_spare=question.num_spare,
                demand=question.demand,
                headroom_fraction=question.headroom_fraction,
            )
        )
    if not candidates:
        raise failure or nothing_serves(question.model, question.chips, refused)
    candidates.sort(key=lambda candidate: (aim.key(candidate), candidate.state.tpot_s))
    return candidates, tuple(refused)


def lost_to(best: Sequence[Candidate], candidates: Sequence[Candidate], aim: Aim = CHIPS) -> tuple[Lost, ...]:
    """The candidates that are not the best of their chip, with how far they are from it."""
    least = {candidate.replica.chip.name: candidate for candidate in best}
    kept = {candidate.key for candidate in best}
    return tuple(
        Lost(
            candidate,
            num_more=candidate.num_chips - least[candidate.replica.chip.name].num_chips,
            more_fraction=more_fraction(aim, candidate, least[candidate.replica.chip.name]),
        )
        for candidate in candidates
        if candidate.key not in kept
    )


def proposed(candidate: Candidate) -> Proposal:
    """A candidate that was simulated, with what bounds its step, its latencies, and what more load would do to them."""
    assert candidate.run is not None
    most = candidate.held
    step = mean_step(candidate.replica, most.load, most.state)
    there = mean_step(candidate.replica, most.load, candidate.held_state) if candidate.num_added else step
    return Proposal(
        **{name: getattr(candidate, name) for name in candidate.__struct_fields__},
        step=step.figure,
        resource_shares=resource_shares(there),
        load_curve=tuple(most.chip_curve(CURVE_ENDS * candidate.demand.promise.tpot_s)),
        latencies=latency_figures(candidate),
    )

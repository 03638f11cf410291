"""A training run as somebody asks for a plan of it: on so many chips, or by a deadline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from math import inf

import msgspec

from datahall.cluster.cluster import Cluster
from datahall.cluster.gone import gone_of
from datahall.cluster.wiring import wiring_of
from datahall.economics.sections.run import TrainingCost
from datahall.errors import InfeasibleError
from datahall.fabric.design.bill import bill
from datahall.fabric.design.chips import own_chips
from datahall.planner.training.choice import loss_beside, plan_on_chips
from datahall.planner.training.dated import Question
from datahall.planner.training.deadline import plan_by_deadline
from datahall.planner.training.early import chips_of
from datahall.planner.training.late import mended
from datahall.planner.training.money.aim import Aim, aim_of
from datahall.planner.training.money.budget import within_budget
from datahall.planner.training.money.cost import with_cost
from datahall.planner.training.money.supply import with_supply
from datahall.planner.training.operations import done_by, with_goodput, with_site
from datahall.planner.training.plan import OnFabric, Present, TrainingPlan
from datahall.planner.training.sections.joining import with_joining
from datahall.reliability.sections.goodput import Goodput
from datahall.reliability.simulation.story import GIVEN_UP_AFTER
from datahall.scenario.buying import chip_ways
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import MOST_CHIPS
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.money.purchase import Purchase
from datahall.scenario.sections.training import TrainingJob, TrainingLayout
from datahall.training.layout.asked import LaidOut, laid_out
from datahall.training.layout.search import Loss, search
from datahall.training.layout.space import WIDE, Options
from datahall.training.pipeline.execution import simulate_step
from datahall.training.pipeline.step_memory import step_memory
from datahall.training.setup import built, framework_of, job_of, machine_of, of_any_size

MOST_POWER = 12  # of two: more chips are not tried to hold a run
LITTLE = 2.0 / GIVEN_UP_AFTER  # of the time: with more of it nine of ten runs end before they are given up


def plan_training(scenario: Scenario) -> TrainingPlan:
    """The plan that a scenario asks for; where nobody said how many chips, those of the plan have what has failed."""
    plan = search_of(scenario)()
    if chips_of(scenario) is None:
        machine_of(scenario, strict=True)(plan.chosen.num_chips)
    paid = within_budget(plan, scenario, lambda changed: search_of(changed)())
    plan = with_site(paid, scenario)
    cost = plan.section(TrainingCost)
    plan = with_supply(
        plan if cost is None else plan.with_section(cost), scenario
    )  # after its power, its money
    return with_joining(plan, scenario, _options(scenario))


def plan_on_fabrics(scenarios: Sequence[Scenario]) -> tuple[OnFabric, ...]:
    """The run on each of several fabrics: the one done first, or of the fewest chips for a deadline, comes first.

    Of those that are alike the one with the cheapest network does.
    """
    found, errors = [], []
    for one in scenarios:
        topology = one.one(FabricDesign).topology
        try:
            plan = plan_training(one)
        except InfeasibleError as error:
            found.append(OnFabric(topology, one, None, why=error.message))
            errors.append(error)
            continue
        design = plan.cluster.design
        parts = bill(design, one.catalog) if design is not None else None
        found.append(OnFabric(topology, one, plan, parts if parts is not None and parts.items else None))
    if len(errors) == len(found):
        raise errors[0]
    return tuple(sorted(found, key=_rank))


def _rank(one: OnFabric) -> tuple[float, ...]:
    if one.plan is None:
        return (2.0,)
    plan = one.plan
    chips = plan.num_chips if plan.deadline_s is not None else 0
    price = one.network.price.value if one.network is not None else 0.0
    return float(not plan.ends), chips, plan.elapsed_s, price


def _operated(plan: TrainingPlan, scenario: Scenario) -> TrainingPlan:
    """A plan on so many chips with its failures; where they leave little, whether it ends, and what would end it."""
    plan = with_goodput(plan, scenario)
    if plan.part(Goodput).ettr >= LITTLE:
        return plan
    hopeless = plan.surely_late(GIVEN_UP_AFTER * plan.duration_s)
    plan = msgspec.structs.replace(plan, done_s=inf if hopeless else done_by(plan, scenario))
    return plan if plan.ends else msgspec.structs.replace(plan, mended=mended(plan, inf, scenario))


def _present(plan: TrainingPlan, has: LaidOut, cluster: Cluster) -> Present:
    """The layout that somebody has, simulated beside the chosen one."""
    assert has.file is not None
    run = simulate_step(plan.job, cluster, has.layout, plan.search.framework, order=has.schedule)
    memory = step_memory(run, plan.search.books)
    loss = loss_beside(run, plan.execution)
    if not memory.fits:
        loss = Loss(has.layout, False, -memory.headroom_bytes, inf, "", 0.0)
    states_batch = bool(has.file.global_batch or has.file.accumulation)
    return Present(has.file.path, run, memory, loss, states_batch, plan.num_steps * run.step_s)


def _options(scenario: Scenario) -> Options:
    """What layouts may be; what may be offloaded is weighed beside keeping all on the chips."""
    offload = scenario.one(TrainingLayout).offload
    margin_fraction = scenario.one(TrainingJob).margin_fraction
    return msgspec.structs.replace(
        WIDE, offload=((), offload) if offload else WIDE.offload, margin_fraction=margin_fraction
    )


def on_fewest(scenario: Scenario) -> Scenario:
    """The same question with the fewest chips, a power of two, on which some layout of it fits, where nobody says how
    many there are nor when it must be done."""
    if chips_of(scenario) is not None or scenario.one(TrainingJob).deadline_s is not None:
        return scenario
    job, framework, machine = job_of(scenario), framework_of(scenario), machine_of(scenario)
    options, counts = _options(scenario), [1 << power for power in range(MOST_POWER + 1)]

    def holds(count: int) -> bool:
        cluster = built(machine, count)
        return cluster is not None and search(job, cluster, framework, options=options).num_fitting > 0

    fewest = next((count for count in counts if holds(count)), counts[-1])
    return scenario.having(msgspec.structs.replace(scenario.one(FabricDesign), chips=fewest))


def search_of(scenario: Scenario) -> Callable[[], TrainingPlan]:
    """The search that a scenario asks for, made and not begun."""
    scenario = on_fewest(scenario)
    asked, num_chips = scenario.one(TrainingJob), chips_of(scenario)
    assert asked.num_tokens is not None
    has = laid_out(scenario) if scenario.one(TrainingLayout).file else None
    aim = aim_of(scenario)
    job, framework = job_of(scenario, has, num_chips=num_chips or 0), framework_of(scenario)
    wiring = wiring_of(scenario)
    gone = gone_of(wiring, scenario.catalog, num_chips) if num_chips is not None else None
    machine = lru_cache(maxsize=1)(machine_of(scenario, wiring=gone.wiring if gone is not None else wiring))
    options = _options(scenario)
    if num_chips is not None and gone is not None:
        machine(gone.num_left)  # refuses what cannot be wired; the search begins with it
        on_them = partial(
            plan_on_chips, job, machine, gone.num_left, asked.num_tokens, framework, options=options,
            step_value=aim.step_value,
        )  # fmt: skip
        stranded = num_chips - gone.num_out - gone.num_left

        def planned() -> TrainingPlan:
            plan = msgspec.structs.replace(
                _operated(on_them(), scenario),
                num_asked=num_chips,
                num_out=gone.num_out,
                num_stranded=stranded,
                objective=aim.objective,
            )
            plan = with_cost(plan, scenario)
            if has is None:
                return plan
            return msgspec.structs.replace(plan, present=_present(plan, has, machine(has.num_chips)))

        return planned
    assert asked.deadline_s is not None
    of_any_size(machine)
    dated = Question(
        job=job,
        states_batch=has is not None or asked.global_batch is not None,
        machine=machine,
        num_tokens=asked.num_tokens,
        framework=framework,
        options=options,
        operated=partial(with_goodput, scenario=scenario),
        done_by=partial(done_by, scenario=scenario),
        mended=partial(mended, scenario=scenario),
        aim=aim,
    )
    most_chips = own_chips(scenario.one(FabricDesign), scenario.catalog) or MOST_CHIPS
    by_deadline = partial(plan_by_deadline, dated, asked.deadline_s, most_chips)
    alone = _on_spot_alone(scenario) if aim.is_money else None
    return by_deadline if alone is None else partial(_cheaper, by_deadline, search_of(alone), aim)


def _on_spot_alone(scenario: Scenario) -> Scenario | None:
    """The question where spot is the only way to have the chips, where it is one of several."""
    asked = scenario.one(Purchase)
    ways = set(asked.buy) & set(chip_ways())
    if "spot" not in ways or len(ways) == 1:
        return None
    return scenario.having(msgspec.structs.replace(asked, buy=("spot",)))


def _cheaper(
    planned: Callable[[], TrainingPlan], on_spot: Callable[[], TrainingPlan], aim: Aim
) -> TrainingPlan:
    """The cheaper of two plans: the layouts and numbers of chips that spot needs are those of a run that is preempted,
    and not those of the run beside it."""
    found = planned()
    try:
        other = aim.priced(on_spot())
    except InfeasibleError:
        return found
    return min(found, other, key=aim.key)

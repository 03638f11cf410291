"""Inputs of a training run that change nothing as it is: of its layout, its hosts, what it offloads, its network."""

from __future__ import annotations

from datahall.answers.economics.idle import idle_terms
from datahall.answers.idle import idle_network, said_of_network
from datahall.cluster.gone import without_gone
from datahall.cluster.joined import Joined
from datahall.cluster.wiring import wiring_of
from datahall.counted import counted
from datahall.economics.sections.run import TrainingCost
from datahall.planner.training import idle as of_plan
from datahall.planner.training.plan import TrainingPlan
from datahall.scenario.idle import idle_together
from datahall.scenario.scenario import Scenario
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.pipeline import idle as of_step
from datahall.training.pipeline.execution import Execution


def idle_layout(scenario: Scenario, layout: Layout) -> tuple[str, ...]:
    """Of a layout: a state that is shared with nobody, experts that every chip holds."""
    lines: tuple[str, ...] = ()
    if not Space.of(layout).is_shared[0]:
        lines += idle_together(scenario, ("zero",), "one replica shares its state with nobody")
    if layout.ep == 1:
        lines += idle_together(scenario, ("imbalance",), "every chip holds all experts")
    if layout.cp == 1:
        lines += idle_together(scenario, ("context_exchange",), "no chips share a sequence")
    return lines


def idle_stragglers(scenario: Scenario, run: Execution) -> tuple[str, ...]:
    """That a share of the hosts is slow which makes none of them so."""
    if run.num_slow_hosts:
        return ()
    hosts = counted(run.num_hosts, "host")
    return idle_together(scenario, ("slow_hosts", "slow_by"), f"that share of {hosts} is none")


def idle_money(scenario: Scenario, plan: TrainingPlan) -> tuple[str, ...]:
    """Terms of ways to have the chips that nobody prices; staff is of those who own."""
    cost = plan.section(TrainingCost)
    return () if cost is None else idle_terms(scenario, cost.chip, cost.unpriced, ("staff",))


def idle_offload(scenario: Scenario, plan: TrainingPlan) -> tuple[str, ...]:
    """That nothing is offloaded, where it might have been."""
    if plan.layout.offload:
        return ()
    return idle_together(scenario, ("offload",), "all fits on the chips, and is faster there")


def network_of_step(scenario: Scenario, run: Execution) -> tuple[str, ...]:
    """Of the network under a step that was simulated."""
    return idle_network(
        scenario,
        [Joined(run.cluster.chip, run.cluster.system, run.layout.num_chips)],
        lambda: of_step.idle_inputs(run, wiring_of(scenario), scenario.catalog, seed=scenario.root.seed),
    )


def network_of_plan(scenario: Scenario, plan: TrainingPlan) -> tuple[str, ...]:
    """Of the network under the layout that was chosen; chips that have failed are left out of it."""
    return idle_network(
        scenario,
        [Joined(plan.cluster.chip, plan.cluster.system, plan.layout.num_chips)],
        lambda: of_plan.idle_inputs(plan, without_gone(wiring_of(scenario)), scenario.catalog),
        searched=True,
        felt=("failure",) if plan.num_out else (),
    )


def network_of_memory(scenario: Scenario) -> tuple[str, ...]:
    """Of any network under chips whose memory is asked for."""
    why = "what a chip holds does not depend on the network"
    return idle_together(scenario, said_of_network(scenario), why)


def idle_sites(scenario: Scenario, why: str) -> tuple[str, ...]:
    """Of several sites, where a run cannot be spread over them."""
    return idle_together(scenario, ("sites", "wan", "round_trip", "local_steps"), why) if why else ()


def idle_provider(scenario: Scenario, chip: str) -> tuple[str, ...]:
    """Of whom chips are rented from, where nobody rents them out."""
    return idle_together(scenario, ("provider",), f"nobody rents out {chip}")

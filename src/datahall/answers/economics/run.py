"""What a training run costs: rented, written off while it runs, bought; in four scopes; beside what was published."""

from __future__ import annotations

from datahall.answer import Answer, Cell, Column, Table
from datahall.answers.economics.tables import capex_table, hour_table, scopes_table
from datahall.answers.follow import follow
from datahall.breakdown import Breakdown
from datahall.catalog.entries.model import Model
from datahall.economics.run import AMORTISED, OPERATED, RENTAL, UPFRONT, RunCost, accounted
from datahall.economics.scopes import scopes
from datahall.errors import option
from datahall.planner.buying.run import BoughtRun, as_trained, bought_run
from datahall.reliability.closed_form import expected
from datahall.scenario.kinds import Plain, whole_or_float
from datahall.scenario.scenario import Scenario, model_of
from datahall.scenario.sections.money.purchase import Purchase
from datahall.scenario.sections.training import TrainingJob
from datahall.units import fmt

WORDS = {
    RENTAL: "what a bill says",
    AMORTISED: "what hardware loses while it runs, and energy",
    UPFRONT: "what has to be raised before anything runs",
    OPERATED: "all that owning takes: space, repair, idle hours too",
}


def run_cost(scenario: Scenario) -> Answer:
    """A training run by three accountings, side by side."""
    found = bought_run(scenario)
    cost, model = found.cost, model_of(scenario.one(Purchase).priced, scenario.catalog)
    figure = _figure(scenario, cost)
    return Answer(
        kind="cost of a training run",
        inputs=_inputs(scenario, found),
        verdict="no" if figure is None else "yes",
        headline=_headline(model, found, figure),
        binding=_binding(cost),
        results=_results(found, figure),
        tables=(
            _accountings(cost),
            *(_owned_tables(scenario, cost)),
        ),
        figure=figure,
        notes=tuple(_notes(scenario, found)),
        next_commands=_next(scenario, found),
    )


def _inputs(scenario: Scenario, found: BoughtRun) -> dict[str, Cell]:
    job = as_trained(scenario).one(TrainingJob)
    inputs: dict[str, Cell] = {
        "chips": found.cost.num_chips, "chip": found.chip.name, "num_tokens": found.cost.num_tokens,
    }  # fmt: skip
    if found.run is not None:
        inputs |= {"seq": found.run.job.setup.job.seq, "global_batch": found.run.job.setup.job.global_batch}
        inputs["precision"] = job.precision or found.run.job.setup.precision
    return inputs


def _figure(scenario: Scenario, cost: RunCost) -> Breakdown | None:
    """Renting, or owning where that is asked for; the other where the one is not priced."""
    both = (cost.operated, cost.rental) if scenario.one(Purchase).own else (cost.rental, cost.operated)
    return next((one for one in both if one is not None), None)


def _headline(model: Model, found: BoughtRun, figure: Breakdown | None) -> str:
    cost, title = found.cost, model.title or model.name
    what = f"{title} on {cost.num_chips:,} × {found.chip.title}"
    if figure is None:
        return f"No: {what} is not priced; say {option('price')} or {option('capex')}."
    said = [
        f"{fmt(one.value, 'usd')} {words}"
        for one, words in (
            (cost.rental, "to rent"), (cost.amortised, "in hardware worn and energy"),
            (cost.upfront, "to buy outright"),
        )
        if one is not None
    ]  # fmt: skip
    days = fmt(cost.wall_s, "s", 3)
    if len(said) == 1:
        return f"{what}, {days}: {said[0]}; other accountings are not priced."
    return f"{what}, {days}: {', '.join(said[:-1])}, {said[-1]}."


def _binding(cost: RunCost) -> str:
    ratio = cost.rental_over_amortised_ratio
    if ratio is None:
        return ""
    return (
        f"Renting is {fmt(ratio, 'ratio')} of what hardware and energy cost while it runs: "
        f"{fmt(cost.chip_hours.value, 'count')} chip-hours."
    )


def _results(found: BoughtRun, figure: Breakdown | None) -> dict[str, Cell]:
    cost = found.cost
    results: dict[str, Cell] = {
        "chip_hours": cost.chip_hours.value,
        "wall_s": cost.wall_s,
        "num_days": cost.num_days,
    }
    if figure is not None:
        results["cost_usd"] = figure.value
    for row in accounted(cost):
        results[f"{row.name}_usd"] = row.cost_usd
        if row.published_usd is not None:
            results[f"published_{row.name}_usd"] = row.published_usd
            results[f"{row.name}_difference_fraction"] = row.difference_fraction
    if cost.rental_over_amortised_ratio is not None:
        results["rental_over_amortised_ratio"] = cost.rental_over_amortised_ratio
    if cost.published is not None:
        results["published_chip_hours"] = cost.published.num_chip_hours
    if found.run is not None:
        results |= {
            "step_s": found.run.step_s,
            "mfu_fraction": found.run.job.mfu_fraction,
            "ettr_fraction": expected(found.run).ettr,
            "layout": found.run.job.layout.words,
        }
    return results


def _accountings(cost: RunCost) -> Table:
    rows = tuple(
        (
            row.name, row.cost_usd, row.chip_usd_per_hour, row.token_usd_per_mtok, row.published_usd,
            row.difference_fraction, WORDS[row.name] if row.cost_usd is not None else "not priced",
        )
        for row in accounted(cost)
    )  # fmt: skip
    return Table(
        title="one run by three accountings, and by all that owning takes",
        columns=(
            Column("accounting"), Column("cost", "usd"), Column("chip-hour", "usd_per_hour"),
            Column("trained token", "usd_per_mtok"), Column("published", "usd"), Column("difference", "fraction"),
            Column("which is"),
        ),
        rows=rows,
        marked=0 if cost.rental is not None else None,
        note="published as others count it, in dollars of their time; the last row has all that owning takes",
    )  # fmt: skip


def _owned_tables(scenario: Scenario, cost: RunCost) -> tuple[Table, ...]:
    if cost.owned is None:
        return ()
    found = scopes(cost.owned, scenario.catalog)
    return (
        scopes_table(found, cost.chip_hours.value, "usd"),
        hour_table(cost.owned),
        capex_table(cost.owned),
    )


def _notes(scenario: Scenario, found: BoughtRun) -> list[str]:
    cost, lines = found.cost, []
    if cost.published is not None and found.run is None and not scenario.given("chip_hours"):
        lines.append(
            f"chip-hours as published; {option('predict')} lays the run out and counts those it would take"
        )
    if found.run is not None:
        run = found.run
        lines.append(
            f"{run.job.layout.words}: {fmt(run.job.mfu_fraction, 'fraction', 3)} of the peak, and "
            f"{fmt(expected(run).ettr, 'fraction', 3)} of the time moves it forward"
        )
        if cost.published is not None and cost.over_published_ratio is not None:
            lines.append(
                f"published: {fmt(cost.published.num_chip_hours, 'count')} chip-hours, "
                f"{fmt(cost.over_published_ratio, 'ratio')} of which this takes"
            )
    if found.is_as_published:
        lines.append(
            f"hardware and rent at the prices of its time; {option('price')}, {option('provider')} and "
            f"{option('capex')} say others"
        )
    if cost.owned is None:
        lines.append("owning is not priced: nobody sells the chip, or nobody published what it draws")
    elif not scenario.given("staff"):
        lines.append(f"staff is the published share of developing a model, unless {option('staff')} says it")
    lines.append("experiments, failed runs and data are no part of a run")
    return lines


def _next(scenario: Scenario, found: BoughtRun) -> tuple[str, ...]:
    commands = []
    if found.cost.owned is not None and not scenario.one(Purchase).own:
        commands.append(follow(scenario, changes={"own": True}))
    if found.run is None and found.cost.published is not None and not scenario.given("chip_hours"):
        commands.append(follow(scenario, changes={"predict": True}))
    asked = as_trained(scenario)
    model: dict[str, Plain | None] = {"model": scenario.one(Purchase).priced, "chips": found.cost.num_chips}
    tokens = asked.one(TrainingJob).num_tokens
    if tokens is not None:
        run = {
            **model,
            "chip": found.chip.name,
            "tokens": whole_or_float(tokens),
            "global_batch": asked.one(TrainingJob).global_batch,
        }
        commands.append(follow(scenario, "simulate run", run))
    return tuple(commands)

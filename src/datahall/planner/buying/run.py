"""A training run that is laid out, and what it costs: its chip-hours from the model, its prices from the catalogue.

    chip-hours = chips · steps · step / ETTR

What nobody says of a run that was published is as it was: its chips, its tokens, what its hardware cost then.
"""

from __future__ import annotations

from math import isnan
from typing import NamedTuple

import msgspec

from datahall.breakdown import Breakdown, derived, fact, given, modelled, product, quotient, simulated
from datahall.catalog.entries.bought.training_run import TrainingRun
from datahall.catalog.entries.chip import Chip
from datahall.counted import counted
from datahall.economics.capex import Capex, bought_then, capex_of
from datahall.economics.market import day_of, market_of
from datahall.economics.own import Owned, owned_hour, place_of, terms_of
from datahall.economics.run import RunCost, span_years
from datahall.economics.supply.places import says_where
from datahall.errors import ScenarioError, option
from datahall.planner.training.laid.job import laid_job
from datahall.reliability.closed_form import expected
from datahall.reliability.run import Run, run_of
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign, no_chips
from datahall.scenario.sections.money.ownership import Ownership
from datahall.scenario.sections.money.purchase import Purchase
from datahall.scenario.sections.operations.site import Site
from datahall.scenario.sections.root import Root
from datahall.scenario.sections.training import TrainingJob
from datahall.scenario.usual import USUAL_CHIP
from datahall.units import HOUR_S

LAID_OUT_BY = ("seq", "global_batch", "precision")  # inputs that make another run of it


class BoughtRun(NamedTuple):
    """A run with its cost, and how it was laid out where that was looked for."""

    cost: RunCost
    chip: Chip
    run: Run | None  # None: its chip-hours were said
    is_as_published: bool  # bought at the prices of its time


def as_trained(scenario: Scenario) -> Scenario:
    """The question as one about training the model: what nobody says is as it was in the run that was published."""
    published = published_run(scenario)
    job, design = scenario.one(TrainingJob), scenario.one(FabricDesign)
    if published is not None:
        precision = job.precision or published.precision or None
        job = msgspec.structs.replace(
            job,
            num_tokens=job.num_tokens or published.num_tokens,
            seq=job.seq or published.num_seq,
            global_batch=job.global_batch or published.num_batch,
            precision=precision,
        )
        nic = None if isnan(published.nic_bytes_per_s) else published.nic_bytes_per_s
        same = design.chip in ("", published.chip)
        design = msgspec.structs.replace(
            design,
            chip=design.chip or published.chip,
            chips=design.chips or published.num_chips,
            nic_bytes_per_s=design.nic_bytes_per_s or (nic if same else None),
        )
    return scenario.having(Root(model=scenario.one(Purchase).priced, seed=scenario.root.seed), job, design)


def published_run(scenario: Scenario) -> TrainingRun | None:
    """The run of the model that somebody published."""
    name = scenario.one(Purchase).priced
    return next((run for run in scenario.catalog.training_runs() if run.model == name), None)


def check_bought(asked: Scenario) -> None:
    """Refuse a run of which neither tokens nor chips are known."""
    if asked.one(FabricDesign).chips is None:
        raise no_chips()
    if asked.one(TrainingJob).num_tokens is None:
        raise ScenarioError(
            f"{option('tokens')} is missing", field="tokens", hint=f"e.g. {option('tokens', '2T')}"
        )


def bought_run(scenario: Scenario) -> BoughtRun:
    """What a run costs by three accountings."""
    asked, bought, owning = as_trained(scenario), scenario.one(Purchase), scenario.one(Ownership)
    check_bought(asked)
    design, job = asked.one(FabricDesign), asked.one(TrainingJob)
    assert design.chips is not None
    assert job.num_tokens is not None
    chip, catalog = scenario.catalog.chip(design.chip or USUAL_CHIP), scenario.catalog
    published = published_run(scenario)
    then = (
        published if published is not None and catalog.name_of("chip", published.chip) == chip.name else None
    )
    same = then if _is_same_run(scenario, asked, then) else None
    known = _known_hours(bought, same)
    run = run_of(asked, laid_job(asked)) if known is None else None
    hours = known or hours_of(run, job.num_tokens, design.chips)
    rent = _rent(scenario, chip, then)
    capex = _capex(scenario, chip, design.chips, then)
    owned = _owned(scenario, chip, design.chips, capex, then, hours.value)
    return BoughtRun(
        cost=RunCost(
            chip_hours=hours, num_chips=design.chips, num_tokens=job.num_tokens, rent=rent, owned=owned, capex=capex,
            published=same,
        ),
        chip=chip,
        run=run,
        is_as_published=then is not None and owning.capex_usd is None and not _is_of_a_market(bought),
    )  # fmt: skip


def _known_hours(bought: Purchase, same: TrainingRun | None) -> Breakdown | None:
    """The chip-hours that were said or published; None where the run is to be laid out."""
    if bought.chip_hours is not None:
        return given("chip-hours", bought.chip_hours, "count", field="chip_hours")
    if same is None or bought.predict:
        return None
    known = same.facts["num_chip_hours"]
    return fact("chip-hours", known.value, "count", known.source, note=known.note).unless_said("chip_hours")


def hours_of(run: Run | None, num_tokens: float, num_chips: int) -> Breakdown:
    """Hours of all chips together: steps, and what failures add to them."""
    assert run is not None
    steps = derived("steps", run.job.setup.job.num_steps(num_tokens), "count", "whole batches of all tokens")
    step = simulated(
        "step", run.step_s, "s", f"{run.job.layout.words} on {counted(run.job.num_chips, 'chip')}"
    )
    working = product("time of all steps", (steps, step), "s")
    nodes = derived("nodes", run.job.num_nodes, "count")
    kept = modelled(
        "time that moves it forward", expected(run).ettr, "fraction", "renewal, with checkpoints", nodes
    )
    elapsed = quotient("from the first step to the last", working, kept, "s")
    hours = quotient("hours", elapsed, derived("an hour", HOUR_S, "s"), "count")
    return product("chip-hours", (derived("chips", num_chips, "count"), hours), "count")


def _is_same_run(scenario: Scenario, asked: Scenario, then: TrainingRun | None) -> bool:
    """Whether it is the published run itself that is asked about: as many tokens on as many chips, laid out alike."""
    if then is None or any(scenario.given(name) for name in LAID_OUT_BY):
        return False
    design, job = asked.one(FabricDesign), asked.one(TrainingJob)
    return design.chips == then.num_chips and job.num_tokens == then.num_tokens


def _rent(scenario: Scenario, chip: Chip, then: TrainingRun | None) -> Breakdown | None:
    """Rent of a chip-hour: as said, as it was when the run was, or of the market."""
    asked = scenario.one(Purchase)
    free = asked.price_usd_per_hour is None and not _is_of_a_market(asked)
    if free and then is not None and not isnan(then.rent_usd_per_hour):
        known = then.facts["rent_usd_per_hour"]
        return fact(
            "rent when it ran", known.value, "usd_per_hour", known.source, note=known.note
        ).unless_said("price")
    return market_of(chip.name, "on-demand", asked, scenario.catalog).price


def _is_of_a_market(asked: Purchase) -> bool:
    """Whether somebody says from whom, or where, and so asks for a price of now."""
    return bool(asked.providers) or says_where(asked)


def _capex(scenario: Scenario, chip: Chip, num_chips: int, then: TrainingRun | None) -> Capex | None:
    said = scenario.one(Ownership).capex_usd
    if said is None and then is not None and not isnan(then.server_usd):
        known = then.facts["server_usd"]
        server = fact("server", known.value, "usd", known.source, note=known.note)
        return bought_then(server, chip, num_chips, scenario.catalog)
    day = day_of(scenario.one(Purchase), scenario.catalog)
    return capex_of(chip, num_chips, scenario.catalog, said, day)


def _owned(
    scenario: Scenario,
    chip: Chip,
    num_chips: int,
    capex: Capex | None,
    then: TrainingRun | None,
    hours: float,
) -> Owned | None:
    """An hour of the hardware while it runs; of a run that was published by what the market took off it then."""
    asked, catalog = scenario.one(Ownership), scenario.catalog
    place = place_of(chip, num_chips, asked, scenario.one(Site), catalog)
    if capex is None or place is None:
        return None
    as_then = then is not None and asked.capex_usd is None
    age_s = then.age_s if then is not None and as_then else 0.0
    terms = terms_of(asked, catalog, age_s=age_s, by_market=as_then)
    return owned_hour(chip, num_chips, capex, terms, place, catalog, span_years=span_years(hours, num_chips))

"""A question of cost as it is asked, refused before anything heavy is loaded."""

from __future__ import annotations

from datahall.economics.supply.places import regions_of
from datahall.errors import ScenarioError, option
from datahall.scenario.buying import BUYING_ROWS, Use, chip_ways, terms
from datahall.scenario.idle import does_nothing
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.ownership import Ownership
from datahall.scenario.sections.money.purchase import Purchase
from datahall.scenario.words import Buying

OF_A_RUN = ("tokens", "seq", "global_batch", "precision", "predict", "chip_hours", "chip")
OF_A_CHIP = (*BUYING_ROWS["spot"].terms, "restart", "blocking")


def is_chip(scenario: Scenario) -> bool:
    """Whether it is a chip that is asked about, and not the training of a model."""
    return scenario.catalog.knows("chip", scenario.one(Purchase).priced)


def check_cost(scenario: Scenario) -> None:
    """Refuse what says nothing of a chip, or of a run."""
    check_places(scenario)
    of_chip = is_chip(scenario)
    for name in OF_A_RUN if of_chip else OF_A_CHIP:
        if scenario.given(name):
            why = "it is of a run, and a chip is asked about" if of_chip else "the rent of a run is on demand"
            raise ScenarioError(
                does_nothing(name, why),
                field=name,
                hint=f"leave {option(name)} out, or ask about a {_other(of_chip)}",
            )
    asked = scenario.one(Ownership)
    published = {run.model for run in scenario.catalog.training_runs()}
    if scenario.one(Purchase).predict and scenario.one(Purchase).priced not in published:
        raise ScenarioError(
            does_nothing("predict", "nobody published its chip-hours, and it is laid out anyway"),
            field="predict",
            hint=f"leave {option('predict')} out",
        )
    if not of_chip and asked.depreciation == "market" and asked.life_s is not None:
        raise ScenarioError(
            does_nothing(
                "life", f"with {option('depreciation', 'market')} hardware loses value while the run lasts"
            ),
            field="life",
            hint=option("depreciation", "annuity"),
        )
    if of_chip:
        _check_age(asked)


def check_places(scenario: Scenario) -> None:
    """Refuse regions and countries that leave no region at all."""
    asked, catalog = scenario.one(Purchase), scenario.catalog
    if not asked.residency or regions_of(asked, catalog):
        return
    countries = ", ".join(catalog.country(name).title for name in asked.residency)
    known = sorted({one.country for one in catalog.regions()})
    if asked.regions:
        raise ScenarioError(
            f"none of {', '.join(asked.regions)} is in {countries}",
            field="residency",
            hint=f"leave {option('regions')} out, or {option('residency', catalog.region(asked.regions[0]).country)}",
        )
    raise ScenarioError(
        f"no region that is known is in {countries}",
        field="residency",
        hint=f"they are in {', '.join(known)}",
    )


def check_buying(scenario: Scenario, use: Use) -> None:
    """Refuse ways that leave no chips to buy, and terms of ways that are not weighed."""
    check_places(scenario)
    ways = scenario.one(Purchase).buy
    if not set(ways) & set(chip_ways()):
        raise ScenarioError(
            f"{option('buy', 'api')} leaves nothing to build",
            field="buy",
            hint=f"an API stands beside chips; {option('buy', 'rent,own,api')}",
        )
    for name, needs in terms(use).items():
        if scenario.given(name) and not set(needs) & set(ways):
            raise _unweighed(name, needs[0], ways)
    _check_age(scenario.one(Ownership))


def _unweighed(name: str, way: Buying, ways: tuple[Buying, ...]) -> ScenarioError:
    """An input about a way to buy that is not weighed."""
    return ScenarioError(
        does_nothing(name, f"{BUYING_ROWS[way].called} is not weighed"),
        field=name,
        hint=option("buy", ",".join((*ways, way))),
    )


def _check_age(asked: Ownership) -> None:
    """Refuse an age of what is paid evenly, as anything is but a run that was published."""
    for error in asked.ageless("annuity"):
        raise error


def _other(of_chip: bool) -> str:
    return "model" if of_chip else "chip"

"""Words of what a plan says of money: of a service by the month, of a training run as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datahall.answer import Cell, Quantity
from datahall.answers.section import Row, Words
from datahall.units import fmt

if TYPE_CHECKING:
    from datahall.breakdown import Breakdown
    from datahall.economics.sections.run import TrainingCost
    from datahall.economics.sections.service import ServiceCost
    from datahall.economics.service import Bought
    from datahall.economics.ways import Way


def _dollars(figure: Breakdown) -> Quantity:
    return Quantity(figure.value, figure.unit)


def _hourly(way: Way) -> str:
    price = fmt(way.usd_per_hour, "usd_per_hour")
    return f"a chip at {price}{f', price of {way.dated}' if way.date else ''}{without(way)}"


def without(way: Way) -> str:
    """What the price of hardware that is owned leaves out."""
    missing = way.owned.capex.missing if way.owned is not None else ()
    return f" without {' and '.join(missing)}" if missing else ""


def _unpriced(what: str, ways: tuple[Way, ...]) -> tuple[Row, ...]:
    return tuple((f"{what}, {way.name}", None, f"not priced: {way.why_not}") for way in ways)


def _service(cost: ServiceCost) -> tuple[Row, ...]:
    rows: list[Row] = [(one.month.name, _dollars(one.month), _month(one)) for one in cost.bought]
    rows += _unpriced("a month", cost.unpriced)
    if cost.all_in is not None and cost.costs is not None:
        kinds = (
            f"input {fmt(cost.costs.input.value, 'usd_per_mtok')}, output "
            f"{fmt(cost.costs.output.value, 'usd_per_mtok')}, mixed {fmt(cost.costs.blended.value, 'usd_per_mtok')} "
            "before overheads"
        )
        rows.append((cost.all_in.name, _dollars(cost.all_in), kinds))
    if cost.api is not None and cost.api_month is not None:
        price = cost.api.price
        what = (
            f"{price.name}, {fmt(cost.api.blended.value, 'usd_per_mtok')}, list price of {price.source.date}"
        )
        rows.append((cost.api_month.name, _dollars(cost.api_month), what))
    elif cost.asks_api:
        rows.append(("a month by an API", None, "not priced: nobody hosts the model"))
    return tuple(rows)


def _month(one: Bought) -> str:
    staff = f", staff {fmt(one.own.fixed.value, 'usd')}" if one.own.fixed is not None else ""
    return f"{_hourly(one.way)}; with overheads{staff}"


def _service_results(cost: ServiceCost) -> dict[str, Cell]:
    results: dict[str, Cell] = {"month_tokens": cost.tokens}
    had = cost.had
    if had is not None and cost.costs is not None and cost.all_in is not None:
        results |= {
            "way": had.way.name,
            "chip_usd_per_hour": had.way.usd_per_hour,
            "month_usd": had.month.value,
            **{f"{one.way.buying}_month_usd": one.month.value for one in reversed(cost.bought)},
            "input_usd_per_mtok": cost.costs.input.value,
            "output_usd_per_mtok": cost.costs.output.value,
            "mixed_usd_per_mtok": cost.costs.blended.value,
            "all_in_usd_per_mtok": cost.all_in.value,
        }
    if cost.api is not None and cost.api_month is not None:
        results |= {
            "api": cost.api.price.name,
            "api_usd_per_mtok": cost.api.blended.value,
            "api_month_usd": cost.api_month.value,
        }
    if cost.own_over_api_ratio is not None:
        results["own_over_api_ratio"] = cost.own_over_api_ratio
    return results


def _service_note(cost: ServiceCost) -> str:
    peak = fmt(cost.peak_ratio, "ratio")
    return f"tokens of a month whose mean is the load over {peak}: {fmt(cost.tokens, 'tokens')}"


SERVICE_COST = Words(_service, _service_results, _service_note)


def _run(cost: TrainingCost) -> tuple[Row, ...]:
    rows: list[Row] = [
        (
            one.cost.name,
            _dollars(one.cost),
            f"{fmt(one.chip_hours.value, 'count', 3)} chip-hours, {_hourly(one.way)}",
        )
        for one in cost.paid
    ]
    rows += _unpriced("cost of the run", cost.unpriced)
    if cost.upfront is not None:
        rows.append((cost.upfront.name, _dollars(cost.upfront), "to buy outright, whatever runs on it later"))
    return tuple(rows)


def _run_results(cost: TrainingCost) -> dict[str, Cell]:
    results: dict[str, Cell] = {"chip_hours": cost.chip_hours.value}
    if cost.had is not None:
        results |= {
            "cost_usd": cost.had.cost.value,
            "way": cost.had.way.name,
            "chip_usd_per_hour": cost.had.way.usd_per_hour,
            **{f"{one.way.buying}_usd": one.cost.value for one in reversed(cost.paid)},
        }
    if cost.upfront is not None:
        results["upfront_usd"] = cost.upfront.value
    return results


RUN_COST = Words(_run, _run_results)

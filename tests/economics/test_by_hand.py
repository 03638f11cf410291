"""What owning, renting, spot and a run cost, each worked by hand from round numbers."""

from __future__ import annotations

import datetime
from math import exp
from pathlib import Path

import pytest
from tests.economics.priced import CATALOG, CHIP, asked, dollars, hourly, owned, part

import datahall as dh
from datahall.breakdown import derived, given
from datahall.catalog import Catalog
from datahall.economics.break_even import Dedicated, break_even, point
from datahall.economics.capex import HALL_CHIPS, NETWORK_PART, capex_of
from datahall.economics.chip import ChipCost, chip_cost_of
from datahall.economics.market import market_of
from datahall.economics.own import CAPITAL, ENERGY, REPAIR, STAFF, place_of, spare_ratio, terms_of
from datahall.economics.run import AMORTISED, OPERATED, RENTAL, UPFRONT, RunCost, accounted
from datahall.economics.scopes import scopes
from datahall.economics.service import with_overheads
from datahall.economics.spot import effective_price, spot_ettr
from datahall.economics.ways import cheapest, not_priced, owned_way, ways_of
from datahall.errors import ScenarioError
from datahall.scenario.buying import BUYING_ROWS
from datahall.scenario.sections.money.ownership import Overheads, Ownership
from datahall.scenario.sections.money.purchase import Purchase
from datahall.scenario.sections.operations.checkpoint import Checkpointing
from datahall.scenario.sections.operations.run import Recovering
from datahall.scenario.sections.operations.site import Site

SIX_HOURS_S = 21_600.0
YEAR_H = 8766.0


# --- owning


def test_repair_is_a_share_of_the_price_a_year() -> None:
    """5 % of $40,000 over 8,766 hours: $0.2282 an hour."""
    assert part(owned(repair_fraction=0.05), REPAIR) == pytest.approx(40_000 * 0.05 / YEAR_H)


def test_staff_is_shared_by_all_chips() -> None:
    """$73,050 over 730.5 hours are $100 an hour, $1.5625 for each of 64 chips."""
    assert part(owned(64, staff_usd_per_month=73_050.0), STAFF) == pytest.approx(100 / 64)


def test_energy_is_what_is_drawn_of_the_nameplate() -> None:
    """At $0.10 a kWh a kilowatt of the site's nameplate costs 10 cents an hour, times the share that is drawn."""
    price = 0.10 / 3.6e6
    place = place_of(CHIP, 64, Ownership(energy_usd_per_j=price), Site(), CATALOG)
    assert place is not None
    drawn = CATALOG.owner(Ownership().owner).facts["drawn_fraction"].value
    assert part(owned(energy_usd_per_j=price), ENERGY) == pytest.approx(
        place.site.value / 1000 * 0.10 * drawn
    )


def test_hours_that_nobody_uses_are_paid_by_those_that_somebody_does() -> None:
    assert owned(used_fraction=0.5).hour.value == pytest.approx(2 * owned().parts.value)


def test_capital_without_interest_is_the_price_over_the_hours_of_its_life() -> None:
    """$40,000 with its spares over 5 years."""
    found = owned(64, interest_fraction=0.0, residual_fraction=0.0, life_s=5 * YEAR_H * 3600)
    assert part(found, CAPITAL) == pytest.approx(40_000 * spare_ratio(CHIP, 64, CATALOG).value / (5 * YEAR_H))


def test_what_the_market_takes_off_is_taken_over_the_span() -> None:
    """Two years: 1 − (1 − d)² of the price over the hours of two years."""
    lost = CATALOG.share("value-lost").fact.value
    found = owned(64, span_years=2.0, depreciation="market")
    spent = 40_000 * spare_ratio(CHIP, 64, CATALOG).value * (1 - (1 - lost) ** 2)
    assert part(found, CAPITAL) == pytest.approx(spent / (2 * YEAR_H))


def test_nine_chips_are_bought_in_two_servers_and_a_few_more_for_repair() -> None:
    ratio = spare_ratio(CHIP, 9, CATALOG)
    assert ratio.at("in whole servers").value == pytest.approx(16 / 9)
    assert 16 / 9 < ratio.value < 16 / 9 * 1.05


@pytest.mark.parametrize("said", [{"interest_fraction": 0.08}, {"residual_fraction": 0.1}, {"life_s": 1e8}])
def test_terms_of_an_annuity_stand_before_the_market(said: dict[str, float]) -> None:
    assert terms_of(Ownership(), CATALOG, by_market=True).by_market
    assert not terms_of(Ownership(**said), CATALOG, by_market=True).by_market  # type: ignore[arg-type]


def test_hardware_is_as_old_as_is_said_and_else_as_it_was() -> None:
    assert terms_of(Ownership(), CATALOG, age_s=5.0).age_s == 5.0
    assert terms_of(Ownership(age_s=0.0), CATALOG, age_s=5.0).age_s == 0.0


@pytest.mark.parametrize("num_chips", [8, 1024, 100_000])
def test_no_part_of_a_price_is_negative(num_chips: int) -> None:
    found = capex_of(CHIP, num_chips, CATALOG)
    assert found is not None
    assert all(one.value >= 0 for one in found.parts)


@pytest.mark.parametrize("chip", ["h100-sxm", "b200-sxm"])
def test_one_server_needs_no_network(chip: str) -> None:
    one, two = (capex_of(CATALOG.chip(chip), num, CATALOG) for num in (8, 16))
    assert one is not None
    assert two is not None
    assert NETWORK_PART not in {part.name for part in one.parts}
    assert NETWORK_PART in {part.name for part in two.parts}


def test_eight_halls_of_chips_draw_for_each_what_one_hall_does() -> None:
    """One network is of a hall of 131,072 chips at most: eight of them take as much for each chip."""
    one, eight = (place_of(CHIP, num, Ownership(), Site(), CATALOG) for num in (HALL_CHIPS, 8 * HALL_CHIPS))
    assert one is not None
    assert eight is not None
    assert eight.it.value == pytest.approx(one.it.value)


def test_the_newest_price_to_buy_is_taken_that_is_not_of_used_ones(tmp_path: Path) -> None:
    offers = (
        f'[offer.{name}]\nprovider = "p"\nchip = "trainium3"\nkind = "purchase"\npurchase = "{usd} USD"\n'
        f'note = "{note}"\nsource = {{ title = "a quote", date = "{date}", kind = "datasheet" }}\n'
        for name, usd, date, note in (
            ("old", 40_000, "2025-05-01", ""),
            ("new", 30_000, "2026-01-01", ""),
            ("used", 20_000, "2026-08-01", "used"),
        )
    )
    (tmp_path / "mine.toml").write_text("".join(offers))
    catalog = Catalog([tmp_path], user=False)
    found = capex_of(catalog.chip("trainium3"), 8, catalog)
    assert found is not None
    assert (found.chip.value, found.date) == (30_000.0, "2026-01-01")
    before = capex_of(catalog.chip("trainium3"), 8, catalog, day=datetime.date(2025, 12, 31))
    assert before is not None
    assert (before.chip.value, before.date) == (40_000.0, "2025-05-01")


@pytest.mark.parametrize(
    ("as_of", "dated"),
    [
        ("2025-07-31", "2023-05"),
        ("2026-01-28", "2025-08"),
        ("2026-01-29", "2025-08, stale"),
        ("2023-01-01", None),
    ],
)
def test_hardware_costs_what_was_known_on_a_day_and_is_stale_after_half_a_year(
    as_of: str, dated: str | None
) -> None:
    """An H100 of 2023-05 and a server of 2025-08: 180 days after 1 August are the 28th of January."""
    scenario = asked("show cost", priced="h100-sxm", as_of=as_of)
    way = owned_way(scenario, CHIP, 64)
    assert way.is_priced is ("2025-08" in (dated or ""))
    assert (way.dated or None) == (f"{dated}, stale" if dated == "2023-05" else dated)
    if dated is None:
        assert way.hour is None
        assert as_of in way.why_not


def test_staff_that_nobody_says_is_its_share_of_all() -> None:
    rows, share = scopes(owned(), CATALOG), CATALOG.share("staff").fact.value
    assert rows[-1].figure.value == pytest.approx(rows[-2].figure.value / (1 - share))
    assert rows[-1].over(100.0) == pytest.approx(100 * rows[-1].figure.value)


def test_staff_that_is_said_is_added_once() -> None:
    rows = scopes(owned(64, staff_usd_per_month=73_050.0), CATALOG)
    assert rows[-1].figure.value - rows[-2].figure.value == pytest.approx(100 / 64)


# --- renting


def test_an_even_number_of_offers_has_the_mean_of_both_in_the_middle(tmp_path: Path) -> None:
    offers = (
        f'[offer.m{usd}]\nprovider = "p{usd}"\nchip = "trainium3"\nprice = "{usd} USD/h"\n'
        f'source = {{ title = "a quote", date = "2026-08-0{usd}", kind = "datasheet" }}\n'
        for usd in (2, 4)
    )
    (tmp_path / "mine.toml").write_text("".join(offers))
    market = market_of("trainium3", "on-demand", Purchase(), Catalog([tmp_path], user=False))
    assert market.price is not None
    assert market.price.value == 3.0
    assert (market.span, market.date) == ((2.0, 4.0), "2026-08-04")


def test_why_nothing_counts_is_counted() -> None:
    market = market_of("h100-sxm", "on-demand", Purchase(providers=("gcp",)), CATALOG)
    assert market.why_not.startswith(f"of {len(market.listings)} price")
    assert market.why_not.endswith("none counts: host billed apart")
    assert market.span is None


def test_many_chips_for_a_day_and_a_month() -> None:
    """10 chips at $2: $20 an hour, $480 a day, $14,610 in 730.5 hours."""
    found = chip_cost_of(asked("show cost", priced="h100-sxm", chips=10, price=2.0))
    assert (found.all_usd_per_hour, found.day_usd) == pytest.approx((20.0, 480.0))
    assert found.month_usd == pytest.approx(14_610.0)


def test_owned_over_rented() -> None:
    found: ChipCost = chip_cost_of(asked("show cost", priced="h100-sxm", chips=1024, price=4.0))
    assert found.owned_over_rented_ratio == pytest.approx(found.owned.usd_per_hour / 4.0)
    assert found.apart_fraction == pytest.approx(abs(1 - found.owned.usd_per_hour / 4.0))
    assert found.lead is found.rented
    assert chip_cost_of(asked("show cost", priced="h100-sxm", own=True)).lead is not found.rented


def test_a_chip_that_nobody_rents_out_is_led_by_what_is_priced() -> None:
    found = chip_cost_of(asked("show cost", priced="gb200"))
    assert found.rented.hour is None
    assert found.lead is found.owned
    assert found.owned_over_rented_ratio is None
    assert found.apart_fraction is None


def test_ways_that_are_allowed_come_cheapest_first_and_what_is_not_priced_last() -> None:
    scenario = asked("show cost", priced="h100-sxm", price=2.0, spot_price=3.0)
    ways = ways_of(scenario, CHIP, 64, trains=False, buy=("rent", "reserved", "spot", "own"))
    priced = [one.usd_per_hour for one in ways if one.is_priced]
    assert priced == sorted(priced)
    assert [one.is_priced for one in ways] == sorted((one.is_priced for one in ways), reverse=True)
    assert {one.buying for one in ways} == {"rent", "reserved", "spot", "own"}
    assert {one.name for one in ways if one.buying == "reserved"} == {
        "reserved for a year",
        "reserved for 3 years",
    }
    assert cheapest(ways) is ways[0]
    assert list(not_priced(ways)) == [f"{one.name}: {one.why_not}" for one in ways if not one.is_priced]
    (only,) = ways_of(scenario, CHIP, 64, buy=("rent",))
    assert (only.buying, only.usd_per_hour) == ("rent", 2.0)


def test_a_way_without_a_price_is_never_the_cheapest() -> None:
    trainium = CATALOG.chip("trainium3")
    ways = ways_of(asked("show cost", priced="trainium3"), trainium, 64, buy=("rent",))
    assert cheapest(ways) is None
    assert list(not_priced(ways)) == ["rented on demand: nobody lists it on demand"]


# --- spot


def test_a_restart_on_spot_is_noticed_placed_and_warm() -> None:
    """180 + 120 + 300 s; a service on one node that stays 6 h keeps e^(−600/21600)."""
    price = effective_price(hourly(1.0), 1.0, Recovering(preempted_every_s=SIX_HOURS_S), None)
    assert price.value == pytest.approx(exp(600 / SIX_HOURS_S))


def test_a_restart_that_is_said_is_the_whole_of_it() -> None:
    back = Recovering(preempted_every_s=SIX_HOURS_S, restart_s=60.0)
    assert effective_price(hourly(1.0), 1.0, back, None).value == pytest.approx(exp(60 / SIX_HOURS_S))


@pytest.mark.parametrize(("job_chips", "nodes"), [(8, 1), (16, 2), (17, 3), (0, 8)])
def test_a_job_stops_with_each_of_its_nodes(job_chips: int, nodes: int) -> None:
    """8 chips to a node; without a number of its own a job is on all of 64."""
    scenario = asked("show cost", priced="h100-sxm", spot_price=1.0, preempted_every="6h")
    (way,) = ways_of(scenario, CHIP, 64, job_chips=job_chips, trains=False, buy=("spot",))
    assert way.usd_per_hour == pytest.approx(exp(600 * nodes / SIX_HOURS_S))


def test_a_job_that_trains_pays_for_its_checkpoints_too() -> None:
    """The best interval between stops of 300 s, and what is lost since the last of them."""
    back = Recovering(preempted_every_s=SIX_HOURS_S)
    served, trained, slow = (
        effective_price(hourly(1.0), 1.0, back, one).value
        for one in (None, Checkpointing(), Checkpointing(blocking_s=300.0))
    )
    assert served < trained < slow
    assert trained == pytest.approx(1 / spot_ettr(1.0, SIX_HOURS_S, 600.0, 30.0))
    assert slow == pytest.approx(1 / spot_ettr(1.0, SIX_HOURS_S, 600.0, 300.0))


# --- a break-even, overheads, a run


def one(usd: float, tokens: float = 1e6) -> Dedicated:
    return Dedicated(replica=dollars(usd), replica_tokens=tokens)


def test_a_break_even_is_what_replicas_cost_over_the_price() -> None:
    """Of 50 cents a replica against 60 cents a million: 833,333 tokens; at the price of a full one never."""
    found = break_even(one(0.5), given("api", 0.6, "usd_per_mtok"))
    assert found is not None
    assert found.value == pytest.approx(5e6 / 6)
    for usd in (1.0, 0.9):
        assert break_even(one(1.0), given("api", usd, "usd_per_mtok")) is None


def test_both_ways_at_a_volume() -> None:
    """2.5M tokens on replicas of a million at $3: three, $9; at $4 a million of an API $10: a tenth less."""
    both = point(one(3.0), 4.0, 2.5e6)
    assert (both.num_replicas, both.own_usd, both.api_usd) == (3, 9.0, 10.0)
    assert both.builds
    assert (both.own_over_api_ratio, both.apart_fraction) == pytest.approx((0.9, 0.1))
    assert not point(one(4.0), 4.0, 3e6).builds  # as dear as the API: nothing is gained


def test_what_a_token_costs_on_replicas_that_are_not_full() -> None:
    assert one(3.0).token_usd_per_mtok(2.5e6) == pytest.approx(9.0 / 2.5)
    assert one(3.0).full_usd_per_mtok == 3.0


def test_overheads_are_added_and_who_owns_has_bought_network_and_storage() -> None:
    said = Overheads(
        orchestration_fraction=0.01, network_fraction=0.02, storage_fraction=0.04, monitoring_fraction=0.08
    )
    assert with_overheads(said, CATALOG, BUYING_ROWS["rent"].overheads).value == pytest.approx(1.15)
    assert with_overheads(said, CATALOG, BUYING_ROWS["own"].overheads).value == pytest.approx(1.09)


def test_overheads_that_nobody_says_are_as_published() -> None:
    for names in (BUYING_ROWS["rent"].overheads, BUYING_ROWS["own"].overheads):
        found = with_overheads(Overheads(), CATALOG, names)
        assert found.value == pytest.approx(1 + sum(CATALOG.share(name).fact.value for name in names))
        assert found.band is not None
        assert found.band.low < found.value < found.band.high


def run(**changes: object) -> RunCost:
    """1M chip-hours of 10,000 chips for 1T tokens, rented at $2."""
    usual: dict[str, object] = {
        "chip_hours": derived("hours", 1e6, "count"), "num_chips": 10_000, "num_tokens": 1e12, "rent": hourly(2.0),
        "owned": None, "capex": None,
    }  # fmt: skip
    return RunCost(**(usual | changes))  # type: ignore[arg-type]


def test_a_run_that_is_rented() -> None:
    """$2M, $2 a chip-hour and a million tokens; 100 hours, 4.17 days."""
    rows = {row.name: row for row in accounted(run())}
    rental = rows[RENTAL]
    assert (rental.cost_usd, rental.chip_usd_per_hour, rental.token_usd_per_mtok) == (2e6, 2.0, 2.0)
    assert [rows[name].cost_usd for name in (AMORTISED, UPFRONT, OPERATED)] == [None, None, None]
    assert (run().wall_s, run().num_days) == pytest.approx((360_000.0, 100 / 24))
    assert run(rent=None).rental is None
    assert run().over_published_ratio is None
    assert run().rental_over_amortised_ratio is None


def test_a_run_on_chips_that_are_owned() -> None:
    """By hardware and energy alone, by all that owning takes, and by what is bought: 10,000 chips of $40,000."""
    hour = owned(repair_fraction=0.05, staff_usd_per_month=73_050.0, used_fraction=0.5)
    cost = run(owned=hour, capex=hour.capex)
    found = {row.name: row.cost_usd for row in accounted(cost)}
    amortised = 1e6 * (part(hour, CAPITAL) + part(hour, ENERGY))
    assert found[AMORTISED] == pytest.approx(amortised)
    assert found[OPERATED] == pytest.approx(1e6 * 2 * sum(part.value for part in hour.parts.parts))
    assert found[UPFRONT] == pytest.approx(4e8)
    assert cost.rental_over_amortised_ratio == pytest.approx(2e6 / amortised)


def test_a_run_beside_the_one_that_was_published() -> None:
    """GPT-4 took 57M chip-hours and $81M by rent: twice as many at $2 are $228M, 2.815 times as much."""
    (then,) = (one for one in CATALOG.training_runs() if one.model == "gpt-4")
    assert (then.num_chip_hours, then.rental_usd) == (57e6, 81e6)
    cost = run(chip_hours=derived("hours", 114e6, "count"), published=then)
    assert cost.over_published_ratio == pytest.approx(2.0)
    rows = accounted(cost)
    assert (rows[0].published_usd, rows[0].difference_fraction) == (81e6, pytest.approx(228 / 81 - 1))
    assert [row.published_usd for row in rows[1:]] == [37e6, 806e6, None]
    assert [row.difference_fraction for row in rows[1:]] == [None, None, None]


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ({"hardware_age": "1y"}, True),
        ({"hardware_age": "1y", "depreciation": "annuity"}, True),
        ({"hardware_age": "1y", "depreciation": "market"}, False),
        ({}, False),
    ],
)
def test_an_annuity_has_no_age(said: dict[str, str], refused: bool) -> None:
    if not refused:
        assert dh.show_cost("h100-sxm", own=True, **said).verdict == "yes"  # type: ignore[arg-type]
        return
    with pytest.raises(ScenarioError) as caught:
        dh.show_cost("h100-sxm", own=True, **said)  # type: ignore[arg-type]
    assert caught.value.field == "hardware_age"

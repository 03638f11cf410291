"""A month at other volumes than the one asked about: servers are owned whole, and a replica holds one number."""

from __future__ import annotations

import pytest
from tests.economics.priced import CHIP
from tests.economics.priced import asked as question

import datahall as dh
from datahall.breakdown import derived, given
from datahall.economics.break_even import Dedicated, break_even
from datahall.economics.service import Fleet, bought
from datahall.economics.ways import ways_of

EIGHT = Dedicated(replica=derived("a replica", 100.0, "usd"), replica_tokens=1e9, at_once=8)
ASKED = {"model": "llama-3.1-8b", "chips": "h100-sxm", "latency": "1s"}


def at(volume: str, **more: object) -> dh.Answer:
    return dh.show_build_or_buy(tokens_per_month=volume, **{**ASKED, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(("tokens", "usd"), [(1.0, 800.0), (8e9, 800.0), (8.1e9, 1600.0), (80e9, 8000.0)])
def test_whole_servers_are_paid(tokens: float, usd: float) -> None:
    """Eight replicas of $100 to a server: the ninth pays for a second one."""
    assert EIGHT.month_usd(tokens) == pytest.approx(usd)


@pytest.mark.parametrize(("buy", "paid"), [("rent", 9), ("own", 16)])
def test_nine_replicas_are_rented_as_nine_and_owned_as_two_servers(buy: str, paid: int) -> None:
    scenario = question("plan serve", model="llama-3.1-8b", rate=1.0, buy=buy)
    (way,) = ways_of(scenario, CHIP, 9, trains=False)
    fleet = Fleet(chip=CHIP, num_replicas=9, num_replica_chips=1, replica_tokens=1e9)
    assert bought(scenario, fleet, way).month.at("replicas that are paid").value == paid


def test_seven_chips_of_a_run_are_bought_as_a_server() -> None:
    asked = {"model": "smollm2-135m", "tokens": "1B", "chip": "h100-sxm", "buy": "own"}
    seven, eight = (
        dh.plan_train(chips=chips, **asked).results["upfront_usd"]  # type: ignore[arg-type]
        for chips in (7, 8)
    )
    assert seven == eight


@pytest.mark.parametrize(("price", "tokens"), [(1.0, 0.8e9), (0.11, 800 / 0.11e-6)])
def test_the_break_even_is_what_a_server_costs_over_the_price(price: float, tokens: float) -> None:
    """$800 at $1 a million are 800M tokens, of one replica of eight; at 11 cents 7.27B, of all of them."""
    found = break_even(EIGHT, given("API", price, "usd_per_mtok"))
    assert found is not None
    assert found.value == pytest.approx(tokens)
    assert EIGHT.month_usd(found.value) == pytest.approx(price / 1e6 * found.value)


def test_an_api_below_a_full_server_is_never_beaten() -> None:
    assert break_even(EIGHT, given("API", 0.099, "usd_per_mtok")) is None


def test_the_volume_at_which_it_flips_is_one_whatever_was_asked() -> None:
    """43 to 44B tokens for chips that are owned; it was 5.4 to 21.7B by the volume asked, or never."""
    flips = [
        at(volume, buy="own", api="gpt-4o-mini").results["break_even_tokens"]
        for volume in ("20B", "80B", "200B", "2T")
    ]
    assert max(flips) / min(flips) < 1.03  # type: ignore[type-var, operator]


def test_a_volume_costs_the_same_asked_directly_and_in_the_table_of_another() -> None:
    """A hundred times the volume is shared by more replicas, each of which then holds some 7 % more."""
    table = next(
        one for one in at("20B", buy="own", api="gpt-4o-mini").tables if "other volumes" in one.title
    )
    rows = {row[0]: row[3] for row in table.rows}
    for tokens, volume in ((60e9, "60B"), (200e9, "200B"), (2e12, "2T")):
        (told,) = (usd for key, usd in rows.items() if key == pytest.approx(tokens))
        asked = at(volume, buy="own", api="gpt-4o-mini").results["own_usd"]
        assert told == pytest.approx(asked, rel=0.08)  # type: ignore[arg-type]


def test_what_a_replica_holds_does_not_halve_where_one_more_is_needed() -> None:
    """At 22.4B tokens two replicas were simulated: each could hold what one just could not, and not half of it."""
    held = [
        at(volume, buy="rent", price="0.4USD/h").results["replica_tokens"]
        for volume in ("20B", "22B", "22.4B", "22.5B")
    ]
    assert max(held) / min(held) < 1.05  # type: ignore[type-var, operator]


def test_a_price_without_the_server_decides_nothing() -> None:
    """Nobody publishes what is around an MI300X: owned it costs at least so much, and is listed as not priced."""
    plan = dh.plan_serve("llama-3.1-8b", rate=5, chips="mi300x", buy="own")
    assert "month_usd" not in plan.results
    assert any(
        "without the server around the chip" in str(cell)
        for one in plan.tables
        for row in one.rows
        for cell in row
    )
    both = dh.plan_serve("llama-3.1-8b", rate=5, chips="mi300x", buy="own,rent")
    assert both.results["way"] == "rented on demand"


def test_an_api_whose_latency_nobody_measured_is_promised_no_latency() -> None:
    unknown, known = at("2B", latency="1us"), at("2B", api_latency="200ms")
    assert ", if it answers within 1 µs" in unknown.headline
    assert "if it answers" not in known.headline


def test_what_does_nothing_for_an_api_is_said() -> None:
    """The cheapest host of Llama 3.1 8B lists no price of cached input."""
    assert any("cached does nothing here" in note for note in at("2B", cached="50%").notes)
    assert any("discount on batches" in note for note in at("2B", batched="50%").notes)


def test_as_many_replicas_are_paid_as_are_planned() -> None:
    """Two, as simulation asks for one more than the closed form: what one holds is a little less than all of it."""
    asked = dh.show_build_or_buy(tokens_per_month=2e9, model="llama-3.1-70b", latency="200ms", chips="mi300x")
    (planned, _) = asked.next_commands
    rate, ttft = (planned.split()[planned.split().index(name) + 1] for name in ("--rate", "--ttft"))
    plan = dh.plan_serve("llama-3.1-70b", rate=float(rate), ttft=ttft, chips="mi300x", buy="rent,own")
    assert plan.results["num_replicas"] == 2
    assert asked.results["own_usd"] == pytest.approx(plan.results["month_usd"], abs=0.005)


def test_spot_of_which_hardly_anything_is_kept_has_no_price() -> None:
    plan = dh.plan_serve("llama-3.1-8b", rate=5, chips="h100-sxm", buy="spot,rent", preempted_every="1s")
    assert plan.results["way"] == "rented on demand"
    assert any("taken away so often" in str(cell) for one in plan.tables for row in one.rows for cell in row)


def test_other_volumes_are_served_on_the_chip_that_is_cheapest_there() -> None:
    """Two replicas of an MI300X, one of an H100: which is cheaper depends on the volume."""
    said = {"model": "llama-3.1-70b", "latency": "200ms", "chips": "h100-sxm,mi300x"}
    asked = dh.show_build_or_buy(tokens_per_month=2e9, **said)
    rows = next(one for one in asked.tables if "other volumes" in one.title).records()
    chips = {row["tokens_a_month_tokens"]: row["chip"] for row in rows}
    assert chips[2e7] == "mi300x"
    assert chips[2e10] == "h100-sxm"
    alone = {
        chip: dh.show_build_or_buy(tokens_per_month=2e9, **{**said, "chips": chip})
        for chip in ("h100-sxm", "mi300x")
    }
    for row in rows:
        bills = [
            next(
                one["one_s_own_usd"]
                for one in table.records()
                if one["tokens_a_month_tokens"] == row["tokens_a_month_tokens"]
            )
            for answer in alone.values()
            for table in answer.tables
            if "other volumes" in table.title
        ]
        assert row["one_s_own_usd"] == min(bills)

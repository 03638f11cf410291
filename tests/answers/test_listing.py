"""Lists, searches, prices and checks."""

import re
from pathlib import Path

import pytest

from datahall import (
    catalog_api_prices,
    catalog_chips,
    catalog_links,
    catalog_models,
    catalog_prices,
    catalog_search,
    catalog_servers,
    check,
    explain,
)
from datahall.answer import Answer, Quantity
from datahall.answers.term.term import terms
from datahall.catalog import Catalog
from datahall.errors import ScenarioError, UnknownNameError
from datahall.report import render
from datahall.scenario.sections.views import CHIP_ORDERS, DOMAINS, MODEL_ORDERS
from datahall.validation import ledger

DAY = "2026-11-15"


def column(answer: Answer, key: str) -> list[object]:
    return [record[key] for record in answer.tables[0].records()]


@pytest.mark.parametrize("sort", CHIP_ORDERS)
def test_every_order_of_chips(shelf: Catalog, sort: str) -> None:
    assert len(catalog_chips(sort=sort, catalog=shelf).tables[0].rows) == len(shelf.chips())


def test_chips_by_memory_are_largest_first(shelf: Catalog) -> None:
    sizes = column(catalog_chips(sort="memory", catalog=shelf), "memory_bytes")
    assert sizes == sorted(sizes, reverse=True)  # type: ignore[type-var]


def test_unknown_prices_come_last(shelf: Catalog) -> None:
    prices = column(catalog_chips(sort="price", catalog=shelf), "price_usd")
    known = [price for price in prices if price is not None]
    assert prices == sorted(known) + [None] * (len(prices) - len(known))  # type: ignore[type-var]


def test_a_precision_leaves_out_chips_without_it(shelf: Catalog) -> None:
    answer = catalog_chips(precision="fp8", catalog=shelf)
    assert "a100-sxm-80gb" not in column(answer, "chip")
    assert "fp8_dense_flop_per_s" in answer.tables[0].records()[0]


def test_wrong_filters_name_the_right_ones(shelf: Catalog) -> None:
    with pytest.raises(UnknownNameError, match="NVIDIA"):
        catalog_chips(vendor="nvida", catalog=shelf)
    with pytest.raises(UnknownNameError, match="fp8"):
        catalog_chips(precision="fp7", catalog=shelf)
    with pytest.raises(ScenarioError, match="one of name, memory"):
        catalog_chips(sort="beauty", catalog=shelf)
    with pytest.raises(UnknownNameError, match="llama"):
        catalog_models(family="lamma", catalog=shelf)


def test_no_table_has_more_than_seven_columns_or_outgrows_100(shelf: Catalog) -> None:
    answers = (
        catalog_chips(catalog=shelf),
        catalog_models(catalog=shelf),
        catalog_links(catalog=shelf),
        catalog_servers(catalog=shelf),
        catalog_prices(as_of=DAY, catalog=shelf),
    )
    for answer in answers:
        assert len([one for one in answer.tables[0].columns if not one.aside]) <= 7
        assert max(map(len, render(answer).splitlines())) <= 100


def test_a_search_that_finds_nothing_is_a_no(shelf: Catalog) -> None:
    assert catalog_search("nvlink 4", catalog=shelf).verdict == "yes"
    assert catalog_search("abacus", catalog=shelf).verdict == "no"
    with pytest.raises(ScenarioError, match="nothing is named"):
        catalog_search("  ", catalog=shelf)


def test_prices_carry_their_age_and_old_ones_are_stale(shelf: Catalog) -> None:
    for record in catalog_prices(chip="h100", as_of=DAY, catalog=shelf).tables[0].records():
        age = record["age_s"]
        assert isinstance(age, float)
        assert record["state"] == ("stale" if age > 180 * 86400 else "fresh")


def test_max_age_leaves_out_older_ones(shelf: Catalog) -> None:
    few = catalog_prices(chip="h100", max_age="90 days", as_of=DAY, catalog=shelf)
    assert (
        0
        < len(few.tables[0].rows)
        < len(catalog_prices(chip="h100", as_of=DAY, catalog=shelf).tables[0].rows)
    )
    assert few.results["num_stale"] == 0
    assert catalog_prices(chip="h100", max_age="1 s", as_of=DAY, catalog=shelf).verdict == "no"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"max_age": "1 day"}, r"as young as 24 h: the newest is \d+ days old"),
        ({"as_of": "2019-01-01"}, r"is from 2019-01-01 or before: the oldest is of 20\d\d-\d\d"),
    ],
)
def test_a_no_says_what_there_is_instead(shelf: Catalog, asked: dict[str, str], words: str) -> None:
    answer = catalog_prices(**{"chip": "h100", "as_of": DAY, **asked}, catalog=shelf)
    assert answer.verdict == "no"
    assert re.search(words, answer.headline)


def test_what_is_not_sold_by_the_hour_is_not_called_old(shelf: Catalog) -> None:
    assert "none of them is by the hour" in catalog_prices(kind="purchase", as_of=DAY, catalog=shelf).headline


def test_spot_prices_are_cheapest_first(shelf: Catalog) -> None:
    cells = column(catalog_prices(chip="h100", kind="spot", as_of=DAY, catalog=shelf), "price")
    prices = [cell.value for cell in cells if isinstance(cell, Quantity)]
    assert len(prices) == len(cells) > 3
    assert prices == sorted(prices)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"kind": "leased"}, "kind"),
        ({"max_age": "-3 days"}, "max_age"),
        ({"max_age": "0 s"}, "max_age"),
        ({"as_of": "yesterday"}, "as_of"),
    ],
)
def test_bad_price_questions(shelf: Catalog, asked: dict[str, str], field: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        catalog_prices(**asked, catalog=shelf)
    assert caught.value.field == field


def test_the_price_of_the_headline_can_be_had_on_demand_and_its_day_is_said(shelf: Catalog) -> None:
    answer = catalog_prices(chip="h100", as_of=DAY, catalog=shelf)
    assert "on demand" in answer.headline
    assert re.search(r"as of 20\d\d-\d\d-\d\d", answer.headline)
    assert "auction" not in answer.headline


def test_api_prices() -> None:
    answer = catalog_api_prices("gpt-4o", first_party=True, as_of=DAY)
    assert "gpt-4o" in column(answer, "model")
    assert set(column(answer, "sold_by")) == {"openai"}
    with pytest.raises(UnknownNameError):
        catalog_api_prices("gpt-4oo-nonsense", as_of=DAY)


def test_every_term_can_be_explained() -> None:
    for word, term in terms().items():
        assert term.meaning.endswith(".")
        assert explain(word).binding == term.meaning
        assert explain(term.name).inputs["term"] == word
    with pytest.raises(UnknownNameError, match="TPOT"):
        explain("tpott")


def test_closed_lists_are_those_of_the_rooms(shelf: Catalog) -> None:
    assert all(ledger.LEDGER[domain] for domain in DOMAINS)
    for sort in MODEL_ORDERS:
        assert catalog_models(sort=sort, catalog=shelf).verdict == "yes"


def test_check_lists_every_problem_of_every_file(shelf: Catalog, tmp_path: Path) -> None:
    bad, good = tmp_path / "bad.toml", Path(__file__).parents[1] / "catalog" / "configs" / "phi-2.json"
    bad.write_text('[chip.x]\nmemory = "80 XB"\ntitel = "a"\n')
    answer = check([str(bad), str(good), str(tmp_path / "gone.toml")], catalog=shelf)
    assert answer.verdict == "no"
    text = render(answer, width=400)
    assert "bad.toml:2" in text
    assert 'did you mean "title"' in text
    assert "No such file" in text
    assert check(str(good), catalog=shelf).verdict == "yes"

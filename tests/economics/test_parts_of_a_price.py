"""A chip that is sold alone is no server: what is around it is not priced, and said to be."""

from __future__ import annotations

import pytest
from tests.results import number

import datahall as dh
from datahall.answer import Answer
from datahall.catalog import load
from datahall.economics.capex import AROUND_PART, CHIP_PART, NETWORK_PART, REST_PART, SERVER_PART, capex_of

CATALOG = load()
ALONE = ("mi300x", "h200-sxm", "b200-sxm", "h20", "rtx-4090", "mi250x")


def cost(chip: str) -> Answer:
    return dh.show_cost(priced=chip, own=True, chips=1000)


@pytest.mark.parametrize("chip", ALONE)
def test_the_server_around_a_chip_that_is_sold_alone_is_missing(chip: str) -> None:
    found = capex_of(CATALOG.chip(chip), 1000, CATALOG)
    assert found is not None
    assert {AROUND_PART, REST_PART} <= set(found.missing)
    assert found.is_least
    assert [part.name for part in found.parts if part.name != NETWORK_PART] == [CHIP_PART]
    assert (
        found.chip.value == found.server.value
    )  # all of it is the accelerator, and not its share of a server


def test_a_price_of_the_street_is_that_of_an_mi300x_alone() -> None:
    """$15,000 of the chip, and the network counted part by part."""
    found = capex_of(CATALOG.chip("mi300x"), 1000, CATALOG)
    assert found is not None
    assert found.chip.value == 15_000.0
    answer = cost("mi300x")
    said = f"{answer.headline} {answer.binding} {' '.join(answer.notes)}"
    assert "chassis, CPUs, memory, NICs" in said
    assert "are not priced" in answer.binding
    assert "at most" in answer.headline  # 53 % less than renting, where all parts were priced
    assert "share of server" not in answer.binding
    ways = next(one for one in answer.tables if one.title.startswith("ways"))
    owned = [str(row[-1]) for row in ways.rows if str(row[0]).startswith("owned")]
    assert owned
    assert all("without" in which and "chassis" in which for which in owned)
    assert "all parts priced" not in owned
    parts = next(one for one in answer.tables if one.title.startswith("price of a chip"))
    assert [row[0] for row in parts.rows] == [
        CHIP_PART,
        NETWORK_PART,
        "price of a chip, as far as it is known",
    ]
    assert number(answer, "bought_usd") == pytest.approx(sum(float(str(row[1])) for row in parts.rows[:-1]))


@pytest.mark.parametrize("chip", ["a100-sxm-40gb", "v100-sxm2-32gb"])
def test_a_server_with_a_list_price_lacks_only_what_stands_around_it(chip: str) -> None:
    found = capex_of(CATALOG.chip(chip), 1000, CATALOG)
    assert found is not None
    assert found.missing == (REST_PART,)
    assert found.chip.value < found.server.value


@pytest.mark.parametrize(("chip", "parts"), [("h100-sxm", 3), ("gb200", 3)])
def test_a_server_with_a_price_of_everything_lacks_nothing(chip: str, parts: int) -> None:
    found = capex_of(CATALOG.chip(chip), 1000, CATALOG)
    assert found is not None
    assert (found.missing, len(found.parts)) == ((), parts)
    assert found.server.name == SERVER_PART
    assert found.chip.value < found.server.value
    assert "not priced: of owning" not in " ".join(cost(chip).notes)
    assert "at most" not in cost(chip).headline


def test_a_price_that_is_said_is_all_in() -> None:
    found = capex_of(CATALOG.chip("mi300x"), 1000, CATALOG, 30_000.0)
    assert found is not None
    assert not found.is_least

"""A way to buy is a row: its words, its terms, its overheads; the next one needs no edit elsewhere."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import cast, get_args

import msgspec
import pytest
from tests.economics.priced import CHIP, asked, hourly
from tests.house import MODULES, each, inside, parsed

from datahall.economics import ways
from datahall.economics.chip import chip_cost_of
from datahall.economics.early import check_buying
from datahall.economics.service import Fleet, bought
from datahall.economics.ways import PRICED, Wanted, Way
from datahall.errors import ScenarioError
from datahall.scenario import buying
from datahall.scenario.buying import BUYING_ROWS, OVERHEADS, BuyingRow, Use, chip_ways, terms
from datahall.scenario.field import CONCEPTS, fields
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.money.purchase import Purchase
from datahall.scenario.words import BUYINGS, Buying

LEASE = cast(Buying, "lease")
SPELL_WAYS = (
    "scenario/words.py",
    "scenario/buying.py",
    "scenario/sections/money/purchase.py",
    "economics/ways.py",
)


def test_every_word_has_a_row_and_every_way_to_chips_a_price() -> None:
    assert tuple(BUYING_ROWS) == BUYINGS
    assert tuple(PRICED) == chip_ways()


def test_what_is_of_a_way_is_an_input() -> None:
    known = {field.name for section in CONCEPTS for field in fields(section)}
    for use in get_args(Use):
        assert terms(use).keys() <= known
    assert {field.name for field in fields("overheads")} == set(OVERHEADS.values())
    assert {name for row in BUYING_ROWS.values() for name in row.overheads} <= OVERHEADS.keys()


def lists_ways(tree: ast.AST) -> list[int]:
    """Lines with a list of several ways to buy."""
    found = []
    for node in ast.walk(tree):
        items = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else []
        items = node.keys if isinstance(node, ast.Dict) else items  # type: ignore[assignment]
        if len({one.value for one in items if isinstance(one, ast.Constant)} & set(BUYINGS)) > 1:
            found.append(node.lineno)  # type: ignore[attr-defined]
    return found


@each([path for path in MODULES if path not in inside(*SPELL_WAYS)])
def test_nobody_else_lists_the_ways(path: Path) -> None:
    assert lists_ways(parsed(path)) == []


@pytest.mark.parametrize("text", ['("rent", "spot")', '{"own", "reserved"}', '{"rent": 1, "own": 2}'])
def test_a_list_of_ways_is_known_when_seen(text: str) -> None:
    assert lists_ways(ast.parse(text))


@pytest.fixture
def leased(monkeypatch: pytest.MonkeyPatch) -> Buying:
    """A way that the house has not."""

    def priced(wanted: Wanted) -> tuple[Way, ...]:
        return (Way(buying=LEASE, name=f"a lease of {wanted.num_chips}", hour=hourly(1.0)),)

    monkeypatch.setitem(
        buying.BUYING_ROWS,
        LEASE,
        BuyingRow("leasing", terms=("life",), terms_for={"choice": ("restart",)}, overheads=("network",)),
    )
    monkeypatch.setitem(ways.PRICED, LEASE, priced)
    return LEASE


def having(scenario: Scenario, *words: Buying) -> Scenario:
    return scenario.having(msgspec.structs.replace(scenario.one(Purchase), buy=words))


def test_a_new_way_is_a_row_of_what_a_chip_costs(leased: Buying) -> None:
    found = chip_cost_of(asked("show cost", priced="h100-sxm"))
    assert leased in {way.buying for way in found.ways} == set(chip_ways())
    assert "a lease of 1024" in {way.name for way in found.ways}
    assert found.lead is not None
    assert found.lead.buying == "rent"


def test_a_new_way_has_its_terms_and_no_others(leased: Buying) -> None:
    said = {"model": "llama-3.1-8b", "rate": 5, "chips": "h100-sxm"}
    for name, value in (("provider", "aws"), ("network_overhead", "5%"), ("life", "3 years")):
        check_buying(having(asked("plan serve", **said, **{name: value}), leased), "service")
    with pytest.raises(ScenarioError, match="renting is not weighed"):
        check_buying(having(asked("plan serve", **said, storage_overhead="5%"), leased), "service")


def test_a_new_way_has_terms_of_one_use_alone(leased: Buying) -> None:
    said = asked("show build-or-buy", tokens_per_month="2B", model="llama-3.1-8b", restart="5min")
    check_buying(having(said, leased), "choice")
    check_buying(
        having(said, "rent"), "service"
    )  # where it acts on what failures take, however chips are had
    with pytest.raises(ScenarioError, match="spot is not weighed"):
        check_buying(having(said, "rent"), "choice")


def test_a_new_way_has_its_overheads(leased: Buying) -> None:
    scenario = asked("show build-or-buy", tokens_per_month="2B", model="llama-3.1-8b", network_overhead="50%")
    fleet = Fleet(chip=CHIP, num_replicas=1, num_replica_chips=1, replica_tokens=1e9)
    way = Way(buying=leased, name="a lease", hour=hourly(1.0))
    assert bought(scenario, fleet, way).month.value == pytest.approx(1.5 * 365.25 * 24 / 12)

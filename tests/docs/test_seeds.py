"""docs/seeds.md: every claim of the source documents once, quoted word for word, judged by what the program answers."""

from __future__ import annotations

import doctest
import re
from collections import Counter
from types import ModuleType
from typing import Any

import pytest
from tests.docs.conftest import ROOT, load_generate

claims: ModuleType = load_generate().claims
CLAIMS = claims.table().claim
PAGE = (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8")
SEEDS = {path.name[:3]: path for path in (ROOT.parent / "shared" / "seeds").glob("*.txt")}
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def numbers(text: str) -> set[float]:
    return {float(number.rstrip(",").replace(",", "")) for number in NUMBER.findall(text)}


def test_every_claim_is_there_once() -> None:
    assert [claim.id for claim in CLAIMS] == list(range(1, 150))
    shown = Counter(re.findall(r"^\| (\d+) \| 00\d \|", PAGE, re.MULTILINE))
    assert shown == {str(claim.id): 1 for claim in CLAIMS}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: str(claim.id))
def test_a_claim_is_judged_or_waits_for_a_room_that_is_named(claim: Any) -> None:
    table = claims.table()
    assert claim.seed in table.documents
    assert bool(claim.cases) != bool(claim.waits)
    assert (claim.about in table.subjects) == bool(claim.cases)
    assert (claim.waits in table.rooms) == bool(claim.waits)
    assert len(claim.quote.split()) <= 20, "more than a short quotation"


@pytest.mark.parametrize("claim", [one for one in CLAIMS if one.cases], ids=lambda claim: str(claim.id))
def test_what_is_held_against_the_figure_is_what_the_document_says(claim: Any) -> None:
    """No number is put into a document's mouth: it stands in the quotation, or the page says how words were read."""
    for case in claim.cases:
        assert numbers(case.claims) <= numbers(claim.quote) | numbers(case.reads), case
        assert bool(case.fact) != bool(case.ask and case.take)
        assert bool(case.beside or case.over) == bool(case.shown)
        assert case.of or len(claim.cases) == 1


@pytest.mark.parametrize("room", claims.table().rooms)
def test_a_room_has_claims_that_wait_for_it(room: str) -> None:
    assert any(claim.waits == room for claim in CLAIMS)


def stands_in(quote: str, seed: str) -> bool:
    """Is this what a document says, word for word but for what … leaves out?"""
    text = (
        SEEDS[seed].read_text(encoding="utf-8").replace("ร—", "×")
    )  # a × that went through a wrong code page
    return bool(re.search(r".{1,400}?".join(map(re.escape, quote.split(" … "))), text, re.DOTALL))


@pytest.mark.skipif(not SEEDS, reason="the source documents are not beside this clone")
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: str(claim.id))
def test_a_quotation_stands_in_its_document(claim: Any) -> None:
    assert stands_in(claim.quote, claim.seed)


@pytest.mark.skipif(not SEEDS, reason="the source documents are not beside this clone")
@pytest.mark.parametrize(
    ("name", "quotation"), [("synchronisation.md", r"^## .*"), ("serving.md", r'^\*\*".*')]
)
def test_other_pages_quote_word_for_word_too(name: str, quotation: str) -> None:
    """In their headings, and where a paragraph begins with a quotation."""
    lines = re.findall(quotation, (ROOT / "docs" / name).read_text(encoding="utf-8"), re.MULTILINE)
    quotes = re.findall(r'"([^"]+)"\**(?: \((00\d(?:, 00\d)*)\))?', "\n".join(lines))
    assert len(quotes) > 5
    for quote, seeds in quotes:
        assert all(stands_in(quote, seed) for seed in (seeds or "000").split(", ")), quote


@pytest.mark.parametrize(
    ("claimed", "figure", "unit", "expected"),
    [
        ("8×", 7.89, "ratio", True), ("8×", 3.99, "ratio", False), ("8×", 7.48, "ratio", False),
        ("40 %", 0.428, "fraction", True), ("40 %", 0.338, "fraction", False), ("2.3×", 2.45, "ratio", False),
        ("10×", 17.0, "ratio", False), ("100×", 110.0, "ratio", True), ("100×", 120.0, "ratio", False),
        ("20-30 %", 0.25, "fraction", True), ("20-30 %", 0.32, "fraction", False), ("2-4×", 1.99, "ratio", True),
        ("2-4×", 1.9, "ratio", False), ("8-16", 16.0, "count", True), ("8-16", 32.0, "count", False),
        ("at least 100×", 256.0, "ratio", True), ("at least 100×", 53.0, "ratio", False),
        ("at most 3×", 2.0, "ratio", True), ("at most 3×", 13.7, "ratio", False),
        ("exactly 14", 14.0, "count", True), ("exactly 10,000", 9999.0, "count", False),
        ("10 Gbps", 1.25e9, "bytes_per_s", True), ("at least 14 days", 13 * 86400.0, "s", False),
        ("70 %", -0.35, "fraction", False), ("2.50 USD/Mtok", 0.0, "usd_per_mtok", False),
    ],
)  # fmt: skip
def test_a_figure_holds_by_the_rule(claimed: str, figure: float, unit: str, expected: bool) -> None:
    assert claims.holds(claimed, figure, unit) is expected


@pytest.mark.parametrize(
    "claimed", ["3.35", "3.4", "3.5", "3", "3.0", "3.75", "4", "2", "3.2-3.5", "3-3.3", "3.3-4", "4-5"]
)
def test_the_rule_is_that_of_the_program(claimed: str) -> None:
    """A number that `show chip --claim` calls correct or rounded holds here, and no other does."""
    said = f"{claimed} TB/s"
    told = claims.settle(claims.Case(claims=said, fact="h100-sxm memory_bandwidth"))
    ours = claims.settle(claims.Case(claims=said, ask="show chip h100-sxm", take="memory_bytes_per_s"))
    assert ours.outcome == told.outcome


def test_examples() -> None:
    assert doctest.testmod(claims).failed == 0


@pytest.mark.parametrize(
    ("outcomes", "kind"),
    [
        (["yes"], "holds"), (["yes", "yes"], "holds"), (["no", "no"], "does not hold"), (["yes", "no"], "in part"),
        (["open"], "not settled"), (["yes", "open"], "in part"), (["open", "no"], "does not hold"),
        (["no", "yes", "open"], "in part"), (["answered", "answered"], "answered"),
    ],
)  # fmt: skip
def test_a_verdict_follows_from_its_cases(outcomes: list[str], kind: str) -> None:
    assert claims.summed(outcomes) == kind


def test_the_page_says_the_verdicts_and_prints_the_commands() -> None:
    rows = dict(re.findall(r"^\| (\d+) \| 00\d \| “.*”.* \| .* \| ([\w ]+) \|$", PAGE, re.MULTILINE))
    judged = claims.judged()
    assert rows == {str(claim.id): one.kind for claim, one in judged.items()}
    for claim, one in judged.items():
        for command in {command for each in one.found for command in each.commands}:
            assert f"{claim.id:>3}  datahall {command}\n" in PAGE


def test_a_check_by_hand_agrees_or_it_is_said_why_not() -> None:
    """The claims were looked up in public sources before; that check shares nothing with the program."""
    for claim, one in claims.judged().items():
        assert bool(claim.differs) == (bool(claim.checked) and claim.checked != one.kind), claim.id


def test_a_place_that_is_not_in_the_answer_is_found_out() -> None:
    with pytest.raises(ValueError, match="0 rows"):
        claims.figure("show fabric fat-tree --chips 64", "made of > pebbles > number")
    with pytest.raises(ValueError, match="2 rows"):
        claims.figure("catalog prices --chip h100 --kind spot", "prices of one chip > gcp > price")
    with pytest.raises(KeyError):
        claims.figure("show fabric fat-tree --chips 64", "num_pebbles")
    with pytest.raises(ValueError, match="exit code 2"):
        claims.answer("show chip h1000x")
    with pytest.raises(ValueError, match="exit code 1"):
        claims.answer("simulate train llama-3.1-8b --chips 1")

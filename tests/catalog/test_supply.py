"""Facts of supply: every statement has a source and a date, and names chips, countries and grids of the catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest

from datahall.catalog import Catalog
from datahall.errors import DocumentError

WAIT = '[lead_time.x]\ntitle = "x"\nchips = ["h100-sxm"]'
STATEMENTS = ("foundry", "cloud_only", "lead_time", "licence", "country")


@pytest.mark.parametrize("kind", STATEMENTS)
def test_a_statement_has_a_source_with_a_date(catalog: Catalog, kind: str) -> None:
    for one in catalog.every(kind):
        source = one.source  # type: ignore[attr-defined]
        assert source.title, one.name
        assert source.date[:2] == "20", one.name


def test_every_offer_of_a_region_is_of_one_that_is_known_and_of_its_cloud(catalog: Catalog) -> None:
    for chip in catalog.chips():
        for offer in catalog.regional_offers(chip.name):
            assert catalog.region(offer.region).provider == offer.provider, offer.name
            assert offer.source.date == offer.date


def test_a_region_stands_in_the_country_of_its_grid(catalog: Catalog) -> None:
    """Of grids that are countries; those of the United States are parts of it."""
    named = {"uae": "united-arab-emirates", "usa": "united-states"}
    states = {"california", "texas", "virginia", "midwest", "northwest", "arizona", "new-york", "georgia"}
    for region in catalog.regions():
        if region.grid in states:
            assert region.country == "united-states", region.name
        elif region.grid:
            assert region.country == named.get(region.grid, region.grid), region.name


def test_an_alias_of_a_region_is_of_one_cloud(catalog: Catalog) -> None:
    aliases = [alias for region in catalog.regions() for alias in region.aliases]
    assert len(aliases) == len(set(aliases))
    assert catalog.region("us-east-1").provider == "aws"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'{WAIT}\nsaid = "quoted"\nshortest = "9 days"\nlongest = "2 days"', "less than"),
        (f'{WAIT}\nsaid = "hoped"\nshortest = "1 days"\nlongest = "2 days"', "quoted"),
        ('[foundry.x]\ntitle = "x"\ncompany = "X"\nchips = ["no-such-chip"]', "no-such-chip"),
        ('[licence.x]\ntitle = "x"\nreview = "needs one"\nchips = ["h20"]', "which countries"),
        ('[licence.x]\ntitle = "x"\nreview = "needs one"\ncountries = ["atlantis"]\nchips = ["h20"]', "atlantis"),
        ('[region.x]\ntitle = "x"\nprovider = "aws"\ncountry = "japan"\nlatitude = 3', "go together"),
        ('[region.x]\ntitle = "x"\nprovider = "aws"\ncountry = "japan"\nlatitude = -91\nlongitude = 0', "at least -90"),
    ],
)  # fmt: skip
def test_a_statement_that_cannot_be_is_refused(tmp_path: Path, text: str, said: str) -> None:
    head, _, body = text.partition("\n")
    (tmp_path / "mine.toml").write_text(
        f'{head}\nsource = {{ title = "mine", date = "2026" }}\n{body}\n', encoding="utf-8"
    )
    with pytest.raises(DocumentError) as caught:
        Catalog([tmp_path], user=False).check(tmp_path / "mine.toml")
    assert said.removeprefix("which ") in str(caught.value)


def test_a_statement_without_a_source_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        '[foundry.x]\ntitle = "x"\ncompany = "X"\nchips = ["h20"]\n', encoding="utf-8"
    )
    with pytest.raises(DocumentError, match="source"):
        Catalog([tmp_path], user=False).check(tmp_path / "mine.toml")

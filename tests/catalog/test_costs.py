"""What the catalogue knows of money: owners, shares of bills, stages of growth, training runs that were published."""

from __future__ import annotations

from itertools import pairwise

import pytest

from datahall.catalog import Catalog, load
from datahall.errors import DocumentError
from datahall.units import YEAR_S

CATALOG = load()


@pytest.mark.parametrize("name", ["hyperscaler", "neocloud"])
def test_an_owner_has_every_figure_from_somewhere(name: str) -> None:
    owner = CATALOG.owner(name)
    assert owner.life_s == 4 * YEAR_S  # as InferenceX has it
    assert {"interest_fraction", "life_s", "drawn_fraction"} <= owner.facts.keys()
    assert owner.rents_space != ("hall_usd_per_w" in owner.facts)


def test_overheads_of_the_founders_essay_add_up_to_23_to_40_percent() -> None:
    facts = [CATALOG.share(name).fact for name in ("orchestration", "network", "storage", "monitoring")]
    assert sum(one.low or 0.0 for one in facts) == pytest.approx(0.23)
    assert sum(one.high or 0.0 for one in facts) == pytest.approx(0.40)


def test_stages_begin_where_the_one_before_ends_and_budget_ten_dollars_a_customer() -> None:
    stages = CATALOG.stages()
    assert [one.num_customers for one in stages] == [1, 100, 1000, 10_000]
    for one, after in pairwise(stages):
        assert one.budget_usd / after.num_customers == pytest.approx(10.0)


def test_a_published_run_names_a_model_and_a_chip_of_the_catalogue() -> None:
    for run in CATALOG.training_runs():
        assert CATALOG.model(run.model).name == run.model
        assert CATALOG.chip(run.chip).name == run.chip
        assert run.num_chip_hours > run.num_chips


def test_gpt_4_is_marked_a_rumour() -> None:
    model = CATALOG.model("gpt-4")
    assert "rumour" in model.note
    assert model.title.endswith("(rumoured)")
    assert {fact.source.kind for fact in model.facts.values()} == {"estimate"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('interest = "8 %"\nlife = "4 years"\ndrawn = "75 %"', "rents space or builds it"),
        ('interest = "8 %"\nlife = "4 years"\ndrawn = "75 %"\nhall = "10 USD/W"', "go together"),
        ('interest = "8 %"\nlife = "4 parsecs"\ndrawn = "75 %"\ncolo = "150 USD/kW-month"', "parsecs"),
    ],
)
def test_an_owner_that_cannot_be_is_refused(tmp_path, text: str, said: str) -> None:  # type: ignore[no-untyped-def]
    head = 'source = { title = "mine", date = "2026", kind = "estimate" }\ntitle = "me"\n'
    path = tmp_path / "owner.toml"
    path.write_text(f"[owner.me]\n{head}{text}\n")
    with pytest.raises(DocumentError, match=said):
        Catalog(user=False).check(path)

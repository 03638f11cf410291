"""A fabric that was built, asked about by every verb that takes one."""

from __future__ import annotations

import pytest

from datahall.answers.ask import ask, form_of
from datahall.catalog import Catalog
from datahall.errors import ScenarioError

CATALOG = Catalog(user=False)
BUILT = "meta-24k-roce"
# what each verb that takes a fabric is asked besides
ABOUT: dict[str, dict[str, object]] = {
    "show fabric": {},
    "show collective": {"collective": "all-reduce", "size": "1GB"},
    "simulate fabric": {"job": {"size": "1MB"}},
    "show memory": {"model": "llama-3-8b", "chips": 8},
    "simulate train": {"model": "llama-3-8b", "chips": 8},
    "plan train": {"model": "llama-3-8b", "chips": 8, "tokens": "1T"},
}


def refusal(verb: str, **said: object) -> tuple[str, str, str]:
    named = {"topologies" if verb == "show fabric" else "on": BUILT}
    with pytest.raises(ScenarioError) as caught:
        ask(verb, named | ABOUT[verb] | said, catalog=CATALOG)
    return caught.value.message, caught.value.hint, caught.value.field


@pytest.mark.parametrize("said", [{"domain": 4}, {"oversubscription": "2:1"}, {"radix": 64}])
def test_what_a_fabric_that_was_built_has_of_its_own_is_refused_in_the_same_words(
    said: dict[str, object],
) -> None:
    (field,) = said
    those = [verb for verb in ABOUT if field in form_of(verb).fields]
    assert len(those) > 1
    assert len({refusal(verb, **said) for verb in those}) == 1


def test_more_chips_than_were_built_are_refused_in_the_same_words() -> None:
    said = {refusal(verb, chips=24_577)[::2] for verb in ABOUT}
    assert said == {(f"{BUILT} has 24,576 chips, not 24,577", "chips")}

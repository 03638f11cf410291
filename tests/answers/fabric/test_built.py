"""A fabric that was built, asked about by every verb that takes one."""

from __future__ import annotations

import pytest

from datahall.answers.ask import ask, form_of
from datahall.answers.reply import answer_of
from datahall.catalog import Catalog
from datahall.errors import ScenarioError
from datahall.fabric.design.topologies import TABLE, Topology
from datahall.scenario.sections.fabric import FabricDesign

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
    "simulate serve": {"model": "llama-3-8b", "rate": 1},
}


def refusal(verb: str, **said: object) -> tuple[str, str, str]:
    named = {"topologies" if verb == "show fabric" else "on": BUILT}
    with pytest.raises(ScenarioError) as caught:
        ask(verb, named | ABOUT[verb] | said, catalog=CATALOG)
    return caught.value.message, caught.value.hint, caught.value.field


@pytest.mark.parametrize(
    "said", [{"domain": 4}, {"oversubscription": "2:1"}, {"oversubscription": "1:1"}, {"radix": 64}]
)
def test_what_a_fabric_that_was_built_has_of_its_own_is_refused_in_the_same_words(
    said: dict[str, object],
) -> None:
    (field,) = said
    those = [verb for verb in ABOUT if field in form_of(verb).fields]
    assert len(those) > 1
    assert len({refusal(verb, **said) for verb in those}) == 1


def test_more_chips_than_were_built_are_refused_in_the_same_words() -> None:
    said = {refusal(verb, chips=24_577)[::2] for verb in ABOUT if "chips" in form_of(verb).fields}
    assert said == {(f"{BUILT} has 24,576 chips, not 24,577", "chips")}


@pytest.mark.parametrize("on", [BUILT, "tpu-v5p-pod", "dragonfly", "torus"])
def test_full_width_is_no_default_of_a_fabric_without_tiers_to_choose(on: str) -> None:
    assert "oversubscription" not in usual("show collective", on, 64)
    assert "oversubscription" not in usual("show fabric", on, None if on in (BUILT, "tpu-v5p-pod") else 64)


@pytest.mark.parametrize("one", TABLE, ids=lambda one: one.name)
def test_full_width_is_the_default_of_every_topology_that_may_be_narrower(one: Topology) -> None:
    tapered = FabricDesign(topology=one.name).usual()
    assert ("oversubscription" in tapered) == ("oversubscription" in one.uses)


def test_full_width_that_is_said_is_no_default_and_changes_nothing() -> None:
    plain, said = (
        answer_of(ask("show fabric", {"topologies": "fat-tree", "chips": 64, **more}, catalog=CATALOG))
        for more in ({}, {"oversubscription": "1:1"})
    )
    assert "oversubscription" in plain.defaults
    assert "oversubscription" not in said.defaults
    assert (plain.inputs, plain.results, plain.notes) == (said.inputs, said.results, said.notes)


@pytest.mark.parametrize("name", [one.name for one in CATALOG.known_fabrics()])
def test_a_collective_on_a_fabric_that_was_built_says_which(name: str) -> None:
    """Without it nobody would know how many chips take part: it never does nothing."""
    answer = answer_of(ask("show collective", {"on": name, **ABOUT["show collective"]}, catalog=CATALOG))
    assert f" on {name}" in answer.headline
    assert not any("does nothing" in note for note in answer.notes)


def test_a_chip_that_was_not_built_is_refused_in_the_same_words() -> None:
    said = {refusal(verb, chip="h200-sxm")[0] for verb in ABOUT if "chip" in form_of(verb).fields}
    asking = {"model": "llama-3-8b", "rate": 1, "on": BUILT, "chips": "h200-sxm,b200-sxm"}
    with pytest.raises(ScenarioError) as caught:
        ask("plan serve", asking, catalog=CATALOG)
    assert said == {caught.value.message}
    assert caught.value.field == "chips"
    assert caught.value.hint == 'chips="h100-sxm"'


def test_a_plan_weighs_those_of_several_chips_that_the_fabric_is_built_of() -> None:
    asking = {"model": "llama-3-8b", "rate": 1, "on": BUILT, "chips": "h200-sxm,h100-sxm"}
    assert answer_of(ask("plan serve", asking, catalog=CATALOG)).results["chip"] == "h100-sxm"


TRAINED: dict[str, dict[str, object]] = {
    "show memory": {},
    "simulate train": {"zero": 3},
    "plan train": {"tokens": "1T"},
}


@pytest.mark.parametrize("verb", TRAINED)
def test_a_run_without_a_number_of_chips_has_those_that_were_built(verb: str) -> None:
    fabric = CATALOG.known_fabric("dgx-superpod-h100")
    asking = {"model": "llama-3.1-8b", "on": fabric.name, **TRAINED[verb]}
    own, said = (
        answer_of(ask(verb, {**asking, **more}, catalog=CATALOG))
        for more in ({}, {"chips": fabric.num_chips})
    )
    assert own.inputs == said.inputs
    assert own.results == said.results
    assert "chips" in own.defaults
    assert not any("on does nothing" in note for note in own.notes)


def test_a_deadline_says_how_many_of_the_chips_that_were_built_it_takes() -> None:
    asking = {"model": "llama-3.1-8b", "on": "dgx-superpod-h100", "tokens": "100G", "deadline": "30d"}
    answer = answer_of(ask("plan train", asking, catalog=CATALOG))
    assert "chips" not in answer.inputs
    assert answer.results["num_chips"] < CATALOG.known_fabric("dgx-superpod-h100").num_chips


def test_replicas_say_how_many_of_the_chips_that_were_built_a_run_has() -> None:
    asking = {"model": "llama-3.1-8b", "on": BUILT, "dp": 4, "tp": 8}
    for verb in ("show memory", "simulate train"):
        assert answer_of(ask(verb, asking, catalog=CATALOG)).inputs["chips"] == 4 * 8


@pytest.mark.parametrize("verb", ["simulate train", "plan train"])
def test_a_topology_alone_says_no_number_of_chips(verb: str) -> None:
    asking = {"model": "llama-3.1-8b", "on": "fat-tree", **TRAINED[verb]}
    with pytest.raises(ScenarioError) as caught:
        ask(verb, asking, catalog=CATALOG)
    assert caught.value.field == "chips"


def usual(verb: str, on: str, chips: int | None) -> tuple[str, ...]:
    named = {"topologies" if verb == "show fabric" else "on": on, **({"chips": chips} if chips else {})}
    return answer_of(ask(verb, named | ABOUT[verb], catalog=CATALOG)).defaults

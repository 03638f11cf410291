"""Each input of a training verb changes what is answered, is refused, or the answer says that it changes nothing."""

from functools import cache
from typing import Any

import pytest
from tests.acts import SHELF, VALUES, answered, speaks_of
from tests.results import number

from datahall.answer import Answer
from datahall.answers.ask import ask, form_of
from datahall.errors import DatahallError

VERBS = ("show memory", "simulate train", "plan train", "show training-techniques")
# layouts in which one input or another has nothing to act on
LAYOUTS: dict[str, dict[str, Any]] = {
    "one chip": {"model": "llama-3.2-1b", "chips": 1, "global_batch": 4},
    "replicas": {"model": "llama-3.1-8b", "chips": 16},
    "pipeline": {"model": "llama-3.1-8b", "chips": 16, "pp": 4, "tp": 1},
    "two stages": {"model": "llama-3.1-8b", "chips": 16, "pp": 2},
    "experts together": {"model": "qwen3-30b-a3b", "chips": 16},
    "experts apart": {"model": "qwen3-30b-a3b", "chips": 16, "ep": 8},
    "context_exchange": {"model": "llama-3.1-8b", "chips": 16, "cp": 2},
    "sharded": {"model": "llama-3.1-8b", "chips": 16, "zero": 3},
    "torus": {"model": "llama-3.1-8b", "chips": 64, "on": "torus", "tp": 4, "pp": 4},
    "tuned": {"model": "llama-3.1-8b", "chips": 16, "lora": 8},
    "narrow": {"model": "llama-3.1-8b", "chips": 512, "on": "fat-tree", "zero": 3, "global_batch": 512},
}
ELSEWHERE = {
    "name",  # what to call the scenario
    "layout",  # a file: its words are inputs of their own
}


def inputs(verb: str) -> list[str]:
    form = form_of(verb)
    return [*form.fields, *(concept.name for concept in form.tables)]


@cache
def usual(verb: str, layout: str) -> Answer | None:
    return answered(verb, base(verb, layout))


def base(verb: str, layout: str) -> dict[str, Any]:
    known = {"seq": 2048, "global_batch": 64, **LAYOUTS[layout], "tokens": "1T"}
    return {name: value for name, value in known.items() if name in form_of(verb).fields}


@pytest.mark.parametrize(
    ("note", "names"),
    [
        ("zero does nothing here: one replica shares its state with nobody", {"zero"}),
        ("on, nic and domain do nothing here: all is one", {"on", "nic", "domain"}),
        ("512 replicas, of which 1 had to be simulated to know the zero", set()),
        ("the failure changes nothing of this step: it is whole", {"failure"}),
    ],
)
def test_a_note_is_of_the_inputs_that_it_names(note: str, names: set[str]) -> None:
    assert {name for name in VALUES if speaks_of(note, name)} == names


def test_every_input_is_walked_over() -> None:
    assert {name for verb in VERBS for name in inputs(verb)} <= VALUES.keys() | ELSEWHERE


# refused without another input, or beside the chips that all these layouts name
NOT_ALONE = {"deadline", "failure", "slow_by", "seed", "dp", "spot_price", "preempted_every", "hardware_age"} | {
    "without", "licensed",  # which leave no chip or all
}  # fmt: skip
NETWORK = {"on", "domain", "nic", "oversubscription"}  # which what a chip holds never hangs on
CASES = [
    pytest.param(verb, name, id=f"{verb} {name}")
    for verb in VERBS
    for name in inputs(verb)
    if name not in ELSEWHERE
]


@pytest.mark.parametrize(("verb", "name"), CASES)
def test_an_input_acts_or_is_refused_or_said_to_do_nothing(verb: str, name: str) -> None:
    seen = 0
    for layout in (
        LAYOUTS if verb != "plan train" else ("one chip", "experts apart", "tuned", "torus", "narrow")
    ):
        before = usual(verb, layout)
        after = answered(verb, {**base(verb, layout), name: VALUES[name]})
        if before is None or after is None:
            continue
        same = (before.results, before.tables) == (after.results, after.tables)
        # a layout that says the input itself is told so too
        known = () if name in LAYOUTS[layout] else before.notes
        said = [note for note in after.notes if note not in known and speaks_of(note, name)]
        assert not same or said, f"{name} changes nothing of {layout}, and nobody says so"
        seen += not same
    alone = NOT_ALONE | (NETWORK if verb == "show memory" else set())
    assert seen or name in alone, f"{name} never acts"


def test_a_failed_link_of_a_torus_acts_or_is_said_not_to() -> None:
    torus = {"model": "llama-3.1-8b", "chips": 64, "on": "torus", "global_batch": 64, "seq": 2048}
    whole, broken = (answered("simulate train", torus | more) for more in ({}, {"failure": "links=0"}))
    assert whole is not None
    assert broken is not None
    assert number(broken, "step_s") > number(whole, "step_s")
    assert any("the failure makes the step" in note for note in broken.notes)
    idle = answered("simulate train", {**torus, "tp": 4, "pp": 4, "failure": "links=0"})
    assert idle is not None
    assert any("the failure changes nothing of this step" in note for note in idle.notes)


def test_a_seed_of_nothing_random_is_refused() -> None:
    given = {"model": "llama-3.1-8b", "chips": 16, "global_batch": 64, "seq": 2048, "seed": 1}
    with pytest.raises(DatahallError, match="does nothing here") as caught:
        ask("simulate train", given, catalog=SHELF)
    assert caught.value.field == "seed"


@pytest.mark.parametrize("ep", [1, 2])
def test_an_imbalance_of_experts_that_every_chip_holds_is_said_to_do_nothing(ep: int) -> None:
    given = {"model": "qwen3-30b-a3b", "chips": 16, "global_batch": 64, "seq": 2048, "ep": ep, "zero": 3}
    found = answered("simulate train", given | {"imbalance": 1.2})
    assert found is not None
    assert ("imbalance does nothing here: every chip holds all experts" in found.notes) == (ep == 1)


@pytest.mark.parametrize("on", ["hgx", "full-mesh"])
def test_a_plan_stands_on_chips_that_no_network_joins(on: str) -> None:
    found = answered(
        "plan train", {"model": "llama-3.1-8b", "tokens": "1T", "chips": 8, "on": on, "global_batch": 64}
    )
    assert found is not None
    assert found.results["num_chips"] == 8
    assert "if the machine changes" not in [table.title for table in found.tables]


ONE_REPLICA = {"chips": 4, "tp": 4, "chip": "h200", "global_batch": 64}
ONE_STATE = "zero does nothing here: one replica shares its state with nobody"


@pytest.mark.parametrize(
    ("more", "idle"),
    [
        ({"model": "llama-3.1-8b", "zero": 2}, True),
        ({"model": "llama-3.1-8b", "zero": 3}, False),  # gathers before every micro-batch
        ({"model": "qwen3-30b-a3b", "etp": 1, "zero": 1}, False),  # four chips hold the same experts
    ],
)
def test_zero_is_called_idle_where_it_is(more: dict[str, Any], idle: bool) -> None:
    plain, other = (
        answered("show memory", ONE_REPLICA | more | {"zero": zero}) for zero in (0, more["zero"])
    )
    assert plain is not None
    assert other is not None
    assert (ONE_STATE in other.notes) == idle
    if idle:
        assert plain.results == other.results


def test_an_exchange_among_chips_that_share_nothing_is_said_to_do_nothing() -> None:
    plain = {"model": "llama-3.1-8b", "chips": 8, "tp": 2, "cp": 1, "global_batch": 64, "zero": 1}
    for verb in ("simulate train", "show memory"):
        found = answered(verb, plain | {"context_exchange": "all-to-all"})
        assert found is not None
        assert any(note.startswith("context_exchange does nothing here") for note in found.notes), verb

"""What answers claim follows from what is under it: forty questions out of those that every border is asked."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import msgspec
import pytest
from tests.answers.claims import unfounded
from tests.answers.drawing import Asked
from tests.answers.test_one_answer import QUESTIONS, as_question

import datahall as dh
from datahall.answer import Answer
from datahall.breakdown import given
from datahall.fabric.collectives.constants import library
from datahall.inference.engine.engine import engines
from datahall.silicon.calibration import constant_sets
from datahall.training.step.framework import frameworks

NUM_ASKED = 40


def asked() -> list[Asked]:
    """Questions whose answers have figures, drawn the same way on every run."""
    pool = [one for one in QUESTIONS if not one.verb.startswith("catalog")]
    return random.Random(9).sample(pool, NUM_ASKED)


@pytest.mark.parametrize("question", asked(), ids=lambda question: question.verb)
def test_an_answer_claims_what_follows_from_what_is_under_it(question: Asked) -> None:
    try:
        answer = dh.ask(as_question(question))
    except dh.DatahallError:
        return  # a question that is refused claims nothing
    assert unfounded(answer) == []


@pytest.fixture(scope="module")
def roofline() -> Answer:
    return dh.show_roofline("h200", model="llama-3.1-8b", batch=32)


def wider(answer: Answer) -> Answer:
    return msgspec.structs.replace(answer, results=answer.results | {"pass_high_s": 1.0})


def other_headline(answer: Answer) -> Answer:
    return msgspec.structs.replace(answer, headline=answer.headline.replace("32 sequences", "33 sequences"))


def other_figure(answer: Answer) -> Answer:
    return msgspec.structs.replace(answer, figure=given("a count of something else", 7, "count"))


def no_input(answer: Answer) -> Answer:
    made_up = given("a pass", answer.figure.value, "s")  # type: ignore[union-attr]
    return msgspec.structs.replace(answer, figure=made_up)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (wider, "the band of pass_s is not"),
        (other_headline, '"33" of the headline'),
        (other_figure, "stands neither in the results"),
        (no_input, "said to be an input"),
    ],
)
def test_an_answer_that_claims_more_is_found(
    roofline: Answer, change: Callable[[Answer], Answer], words: str
) -> None:
    assert unfounded(roofline) == []
    assert any(words in line for line in unfounded(change(roofline)))


def stated_bands() -> Iterator[tuple[str, tuple[float, float]]]:
    """Every band that constants state, as ratios of measured over predicted."""
    yield from ((f"collectives {name}", band) for name, band in library().bands.items())
    for name, constants in constant_sets().items():
        yield from ((f"{name} {kind}", band) for kind, band in constants.bands.items())
    for kit in frameworks().values():
        kinds = (kit.band, kit.expert_band, kit.adapter_band, kit.kin_band)
        yield from ((f"framework {kit.name}", band) for band in kinds)
    for one in engines().values():
        yield from ((f"{one.name} {metric}", one.band(metric)) for metric in ("TTFT", "TPOT"))


def test_every_band_that_is_stated_holds_what_is_predicted() -> None:
    assert [name for name, (low, high) in stated_bands() if not 0 < low <= 1 <= high] == []


def test_an_input_that_says_nothing_is_not_said() -> None:
    """A default stands among the inputs only beside what it is about."""
    plain = dh.show_fit("llama-3.1-8b", chip="h200").inputs
    assert "adapter_rank" not in plain
    assert (plain["context"], plain["batch"], plain["precision"]) == (8192, 1, "bf16"), (
        "defaults that say something"
    )
    assert dh.show_fit("llama-3.1-8b", chip="h200", adapters=4).inputs["adapter_rank"] == 16
    assert "oversubscription" not in dh.show_collective("all-reduce", size="1MB", chips=8).inputs
    assert (
        dh.show_collective("all-reduce", size="1MB", chips=64, on="fat-tree").inputs["oversubscription"]
        == "1:1"
    )

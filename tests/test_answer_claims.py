"""What answers claim follows from what is under it, and what does not is found (tests/answers holds them all to it)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import pytest
from tests.answers.claims import garbled, unfounded
from tests.results import number

import datahall as dh
from datahall.answer import Answer
from datahall.breakdown import given
from datahall.fabric.collectives.constants import library
from datahall.inference.engine.engine import engines
from datahall.silicon.calibration import constant_sets
from datahall.training.step.framework import frameworks
from datahall.units import fmt


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


def another_input(answer: Answer) -> Answer:
    """A leaf that has the name of one input and the value of another."""
    return msgspec.structs.replace(answer, figure=given("batch", answer.inputs["context"], "count"))  # type: ignore[arg-type]


def sum_of_results(answer: Answer) -> Answer:
    """A headline that says what two results are together, which no rule declares."""
    both = number(answer, "pass_s") + number(answer, "roofline_s")
    return msgspec.structs.replace(answer, headline=f"{answer.headline} Both take {fmt(both, 's')}.")


def other_unit(answer: Answer) -> Answer:
    """A headline that has the digits of a result and not its unit."""
    return msgspec.structs.replace(answer, headline=answer.headline.replace(" ms (", " µs ("))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (wider, "the band of pass_s is not"),
        (other_headline, '"33" of the headline'),
        (other_figure, "stands neither in the results"),
        (no_input, "said to be an input"),
        (another_input, "batch = 8,192 is said to be an input"),
        (sum_of_results, "of the headline stands nowhere else"),
        (other_unit, 'µs" of the headline stands nowhere else'),
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


@pytest.mark.parametrize(
    "text", ["1.04858e+06 tokens", "1 chips", "inf s", "takes nan s", "None of", "1 replicas of 4 chips"]
)
def test_words_that_no_answer_has_are_found(text: str) -> None:
    assert garbled(f"It is {text}.")


@pytest.mark.parametrize(
    "text", ["21 chips", "1 chip", "0.1 replicas", "gpt-oss-1e", "the information", "info"]
)
def test_words_that_an_answer_may_have_are_not(text: str) -> None:
    assert not garbled(f"It is {text}.")


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

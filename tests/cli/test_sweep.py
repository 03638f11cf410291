"""Every chip is asked about by verbs that take one, each time with another model: nothing ends badly.

Each chip meets a quarter of the verbs, and each verb a quarter of the chips; `python tests/sweep.py` asks all.
"""

from __future__ import annotations

import pytest
from tests.sweep import CHIPS, MODELS, QUESTIONS, Ending, asked

from datahall.answers.ask import form_of
from datahall.answers.verbs import VERBS


@pytest.mark.parametrize("chip", CHIPS)
def test_every_verb_ends_well_on_a_chip(chip: str) -> None:
    at = CHIPS.index(chip)
    for number, question in enumerate(QUESTIONS.values()):
        if (at + number) % 4:
            continue
        model = MODELS[(at + 5 * number) % len(MODELS)]
        ending = asked(question.format(chip=chip, model=model))
        assert ending.well, ending


def test_the_sweep_asks_every_verb_that_takes_a_model_and_chips() -> None:
    """A new verb about both must be swept too, but for one that asks an endpoint that is there."""
    taking = {
        verb.name
        for verb in VERBS
        if "model" in (names := form_of(verb.name).fields) and not names.keys().isdisjoint({"chip", "chips"})
    }
    assert taking - {"gateway load"} == set(QUESTIONS)


def test_a_sweep_takes_every_chip_and_a_dozen_models() -> None:
    assert len(CHIPS) > 60
    assert len(set(MODELS)) == 12


@pytest.mark.parametrize(
    ("code", "out", "well"),
    [
        (0, '{"value": 1.0}', True),
        (2, "", True),
        (3, '{"value": 1.0}', False),
        (0, '{"value": NaN}', False),
        (0, '{"value": -Infinity}', False),
        (0, '{"note": "NaN is a word, Infinity Fabric a link"}', True),
    ],
)
def test_what_ends_well(code: int, out: str, well: bool) -> None:
    assert Ending("", code, out, "error: said" if code else "").well == well

"""What verbs say as Python functions of arguments that do not go."""

from __future__ import annotations

import pytest

import datahall as dh
from datahall.answers.functions import function_of
from datahall.answers.verb import Verb
from datahall.answers.verbs import VERBS
from datahall.errors import ScenarioError

SEVERAL = [verb for verb in VERBS if verb.several]


def test_words_one_after_the_other_are_meant_as_a_list() -> None:
    with pytest.raises(ScenarioError, match="show_transport takes several transports as one list") as caught:
        dh.show_transport("roce", "tcp", chips=64)  # type: ignore[call-arg, misc]
    assert 'show_transport(["roce", "tcp"])' in str(caught.value)


@pytest.mark.parametrize("verb", SEVERAL, ids=[verb.name for verb in SEVERAL])
def test_every_verb_with_a_list_says_so(verb: Verb) -> None:
    words = [f"x{number}" for number in range(len(verb.arguments) + 1)]
    with pytest.raises(ScenarioError, match="as one list") as caught:
        function_of(verb)(*words)
    assert f'["x{len(words) - 2}", "x{len(words) - 1}"])' in str(caught.value)


def test_a_word_too_many_of_a_verb_without_a_list_is_counted() -> None:
    with pytest.raises(ScenarioError, match="takes 1 positional argument, not 2"):
        dh.show_datapath("resnet50", "unet3d", chips=8)  # type: ignore[call-arg, misc]

"""A flag that asks another verb: the ladder of training by `show techniques … --train`."""

from collections.abc import Callable

import pytest

from datahall.answers.verbs import BY_NAME, VERBS

JOB = ("llama-3.2-1b", "--chips", "8", "--global-batch", "16", "--quiet")


def test_the_flag_asks_the_other_verb_wherever_it_stands(datahall: Callable) -> None:
    plain = datahall("show", "training-techniques", *JOB)
    assert plain.code == 0
    for words in (("show", "techniques", *JOB, "--train"), ("show", "techniques", "--train", *JOB)):
        assert datahall(*words).out == plain.out


def test_it_is_explained_as_the_other_is(datahall: Callable) -> None:
    turned = datahall("explain", "show", "techniques", *JOB, "--train")
    assert turned.out == datahall("explain", "show", "training-techniques", *JOB).out


def test_help_tells_of_it_and_is_the_other_verbs_with_it(datahall: Callable) -> None:
    assert "--train" in datahall("show", "techniques", "--help").out
    assert "datahall show training-techniques" in datahall("show", "techniques", "--train", "--help").out


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb.turned[0]], ids=lambda verb: verb.name)
def test_the_other_verb_begins_with_the_same_word_and_has_no_such_input(verb: object) -> None:
    flag, other = verb.turned  # type: ignore[attr-defined]
    assert BY_NAME[other].group == verb.group  # type: ignore[attr-defined]
    assert not BY_NAME[other].turned[0], flag

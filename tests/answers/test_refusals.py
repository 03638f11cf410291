"""A wrong value is refused at every border alike, with the same words, and each border names the input its own way."""

from __future__ import annotations

from typing import Any

import pytest
from tests.answers.drawing import Asked, all_questions, asked_verbs
from tests.answers.test_one_answer import as_question, as_toml, as_words, sentences

import datahall as dh
from datahall.answers.ask import ask, form_of
from datahall.answers.verbs import BY_NAME
from datahall.catalog.document import parse
from datahall.cli.main import root
from datahall.errors import DatahallError
from datahall.scenario.field import Field
from datahall.scenario.kinds import Choice, Count, Kind, Listed, Name, Percentile, Quantity, Rate, Share

WRONG: dict[type[Kind], tuple[Any, ...]] = {
    Count: (-3, "1.5", "many"),
    Quantity: ("-3 apples", "none"),
    Rate: (-1, "often"),
    Share: ("300000 %", "half"),
    Percentile: ("200 %", "most"),
    Choice: ("nonsense",),
}
FIRST = {asked.verb: asked for asked in reversed(all_questions(3, 1))}


def wrong_values(kind: Kind) -> tuple[Any, ...]:
    if isinstance(kind, Listed):
        return tuple([value] for value in wrong_values(kind.of))
    if isinstance(kind, Name):
        return ("nonsense-9000",) if kind.of in ("chip", "model") else ()
    return WRONG.get(type(kind), ())


def cases(verb: str) -> list[tuple[Field, Asked]]:
    """Each input with each wrong value, beside what the question must say."""
    form = form_of(verb)
    must = {name: FIRST[verb].said[name] for name in form.required if name in FIRST[verb].said}
    return [
        (field, Asked(verb, {**must, name: value}, {}))
        for name, field in form.fields.items()
        for value in wrong_values(field.kind)
    ]


def refused(ask_it: Any) -> DatahallError:
    with pytest.raises(DatahallError) as caught:
        ask_it()
    return caught.value


@pytest.mark.parametrize("verb", asked_verbs())
def test_a_wrong_value_is_refused_at_every_border_in_the_same_words(verb: str) -> None:
    form, function = form_of(verb), getattr(dh, BY_NAME[verb].function)
    for field, asked in cases(verb):
        body = as_question(asked)
        flags = refused(lambda: root.main([*as_words(asked), "--quiet"], standalone_mode=False, obj={}))  # noqa: B023
        python = refused(lambda: function(**asked.said))  # noqa: B023
        posted = refused(lambda: dh.ask(body))  # noqa: B023
        filed = refused(lambda: ask(verb, document=parse(as_toml(body), "q.toml")))  # noqa: B023
        assert sentences(python) == sentences(flags)
        assert sentences(posted) == sentences(flags)
        assert sentences(filed) == sentences(flags)
        assert form.flag(field.name) in str(flags)
        assert f"--> {field.name}" in str(python) or f"  {field.name}: " in str(python)
        assert "q.toml:" in str(filed)
        bare = f"{field.name}: "
        assert not flags.lines()[0].removeprefix(f"error[{flags.code}]: ").startswith(bare)

"""What is said of the network is said to change nothing where no group crosses it, by every verb alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from datahall.answer import Answer
from datahall.answers.ask import ask
from datahall.answers.reply import answer_of
from datahall.catalog import Catalog

SHELF = Catalog(user=False)
TRAINED = {"model": "llama-3.1-8b", "chip": "h100-sxm", "global_batch": 64}
ASKED: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("show collective", {"collective": "all-reduce", "size": "1MB", "chip": "h100-sxm"}),
    ("simulate train", TRAINED | {"tp": 8, "recompute": "full"}),
    ("plan train", TRAINED | {"tokens": "1e9"}),
    ("show memory", TRAINED | {"tp": 8}),
)


def asked(verb: str, **said: Any) -> Answer:
    return answer_of(ask(verb, said, catalog=SHELF))


def named(found: Answer) -> list[str]:
    return [note for note in found.notes if "nothing here" in note]


@pytest.mark.parametrize("wired", [{"nic": "10 Gb/s"}, {"on": "fat-tree"}, {"domain": 16}])
@pytest.mark.parametrize(("verb", "said"), ASKED)
def test_inside_one_domain_the_network_changes_nothing(
    verb: str, said: Mapping[str, Any], wired: dict[str, Any]
) -> None:
    plain, other = (asked(verb, **said, **more, chips=8) for more in ({}, wired))
    assert plain.results == other.results
    (note,) = named(other)
    assert note.startswith(f"{next(iter(wired))} does nothing here: ")
    assert not named(plain)


@pytest.mark.parametrize(("verb", "said"), ASKED[:3])
def test_across_domains_it_does(verb: str, said: Mapping[str, Any]) -> None:
    plain, other = (asked(verb, **said, chips=64, nic=rate) for rate in ("400 Gb/s", "10 Gb/s"))
    assert plain.results != other.results
    assert not named(other)

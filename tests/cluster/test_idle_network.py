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


def test_a_value_that_the_machine_has_anyway_is_not_said_to_be_beside_another_that_binds() -> None:
    said = {"collective": "all-reduce", "size": "1GB", "chip": "h100-sxm", "chips": 64}
    found = asked("show collective", **said, nic="400 Gb/s", version="2.27")
    assert [note.partition(": ")[2] for note in named(found)] == [
        "NCCL 2.27 is taken without it",
        "the machine has the same without it",
    ]


def test_a_slice_that_does_not_wrap_is_timed_as_a_mesh() -> None:
    said = {"collective": "all-gather", "size": "1kB", "chip": "tpu-v5p"}
    small = asked("show collective", **said, on="tpu-pod", chips=32)
    mesh = asked("show collective", **said, on="mesh", sides="2x4x4")
    assert small.results["time_s"] == pytest.approx(mesh.results["time_s"])


def test_memory_stands_on_no_network_whatever_its_shape() -> None:
    for on in ("torus", "fat-tree"):
        (note,) = named(asked("show memory", **TRAINED | {"tp": 8}, chips=64, on=on))
        assert note.startswith("on does nothing here")


@pytest.mark.parametrize(
    ("said", "wired"),
    [
        ({"chips": 16, "tp": 16}, {"domain": 16}),
        ({"chips": 512, "zero": 3, "global_batch": 512}, {"on": "fat-tree", "oversubscription": "31:1"}),
        ({"chips": 512, "zero": 1, "global_batch": 512, "on": "fat-tree"}, {"failure": "nics=0,left=50 %"}),
    ],
)
def test_what_a_step_feels_is_not_said_to_do_nothing(said: dict[str, Any], wired: dict[str, Any]) -> None:
    whole = TRAINED | {"recompute": "full"} | said
    plain, other = (asked("simulate train", **whole, **more) for more in ({}, wired))
    assert plain.results["step_s"] != other.results["step_s"]
    assert not [note for note in named(other) for name in wired if name in note]

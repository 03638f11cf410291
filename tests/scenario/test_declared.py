"""What the declarations say is what the manual says: a default changes only where a person reads of it."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

from datahall.catalog import load
from datahall.errors import ScenarioError
from datahall.scenario.field import CONCEPTS, Field, fields
from datahall.scenario.kinds import Choice, Count, Listed, Name, Quantity, Reading, Text
from datahall.scenario.sections.deployment import MOST_REPLICAS, split_roles

MANUAL = (Path(__file__).parents[2] / "docs" / "reference.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(\w+)` \| [^|]* \| ([^|]*) \|", re.MULTILINE)


def tables() -> dict[str, dict[str, str]]:
    """The default of each key, by section, as the manual has it."""
    parts = re.split(r"^### `\[+(\w+)\]+`", MANUAL, flags=re.MULTILINE)[1:]
    return {
        title: {key: default.strip() for key, default in ROW.findall(rows)}
        for title, rows in zip(parts[::2], parts[1::2], strict=True)
    }


ASKED_BY_NO_FILE = {"", "files", "comparison", "sweep", "key", "gateway", "billing", "endpoint"}


@pytest.mark.parametrize("section", [name for name in CONCEPTS if name not in ASKED_BY_NO_FILE])
def test_the_manual_names_every_default(section: str) -> None:
    assert {field.key: field.shown_default for field in fields(section)} == tables()[section]


RATES = [
    field for name in CONCEPTS for field in fields(name) if getattr(field.kind, "unit", "") == "bytes_per_s"
]


@pytest.mark.parametrize("wrong", ["0 GB/s", "-3 GB/s", "1e30 GB/s", "1e-30 GB/s"])
@pytest.mark.parametrize("field", RATES, ids=lambda field: field.path)
def test_a_rate_is_one_that_a_link_may_have(field: Field, wrong: str) -> None:
    at = Reading(catalog=load())
    for right in ("1 kB/s", "400 Gb/s", "14.4 TB/s"):
        field.kind.read(right, at)
    with pytest.raises(ScenarioError, match=r"it must be at (least|most)"):
        field.kind.read(wrong, at)


def test_pools_come_with_prompts_first_whatever_their_order() -> None:
    assert split_roles("decode=8, prefill = 4 x h200") == [("prefill", 4, "h200"), ("decode", 8, "")]
    assert split_roles(f"prefill=1,decode={MOST_REPLICAS}")[1][1] == MOST_REPLICAS


@pytest.mark.parametrize(
    "text", ["prefill=0,decode=1", f"prefill=1,decode={MOST_REPLICAS + 1}", "prefill=1", "both=1", ""]
)
def test_what_is_no_pair_of_pools_is_refused(text: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        split_roles(text)
    assert caught.value.field == "disaggregated"


# names of flags that keep two meanings, of which a verb has one, and why
TWO_MEANINGS = {
    "chips": "which kinds, where a plan chooses; how many, everywhere else: nobody asks for either by another word",
    "disaggregated": "whether pools are weighed, where a plan chooses; which there are, where a service is simulated",
    "domain": "chips that need no network, of a fabric; what was measured, the one argument of validate",
    "routing": "of requests to replicas, and of flows to paths: each field has no other word for it",
    "storage": "how fast it is, of a checkpoint; which it is, of a way of data: a checkpoint asks for no more",
    "name": "of a scenario, in a table or a job, and of a key: what each is called has no other word",
    "budget": "of a run, and of a key, which is over a day or a month: both are what may be spent",
    "state": "which numbers a training run keeps, and the folder in which a gateway keeps its own",
    "window": "tokens that a layer sees, and how long one looks back at a gateway: both are called so in the field",
    "offload": "what leaves a chip, of a training run; where to, of a working set, which is all there is to leave",
}


def meant_alike(one: Field, other: Field) -> bool:
    """Whether two inputs of one name hold the same: words of one list, numbers of one unit, names of one thing."""
    kinds = [field.kind.of if isinstance(field.kind, Listed) else field.kind for field in (one, other)]
    if all(isinstance(kind, Choice) for kind in kinds):
        return not set.isdisjoint(*(set(kind.options) for kind in kinds))  # type: ignore[attr-defined]
    if all(isinstance(kind, Count | Quantity) for kind in kinds):
        return kinds[0].unit == kinds[1].unit  # type: ignore[attr-defined]
    if all(isinstance(kind, Name | Text) for kind in kinds):
        return one.placeholder == other.placeholder
    return type(kinds[0]) is type(kinds[1])


def test_a_name_has_one_meaning() -> None:
    """Whichever verb takes it; a key of a table that a flag gives whole stands beside the others of its table."""
    declared = [one for name, concept in CONCEPTS.items() if not concept.inline for one in fields(name)]
    unlike = {
        one.name
        for one, other in combinations(declared, 2)
        if one.name == other.name and not meant_alike(one, other)
    }
    assert unlike == TWO_MEANINGS.keys(), "give it a name of its own"


@pytest.mark.parametrize(
    ("section", "key", "raw", "words"),
    [
        ("candidates", "chips", "8", "is a number, not the name of a chip"),
        ("candidates", "chips", "16384", "is a number, not the name of a chip"),
        ("fabric", "chips", "h100-sxm,h200", "a whole number, e.g. 8: How many chips (default: all"),
        ("fabric", "domain", "kernels", "a whole number, e.g. 8: Chips that need no network"),
        ("files", "domain", "8", "one of kernels, collectives"),
        ("router", "routing", "ecmp", "one of round-robin"),
        ("network", "routing", "session", "one of deterministic, ecmp"),
        ("layout", "offload", "nvme", "optimizer:nvme"),
        ("working_set", "offload", "optimizer", "one of host, nvme"),
    ],
)
def test_a_value_of_the_other_meaning_is_told_which_is_meant(
    section: str, key: str, raw: str, words: str
) -> None:
    kind = next(field.kind for field in fields(section) if field.key == key)
    with pytest.raises(ScenarioError) as caught:
        kind.read(raw, Reading(catalog=load()))
    assert words in f"{caught.value.message} {caught.value.hint}"

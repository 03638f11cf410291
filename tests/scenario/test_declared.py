"""What the declarations say is what the manual says: a default changes only where a person reads of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from datahall.errors import ScenarioError
from datahall.scenario.field import CONCEPTS, fields
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


ASKED_BY_NO_FILE = {"", "files"}


@pytest.mark.parametrize("section", [name for name in CONCEPTS if name not in ASKED_BY_NO_FILE])
def test_the_manual_names_every_default(section: str) -> None:
    assert {field.key: field.shown_default for field in fields(section)} == tables()[section]


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

"""What a person's own catalogue says is used wherever it is asked with."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import datahall as dh
from datahall.catalog import Catalog
from datahall.fabric.collectives.engine_all_reduce import constants_of
from datahall.fabric.collectives.system import system_of

DRAFT = """[model.my-draft]
title = "My draft"
family = "llama"
year = 2026
num_layers = 4
hidden = 1024
num_heads = 8
ffn = 4096
vocab = 128256
max_context = 131072
published_parameters = "330M"
source = { title = "my config.json", date = "2026-03" }
"""


@pytest.fixture
def own(tmp_path: Path) -> Catalog:
    (tmp_path / "draft.toml").write_text(DRAFT, encoding="utf-8")
    return Catalog(extra=[tmp_path], user=False)


def test_a_draft_of_ones_own_is_among_the_techniques(own: Catalog) -> None:
    asked = {"chip": "h200", "rate": 2, "isl": 1000, "osl": 100, "catalog": own}
    found = dh.show_techniques("llama-3.1-8b", draft="my-draft", **asked)
    assert found.inputs["draft"] == "my-draft"
    assert found.results != dh.show_techniques("llama-3.1-8b", draft="ngram", **asked).results


def test_a_service_drafts_with_a_model_of_ones_own(own: Catalog) -> None:
    asked = {"chip": "h200", "rate": 2, "requests": 100, "isl": 1000, "osl": 100, "catalog": own}
    drafted = dh.simulate_serve("llama-3.1-8b", draft="my-draft", **asked)
    assert drafted.results != dh.simulate_serve("llama-3.1-8b", draft="ngram", **asked).results


def test_a_chip_of_ones_own_has_the_relatives_of_its_family() -> None:
    """Renamed, as a person's entry is: not in the shipped catalogue, and wired as the chip it was taken from."""
    chip = Catalog(user=False).chip("h800-sxm")
    mine = msgspec.structs.replace(chip, name="my-h800")
    assert constants_of(system_of(mine), "vllm") == constants_of(system_of(chip), "vllm") is not None

"""What is wrong with a question about a fabric is said of the input at fault, with a value that would do."""

from __future__ import annotations

from typing import Any

import pytest

from datahall.answers.ask import ask
from datahall.catalog import Catalog
from datahall.errors import DatahallError, spelled

FABRIC, COLLECTIVE = "show fabric", "show collective"
AN_ALL_REDUCE = {"collective": "all-reduce", "size": "1GB"}
WRONG: list[tuple[str, dict[str, Any], str, str]] = [
    (COLLECTIVE, {**AN_ALL_REDUCE, "chips": 1}, "chips", "chips=2"),
    (COLLECTIVE, {**AN_ALL_REDUCE, "chips": 16, "algorithm": "pat"}, "algorithm", "nvls-tree"),
    (COLLECTIVE, {**AN_ALL_REDUCE, "chips": 16, "version": "9.9"}, "version", "2.27"),
    (FABRIC, {"topologies": "fat-tree", "chips": 64, "domain": 7}, "domain", "domain=8"),
    (FABRIC, {"topologies": "fat-tree", "chips": 9}, "chips", "8 or 16"),
    (COLLECTIVE, {**AN_ALL_REDUCE, "chips": 9, "on": "fat-tre"}, "on", "fat-tree"),
    (FABRIC, {"topologies": "fat-tree", "chips": 64, "radix": 3}, "radix", "radix=6"),
    (FABRIC, {"topologies": "dragonfly-plus", "chips": 64, "radix": 7}, "radix", "radix=6 or radix=8"),
    (FABRIC, {"topologies": "tree", "chips": 64, "radix": 2}, "radix", "radix=3"),
    (FABRIC, {"topologies": "fat-tree", "chips": 64, "tiers": 9}, "tiers", ""),
    (FABRIC, {"topologies": "fat-tree", "chips": 4096, "tiers": 1}, "chips", "chips=64"),
    (FABRIC, {"topologies": "fat-tree", "chips": 64, "oversubscription": "0:1"}, "oversubscription", "1:1"),
    (FABRIC, {"topologies": "fat-tree", "chips": 64, "oversubscription": "99:1"}, "oversubscription", "63:1"),
    (FABRIC, {"topologies": "torus", "chips": 64, "sides": "4xy"}, "sides", "16x16x24"),
    (FABRIC, {"topologies": "torus", "chips": 9217}, "chips", "9,216"),
    (FABRIC, {"topologies": "full-mesh", "chips": 16}, "chips", "chips=8"),
    (COLLECTIVE, {**AN_ALL_REDUCE, "on": "full-mesh", "chips": 16}, "chips", "chips=8"),
    (COLLECTIVE, {**AN_ALL_REDUCE, "on": "full-mesh", "chip": "h100-sxm", "chips": 16}, "on", "chips=8"),
    ("simulate fabric", {"on": "full-mesh", "chips": 16, "job": {"size": "1MB"}}, "chips", "chips=8"),
    (
        "simulate fabric",
        {"on": "fat-tree", "chips": 16, "job": {"size": "1MB", "ranks": [3]}},
        "job",
        "ranks=2",
    ),
    ("simulate train", {"model": "llama-3.1-8b", "on": "full-mesh", "chips": 16}, "chips", "chips=8"),
    (FABRIC, {"topologies": "tpu-pod", "chips": 100}, "chips", "64 or 128"),
    (FABRIC, {"topologies": "hyperx", "chips": 1_000_000}, "chips", "chips=10648"),
    (FABRIC, {"topologies": "tree,knot", "chips": 64}, "topologies", "fat-tree"),
]


@pytest.mark.parametrize(("verb", "asked", "field", "near"), WRONG)
def test_an_error_names_the_input_and_what_would_do(
    verb: str, asked: dict[str, Any], field: str, near: str, shelf: Catalog
) -> None:
    with pytest.raises(DatahallError) as caught:
        ask(verb, asked, catalog=shelf)
    assert caught.value.field == field
    assert near in spelled(caught.value.hint)

"""What is offered after an answer that says no: commands whose answer is yes, or none."""

from __future__ import annotations

import shlex

import pytest

from datahall.answers.ask import ask, form_of
from datahall.answers.reply import answer_of
from datahall.catalog import Catalog
from datahall.cli.main import run

SHELF = Catalog(user=False)


@pytest.mark.parametrize("verb", ["simulate train", "show memory"])
@pytest.mark.parametrize(
    ("asked", "change"),
    [
        ({"model": "llama-3.1-70b", "chips": 8}, None),  # no single change is enough
        ({"model": "llama-3.1-70b", "chips": 64, "tp": 8}, "--zero 2"),
        ({"model": "llama-3.1-8b", "chips": 8}, "--zero 2"),
        ({"model": "llama-3.1-8b", "chips": 8, "dp": 8, "zero": 1}, "--dp 8 --zero 2"),
        ({"model": "mixtral-8x7b", "chips": 64, "ep": 8}, "--recompute full"),
        ({"model": "llama-3.1-70b", "chips": 64, "tp": 4, "pp": 4, "on": "fat-tree"}, "--zero 2"),
        ({"model": "llama-3.1-70b", "chips": 64, "tp": 2, "dp": 32, "zero": 3}, "--tp 4 --dp 16"),
        ({"model": "llama-3.1-70b", "chips": 64, "dp": 64, "zero": 3}, "--offload activations"),
    ],
)
def test_a_layout_that_does_not_fit_is_followed_by_ones_that_do(
    verb: str, asked: dict[str, object], change: str | None
) -> None:
    """A plan looks for its own layout, and may offload only what it is told to."""
    found = answer_of(ask(form_of(verb).verb, asked, catalog=SHELF))
    assert found.verdict == "no"
    assert bool(found.next_commands) == (change is not None)
    for command in found.next_commands:
        if change is not None and ("plan train" not in command or "--offload" in change):
            assert change in command
        assert run([*shlex.split(command)[1:], "--quiet", "--format", "json"]) == 0, command


def test_a_model_that_fits_no_group_is_followed_by_no_pass_of_it() -> None:
    found = answer_of(ask("show fit", {"model": "llama-3.1-70b", "chip": "h100-sxm", "tp": 1}, catalog=SHELF))
    assert found.verdict == "no"
    for command in found.next_commands:
        assert run([*shlex.split(command)[1:], "--quiet", "--format", "json"]) == 0, command

"""The site of a plan where nobody knows what it draws: the reason, and every option that then does nothing."""

from __future__ import annotations

from typing import Any

import pytest

import datahall as dh
from datahall.answers.ask import form_of
from datahall.catalog.entries.failures import COPY_TIERS
from datahall.scenario.field import grouped
from datahall.scenario.sections.operations.run import RESTART

# another value than the usual one, of each input of a site that plans take
SITE: dict[str, Any] = {"facility": "google", "pue": 1.3, "grid": "sweden"}
TRAINED: dict[str, Any] = {"model": "llama-3.1-8b", "tokens": "1T", "chips": 64}


@pytest.mark.parametrize("verb", ["plan train", "plan serve"])
def test_each_option_of_the_site_has_a_value_here(verb: str) -> None:
    taken = {name for name, field in form_of(verb).fields.items() if field.section == "site"}
    assert taken == set(SITE)


@pytest.mark.parametrize("option", SITE)
def test_each_option_of_a_site_whose_power_is_unknown_is_said_to_do_nothing(option: str) -> None:
    plan = dh.plan_train(**TRAINED, chip="ascend-950dt", **{option: SITE[option]})
    said = [note for note in plan.notes if "nothing here" in note and f"{option} " in note]
    assert len(said) == 1
    assert "the power limit of" in said[0]
    assert "is not published" in said[0]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"chip": "ascend-950dt"}, "the power limit of"),
        ({"nic": "1600Gb/s"}, "switch with ports of 1600 Gb/s"),
    ],
)
def test_why_power_is_unknown_is_said(said: dict[str, str], why: str) -> None:
    plan = dh.plan_train(**TRAINED, **said)
    table = next(one for one in plan.tables if one.title == "over the whole run")
    assert "what it draws is not known: " in table.note
    assert why in table.note


def test_tiers_of_help_are_those_there_are() -> None:
    for verb in ("show checkpoint", "simulate run"):
        kind = form_of(verb).fields["tier"].kind
        assert ", ".join(COPY_TIERS) in kind.help, verb


def test_parts_of_a_restart_are_those_that_it_is_said_in_place_of() -> None:
    names = {one.name for one in grouped("recovery", RESTART)}
    assert names == {"detect", "reschedule", "warm_up", "restart"}
    for verb in ("plan train", "plan serve", "show checkpoint", "simulate run"):
        assert names <= set(form_of(verb).fields), verb

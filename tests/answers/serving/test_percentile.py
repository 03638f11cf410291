"""A percentile has one spelling in every answer: P95."""

from __future__ import annotations

import re

import pytest

import datahall as dh
from datahall.answer import Answer
from datahall.catalog import Catalog
from datahall.report.output import render

SHELF = Catalog(user=False)


@pytest.fixture(scope="module")
def answers() -> list[Answer]:
    said = {"rate": 2, "isl": 300, "osl": 20, "percentile": "99.9", "catalog": SHELF}
    return [
        dh.simulate_serve("llama-3.1-8b", requests=50, **said),
        dh.plan_serve("llama-3.1-8b", chips="h100-sxm", precision="bf16", **said),
        dh.show_techniques("llama-3.1-8b", **said),
    ]


@pytest.mark.parametrize("form", ["html", "md", "table", "explain"])
def test_a_percentile_is_shown_by_its_name(answers: list[Answer], form: str) -> None:
    for answer in answers:
        text = render(answer, form)
        assert not re.findall(r"(?<!-)percentile(?: =)? (?![P=])\S+", text)
        assert "P99.9" in text


def test_the_same_percentile_is_the_same_question() -> None:
    found = [
        dh.simulate_serve("llama-3.1-8b", rate=2, requests=20, percentile=one, catalog=SHELF).inputs[
            "percentile"
        ]
        for one in ("P95", 95, "95 %", 0.95)
    ]
    assert found == [0.95] * 4

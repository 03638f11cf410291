"""What sections of a plan say is drawn from chains that can be opened, and that hold."""

from __future__ import annotations

from math import isclose
from typing import Any

import pytest
from tests.answers.claims import unfounded
from tests.results import number

import datahall as dh
from datahall.answer import Answer
from datahall.answers.ask import form_of
from datahall.answers.sections import section_figures
from datahall.breakdown import false_nodes
from datahall.catalog import Catalog
from datahall.economics.sections.supply import Supplied
from datahall.planner.serving.question import plan_serving
from datahall.planner.training.question import plan_training
from datahall.report.screen import explain_text, table_text
from datahall.report.wire import decode
from datahall.scenario.read import read_names

CATALOG = Catalog(user=False)
TRAINED: dict[str, Any] = {"model": "llama-3.1-8b", "tokens": "1T", "chips": 256, "grid": "sweden"}
SERVED: dict[str, Any] = {"model": "llama-3.1-8b", "rate": 50, "chips": ["h100-sxm"], "restart": "2h"}
OF_A_RUN = (
    "ettr_fraction", "elapsed_s", "num_spares", "checkpoint_bytes", "checkpoint_bytes_per_s", "mttf_s",
    "restart_s", "dataset_bytes", "read_bytes_per_s", "provisioned_w", "site_w", "peak_w", "swing_w", "token_j",
    "run_j", "run_kg",
)  # fmt: skip
OF_A_SERVICE = (
    "mttf_s", "back_s", "lost_fraction", "num_more_replicas", "num_spares", "weights_bytes", "load_s",
    "provisioned_w", "site_w", "peak_w", "rest_w", "swing_w", "token_j", "day_j", "day_kg",
)  # fmt: skip


@pytest.fixture(scope="module")
def trained() -> Answer:
    return dh.plan_train(**TRAINED)


@pytest.fixture(scope="module")
def served() -> Answer:
    return dh.plan_serve(**SERVED)


def check(answer: Answer, names: tuple[str, ...]) -> None:
    for figure in answer.beside:
        assert false_nodes(figure) == []
    nodes = [node.value for figure in answer.beside for _, node in figure.walk()]
    for name in names:
        assert any(isclose(number(answer, name), value, rel_tol=1e-12) for value in nodes), name


def test_each_number_of_a_run_over_weeks_is_in_a_chain(trained: Answer) -> None:
    check(trained, OF_A_RUN)


def test_each_number_of_a_service_over_months_is_in_a_chain(served: Answer) -> None:
    check(served, OF_A_SERVICE)


def test_power_and_energy_have_bands(trained: Answer, served: Answer) -> None:
    for answer in (trained, served):
        for figure in answer.beside:
            if figure.unit in ("w", "j", "kg", "j_per_token"):
                assert figure.band is not None, figure.name
                assert figure.band.low < figure.value <= figure.band.high, figure.name


def test_what_was_said_is_an_input_of_them_and_what_was_not_a_default(served: Answer) -> None:
    leaves = {leaf.name: leaf for figure in served.beside for _, leaf in figure.walk() if not leaf.parts}
    assert leaves["until they serve again"].origin == "input"
    assert leaves["share of the time"].origin == "assumption"


def test_every_input_among_their_leaves_is_one_of_the_question() -> None:
    more: dict[str, Any] = {
        "spares_enough": "95 %",
        "failure_rate": "0.02/node-day",
        "pue": 1.3,
        "grid": "sweden",
    }
    assert unfounded(dh.plan_train(**{**TRAINED, **more, "restart": "2h"})) == []
    assert unfounded(dh.plan_train(**{**TRAINED, **more, "detect": "2h"})) == []
    assert unfounded(dh.plan_serve(**{**SERVED, **more})) == []


def test_they_are_drawn_for_those_who_explain_and_go_over_the_wire(trained: Answer) -> None:
    said, short = explain_text(trained), table_text(trained)
    for figure in trained.beside:
        assert f"{figure.name} {figure.shown}"[:60] in said
    assert "failures of a node per day" in said
    assert "failures of a node per day" not in short
    assert decode(trained.to_json()).beside == trained.beside


def test_a_band_is_wider_where_a_chip_was_not_measured(trained: Answer) -> None:
    other = dh.plan_train(**TRAINED, chip="mi300x")

    def width(answer: Answer) -> float:
        band = next(one for one in answer.beside if one.name == "energy of the steps").band
        assert band is not None
        return band.high / band.low

    assert width(other) > width(trained)


def test_the_planner_has_them_without_words() -> None:
    train = plan_training(read_names(form_of("plan train"), dict(TRAINED), CATALOG, bare=True))
    serve = plan_serving(read_names(form_of("plan serve"), dict(SERVED), CATALOG, bare=True))
    for plan in (train, serve):
        assert section_figures(plan)
        with_numbers = [section for section in plan.sections if not isinstance(section, Supplied)]
        assert all(section.figures for section in with_numbers)

"""What the techniques of a replica say, and what follows them: a plan that may have it."""

from __future__ import annotations

import re

import pytest

import datahall as dh
from datahall.errors import DatahallError


def test_a_replica_that_is_cut_otherwise_than_by_tensors_is_left_to_the_plan() -> None:
    found = dh.show_techniques("deepseek-v3", chip="h200", rate=4, dp=8, ep=8, precision="fp8")
    (plan,) = (line for line in found.next_commands if line.startswith("datahall plan serve"))
    assert "--tp" not in plan
    alike = dh.show_techniques("llama-3.1-70b", chip="h200", rate=4, tp=2)
    assert any("--tp 2" in line for line in alike.next_commands)


def test_what_the_closed_form_holds_simulation_may_not() -> None:
    """The example of docs/limits.md: a replica of two chips, beyond what its seed decides (4.0 to 4.8 requests/s)."""
    found = dh.show_techniques("llama-3.1-70b", chip="h200", rate=5)
    assert "closed form: at these loads simulation may hold less; plan serve plays them" in found.notes
    assert (found.inputs["tp"], round(found.results["chip_requests_per_s"], 1)) == (2, 2.8)
    verdicts = [
        dh.simulate_serve("llama-3.1-70b", chip="h200", tp=2, rate=rate, requests=8000).verdict
        for rate in (4.0, 5.6)
    ]
    assert verdicts == ["yes", "no"]


def test_one_request_at_a_time_has_one_figure_within_the_limits_and_one_without() -> None:
    """All of a chip: in the sentence, in the table and in the remark under it."""
    found = dh.show_techniques("llama-3.1-70b", chip="h200", rate=5)
    row = next(row for row in found.tables[0].rows if row[0] == "one request at a time")
    said = re.search(
        r"one request at a time ([\d.]+) requests/s within and ([\d.]+) requests/s without: batching gives ([\d.]+)×",
        found.binding,
    )
    assert said is not None
    within, most, ratio = map(float, said.groups())
    assert within == pytest.approx(row[1], rel=0.01)
    remark = re.search(r"without limits a chip holds ([\d.]+) requests/s", str(row[-1]))
    assert remark is not None
    assert float(remark[1]) == most
    as_it_is = re.search(r"and ([\d.]+) requests/s without them", found.binding)
    assert as_it_is is not None
    assert ratio == pytest.approx(float(as_it_is[1]) / most, rel=0.02)


LOAD = {"model": "llama-3.1-8b", "chip": "h100-sxm", "rate": 2}


@pytest.mark.parametrize("small", ["llama-3.1-8b", "llama-3.1-70b"])
def test_a_smaller_model_that_is_none_is_refused_before_anything_is_computed(small: str) -> None:
    with pytest.raises(DatahallError, match=r"parameters, llama-3\.1-8b has 8\.03B") as refused:
        dh.show_techniques(**LOAD, small=small)  # type: ignore[arg-type]
    assert refused.value.field == "small"
    assert refused.value.exit_code == 2


def test_a_model_of_other_tokens_is_said_to_be_one() -> None:
    notes = dh.show_techniques(**LOAD, small="qwen3-0.6b").notes  # type: ignore[arg-type]
    assert "qwen3-0.6b reads other tokens than llama-3.1-8b, and takes as many here" in notes
    assert not any("other tokens" in note for note in dh.show_techniques(**LOAD).notes)  # type: ignore[arg-type]


def test_what_changes_the_answers_is_never_among_the_best_together() -> None:
    found = dh.show_techniques(**LOAD)  # type: ignore[arg-type]
    alone, together, lighter = found.tables[:3]
    assert [row[0] for row in lighter.rows][2].startswith("smaller model (llama-3.2-1b")
    names = {str(row[0]) for row in alone.rows}
    assert {str(row[0]) for row in together.rows} <= names
    assert not names & {str(row[0]) for row in lighter.rows}


def test_what_a_million_tokens_cost_follows_from_what_a_chip_holds() -> None:
    found = dh.show_techniques(**LOAD, price=3.6, osl=250)  # type: ignore[arg-type]
    for table in found.tables[:2]:
        for row in table.rows:
            held, cost = row[1], row[5]
            assert (cost is None) == (not held)
            if held:
                assert cost == pytest.approx(3.6 / 3600 / (float(str(held)) * 250) * 1e6)

"""Prompts and answers on replicas of their own: beside the plan, as few as keep the limits, and what they save."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tests.cli.conftest import Run, _home, datahall
from tests.results import number

import datahall as dh
from datahall.answer import Answer, Table
from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.errors import DatahallError
from datahall.planner.serving.apart import _simulated
from datahall.planner.serving.plan import ServingPlan
from datahall.planner.serving.question import plan_serving
from datahall.scenario.read import read_names

__all__ = ["_home", "datahall"]

SHELF = Catalog(user=False)
LONG = {"rate": 60, "isl": 4000, "osl": 300, "ttft": "600ms", "tpot": "12ms", "chips": ["h100-sxm"]}


def plan(**more: object) -> Answer:
    return dh.plan_serve("llama-3.1-8b", **{**LONG, "disaggregated": True, "catalog": SHELF, **more})


def planned(**more: object) -> ServingPlan:
    words = {"model": "llama-3.1-8b", **LONG, "disaggregated": True, **more}
    return plan_serving(read_names(form_of("plan serve"), words, SHELF, bare=True))  # type: ignore[arg-type]


def table(answer: Answer) -> Table:
    (found,) = [one for one in answer.tables if "disaggregated" in one.title]
    return found


def test_long_prompts_and_a_tight_time_per_token_make_it_win() -> None:
    """Prompts that share steps with answers hold these up: on their own neither waits for the other."""
    answer = plan()
    assert number(answer, "num_chips_disaggregated") < number(answer, "num_chips")
    assert "fewer." in answer.headline


def test_a_light_load_makes_it_lose_by_a_replica() -> None:
    answer = plan(rate=1, isl=300, osl=50, tpot="50ms")
    assert number(answer, "num_chips") == 1
    assert number(answer, "num_chips_disaggregated") == 2
    assert "1 more." in answer.headline


def test_its_chips_are_those_of_both_pools() -> None:
    answer = plan(chips=["h100-sxm", "b200-sxm"], tp=2)
    for chip, _, pools, chips, more, *_ in table(answer).rows:
        prompts, answers = map(int, str(pools).split(" + "))
        (best,) = [row[3] for row in answer.tables[0].rows if row[0] == chip]
        assert chips == 2 * (prompts + answers)
        assert more == chips - best  # type: ignore[operator]


def test_without_it_the_plan_is_the_same() -> None:
    plain, beside = plan(disaggregated=False), plan()
    assert plain.results.items() <= beside.results.items()
    assert beside.headline.startswith(plain.headline)
    assert plain.tables[0] == beside.tables[0]


def test_as_few_as_keep_the_limits_are_left() -> None:
    """With a replica fewer in either pool, too few requests keep them."""
    (found,) = planned().apart
    assert found.keeps
    for prefill, decode in (
        (found.num_prefill - 1, found.num_decode),
        (found.num_prefill, found.num_decode - 1),
    ):
        assert not _simulated(found, prefill, decode, 0).keeps


def test_what_more_is_asked_never_takes_fewer() -> None:
    for name, values in (
        ("rate", (1, 10, 60, 200)),
        ("tpot", ("50ms", "20ms", "12ms", "9ms")),
        ("ttft", ("5s", "1s", "600ms", "300ms")),
        ("spare", (0, 1, 3)),
    ):
        found = [
            number(plan(precision=["fp8"], tp=1, **{name: value}), "num_chips_disaggregated")
            for value in values
        ]
        assert found == sorted(found), (name, found)


def test_a_spare_replica_is_one_of_each_pool() -> None:
    plain, spare = planned().apart[0], planned(spare=2).apart[0]
    assert spare.pools == (plain.pools[0] + 2, plain.pools[1] + 2)


def test_very_many_replicas_are_simulated_in_part() -> None:
    (found,) = planned(rate=2000, tp=1, precision=["fp8"]).apart
    assert found.run is not None
    assert found.run.replicas.pool.size < sum(found.pools)
    (few,) = planned(rate=200, tp=1, precision=["fp8"]).apart
    assert sum(found.pools) == pytest.approx(10 * sum(few.pools), rel=0.1)


def test_its_command_plays_the_pools_and_keeps_the_limits(datahall: Run) -> None:
    answer = plan()
    (command,) = [one for one in answer.next_commands if "simulate serve" in one and "--disaggregated" in one]
    words = shlex.split(command)[1:]
    pools = f"prefill={answer.results['num_prefill_replicas']}xh100-sxm,decode={answer.results['num_decode_replicas']}"
    assert words[words.index("--disaggregated") + 1].startswith(pools)
    assert datahall(*words).code == 0


def test_a_trace_is_played_on_both_pools(tmp_path: Path) -> None:
    rows = "\n".join(f"{place / 30:.6f},4000,300" for place in range(3000))
    path = tmp_path / "requests.csv"
    path.write_text("arrived_at,num_prefill_tokens,num_decode_tokens\n" + rows)
    recorded = plan(rate=None, isl=None, osl=None, trace=str(path))
    drawn = plan(rate=30, burstiness=0)
    assert number(recorded, "num_chips_disaggregated") == number(drawn, "num_chips_disaggregated")


def test_limits_that_no_pools_keep_are_said() -> None:
    """A prompt alone, and its way to the other pool, take longer than the limit that a replica of both just keeps."""
    answers = [plan(rate=1, isl=4000, ttft=f"{limit}ms", tpot="50ms", tp=1) for limit in (145, 150, 155, 160)]
    for answer in answers:
        none = answer.results["num_chips_disaggregated"] is None
        assert ("No replicas of their own" in answer.headline) == none


def test_conversations_are_refused() -> None:
    with pytest.raises(DatahallError, match="conversations on replicas for prompts"):
        plan(turns=3)

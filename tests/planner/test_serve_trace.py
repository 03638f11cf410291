"""A plan from a trace: what it is made for, and that it is what the same requests at a rate would get."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest
from tests.results import number

import datahall as dh
from datahall.answer import Answer
from datahall.catalog import Catalog
from datahall.errors import DatahallError
from datahall.units import MONTH_S

SHELF = Catalog(user=False)
HEAD = "arrived_at,num_prefill_tokens,num_decode_tokens\n"
TIGHT = {"ttft": "200 ms", "tpot": "7 ms", "chips": "h100-sxm", "catalog": SHELF}


def written(folder: Path, times: np.ndarray, prompt: int = 700, output: int = 40) -> str:
    path = folder / "requests.csv"
    path.write_text(HEAD + "\n".join(f"{time_s:.6f},{prompt},{output}" for time_s in times.tolist()))
    return str(path)


def results(answer: Answer) -> dict[str, object]:
    return {name: value for name, value in answer.results.items() if name != "mean_requests_per_s"}


@pytest.mark.parametrize("rate", [25, 100, 400])
def test_constant_arrivals_of_a_trace_get_what_their_rate_gets(tmp_path: Path, rate: int) -> None:
    path = written(tmp_path, np.arange(20 * rate) / rate)
    recorded = dh.plan_serve("llama-3.1-8b", trace=path, **TIGHT)
    said = dh.plan_serve("llama-3.1-8b", rate=rate, burstiness=0, isl=700, osl=40, **TIGHT)
    for name in (
        "num_chips",
        "num_replicas",
        "tp",
        "precision",
        "requests_per_s",
        "prompt_tokens",
        "output_tokens",
    ):
        assert recorded.results[name] == pytest.approx(said.results[name]), name
    assert number(recorded, "ttft_s") == pytest.approx(number(said, "ttft_s"), rel=0.03)
    assert number(recorded, "tpot_s") == pytest.approx(number(said, "tpot_s"), rel=0.02)


@pytest.fixture(name="uneven", scope="module")
def _uneven(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Ten a second, and sixty in the third minute."""
    random = np.random.default_rng(0)
    gaps = [random.exponential(1 / rate, rate * 60) for rate in (10, 10, 60, 10, 10)]
    return written(tmp_path_factory.mktemp("uneven"), np.cumsum(np.concatenate(gaps)))


def test_a_plan_is_made_for_the_busiest_stretch_and_says_so(uneven: str) -> None:
    plan = dh.plan_serve("llama-3.1-8b", trace=uneven, busiest="30s", **TIGHT)
    assert number(plan, "requests_per_s") == pytest.approx(65, rel=0.1)
    assert number(plan, "mean_requests_per_s") == pytest.approx(20, rel=0.1)
    assert "the busiest 30" in plan.headline
    assert "in the mean" in plan.headline


def test_tokens_of_a_month_are_those_of_the_mean_of_a_trace(uneven: str) -> None:
    tight = TIGHT | {"busiest": "30s", "buy": "rent,api"}
    plan, said = (
        dh.plan_serve("llama-3.1-8b", trace=uneven, **tight, **more) for more in ({}, {"peak_to_mean": 3})
    )
    tokens = number(plan, "api_month_usd") / number(plan, "api_usd_per_mtok") * 1e6
    assert tokens == pytest.approx(number(plan, "mean_requests_per_s") * 740 * MONTH_S, rel=1e-3)
    assert number(said, "api_month_usd") == pytest.approx(
        number(plan, "api_month_usd")
        * number(plan, "requests_per_s")
        / number(plan, "mean_requests_per_s")
        / 3,
        rel=1e-3,
    )


def test_a_longer_stretch_is_never_busier_and_needs_no_more_chips(uneven: str) -> None:
    plans = [
        dh.plan_serve("llama-3.1-8b", trace=uneven, busiest=length, **TIGHT)
        for length in ("10s", "1min", "1h")
    ]
    rates = [number(one, "requests_per_s") for one in plans]
    chips = [number(one, "num_chips") for one in plans]
    assert rates == sorted(rates, reverse=True)
    assert chips == sorted(chips, reverse=True)


def test_a_faster_trace_never_needs_fewer_chips(uneven: str) -> None:
    chips = [
        number(dh.plan_serve("llama-3.1-8b", trace=uneven, busiest="30s", speed=speed, **TIGHT), "num_chips")
        for speed in (0.5, 1, 4, 16)
    ]
    assert chips == sorted(chips)


def test_the_follow_up_plays_the_whole_trace_and_keeps_the_limits(uneven: str) -> None:
    plan = dh.plan_serve("llama-3.1-8b", trace=uneven, busiest="30s", **TIGHT)
    words = shlex.split(plan.next_commands[0])
    assert words[words.index("--trace") + 1] == uneven
    run = dh.simulate_serve(
        "llama-3.1-8b", trace=uneven, chip="h100-sxm", tp=plan.results["tp"], replicas=plan.results["num_replicas"],
        precision=plan.results["precision"], ttft="200 ms", tpot="7 ms", catalog=SHELF,
    )  # fmt: skip
    assert run.verdict == "yes"
    assert number(run, "num_arrived") == 6000
    assert run.next_commands[0].startswith("datahall plan serve")
    assert "--trace" in run.next_commands[0]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"rate": 5}, "do not go together"),
        ({"users": 5}, "do not go together"),
        ({"isl": 5}, "do not go together"),
        ({"busiest": "0s"}, "busiest"),
        ({"busiest": "-1s"}, "busiest"),
        ({"max_context": 100}, "fits the context"),
    ],
)
def test_what_a_trace_says_itself_is_refused(tmp_path: Path, more: dict[str, object], message: str) -> None:
    path = written(tmp_path, np.arange(20.0))
    with pytest.raises(DatahallError, match=message):
        dh.plan_serve("llama-3.1-8b", trace=path, catalog=SHELF, **more)


def test_a_stretch_without_a_trace_is_refused() -> None:
    with pytest.raises(DatahallError, match="busiest does nothing here"):
        dh.plan_serve("llama-3.1-8b", rate=5, busiest="1min", catalog=SHELF)


def test_requests_that_pass_the_context_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "mixed.csv"
    path.write_text(HEAD + "\n".join(f"{at},{700 if at % 2 else 3000},40" for at in range(40)))
    plan = dh.plan_serve("llama-3.1-8b", trace=str(path), max_context=2000, catalog=SHELF)
    assert any("20 requests of the trace pass the context" in note for note in plan.notes)
    assert not any("cuts nothing" in note for note in plan.notes)
    assert plan.results["prompt_tokens"] == 700

"""The gateway that a plan writes: a file that reads, and numbers that follow from what the plan promises."""

from __future__ import annotations

import asyncio
import re
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.planner.artefacts.conftest import COMMENT, DENSE, SERVE, Made, asked
from tests.serve.config.test_read import settings
from tests.serve.e2e.processes import started, upstream
from tests.serve.gateway.gateways import whole

from datahall.answers import artefact
from datahall.answers.ask import form_of
from datahall.answers.verbs.serving import OF_SERVICE
from datahall.catalog import Catalog
from datahall.errors import ScenarioError
from datahall.planner.serving.candidate import Proposal
from datahall.planner.serving.question import plan_serving
from datahall.scenario.read import read_names
from datahall.serve.config.planned import num_at_once
from datahall.serve.config.settings import ModelSettings, Settings
from datahall.serve.ledger.money import usd
from datahall.units import MONTH_S

GATEWAY = "gateway.toml"
EVEN = {
    "model": "llama-3.1-8b",
    "rate": "60",
    "isl": "1000",
    "osl": "250",
    "chips": "h100-sxm",
    "buy": "rent",
}
TALK = {"model": "llama-3.1-8b", "users": "200", "isl": "200", "osl": "100", "turns": "3", "chips": "a40"}
WIDE = {"model": "deepseek-v3", "users": "500", "precision": "fp8", "chips": "h100-sxm"}


def planned(given: dict[str, str]) -> tuple[Made, Settings, ModelSettings]:
    made = asked(SERVE, given)
    found = settings(made.file(GATEWAY))
    return made, found, found.models[0]


def test_there_is_an_upstream_for_every_replica_and_spare_one() -> None:
    made, found, model = planned(DENSE | {"spare": "1"})
    num = made.answer.results["num_replicas"]
    assert len(found.upstreams) == len(model.targets) == num
    assert len({one.url for one in found.upstreams}) == num
    assert [one.upstream for one in model.targets] == [one.name for one in found.upstreams]
    assert {one.model for one in model.targets} == {"meta-llama/Llama-3.1-70B"}
    assert COMMENT.search(made.file(GATEWAY))


def test_replicas_are_where_the_launch_command_puts_them() -> None:
    """Two on a node, on ports beside each other; of one that takes two nodes the first is asked."""
    urls = [one.url for one in planned(DENSE)[1].upstreams]
    assert urls[:3] == ["http://node-1:8000/v1", "http://node-1:8001/v1", "http://node-2:8000/v1"]
    urls = [one.url for one in planned(WIDE)[1].upstreams]
    assert urls[:2] == ["http://node-1:8000/v1", "http://node-3:8000/v1"]


def test_all_tokens_of_a_month_at_these_prices_cost_what_the_month_does() -> None:
    """With overheads, staff, and what stands idle outside of the busiest hour."""
    given = EVEN | {"staff": "20000 USD/month", "peak_to_mean": "3"}
    made, _, model = planned(given)
    price, num = model.price, 60 / 3 * MONTH_S
    month = num * (1000 * usd(price.input_nano_usd) + 250 * usd(price.output_nano_usd)) / 1e6
    assert month == pytest.approx(made.answer.results["month_usd"], rel=1e-4)
    assert price.cached_nano_usd == price.input_nano_usd


def test_a_chip_without_a_price_has_tokens_without_one_and_says_so() -> None:
    made, _, model = planned(TALK)
    assert made.answer.results.get("month_usd") is None
    assert model.price == ModelSettings(name="", targets=()).price
    assert re.search(r"^# price: none: ", made.file(GATEWAY), re.M)


@pytest.mark.parametrize("ttft_s", [1, 3])
def test_who_waits_longer_than_the_first_token_may_take_is_sent_away(ttft_s: int) -> None:
    """And no more wait than come in that time, be the headroom used up."""
    model = planned(EVEN | {"ttft": f"{ttft_s}s", "headroom": "20%"})[2]
    assert model.queue_s == ttft_s
    assert model.most_waiting == 60 / 0.8 * ttft_s


def test_an_answer_at_the_slowest_that_is_promised_ends_in_time() -> None:
    for given, tpot_s, longest in ((EVEN, 0.05, 4096), (EVEN | {"rate": "1", "osl": "9000"}, 0.05, 9000)):
        _, found, model = planned(given)
        assert model.longest_tokens == longest
        assert model.deadline_s >= 1.0 + model.longest_tokens * tpot_s
        assert all(one.timeouts.total_s >= model.deadline_s for one in found.upstreams)
        assert all(one.timeouts.first_byte_s >= model.deadline_s for one in found.upstreams)


@cache
def chosen(tpot: str) -> Proposal:
    given = EVEN | {"tpot": tpot}
    return plan_serving(read_names(form_of(SERVE), given, Catalog(user=False))).chosen


def test_no_more_are_at_once_than_keep_the_pace_and_no_fewer_than_the_plan_has() -> None:
    """The step of so many sequences takes what is promised; fewer are there when the load is as it was planned."""
    num = {tpot: num_at_once(chosen(tpot)) for tpot in ("10ms", "15ms", "50ms")}
    assert num["10ms"] < num["15ms"] < num["50ms"]
    for tpot, limit_s in (("10ms", 0.010), ("15ms", 0.015)):
        best = chosen(tpot)
        waiting = best.held_per_s * best.held_state.ttft_s
        curve = best.held.curve
        assert np.interp(num[tpot] - waiting - 2.0, curve.decoding, curve.step_s) < limit_s
        assert best.replica.dp * best.held_state.decoding + waiting < num[tpot]
        assert planned(EVEN | {"tpot": tpot})[1].upstreams[0].most == num[tpot]


def test_a_session_stays_where_its_history_is() -> None:
    assert planned(TALK)[2].routing == "session"
    assert planned(EVEN)[2].routing == "least-outstanding"


def test_a_file_without_the_extra_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name}", name="httptools")

    monkeypatch.setattr(artefact, "import_module", missing)
    with pytest.raises(ScenarioError, match="extra serve: httptools is not installed"):
        artefact.writer(OF_SERVICE[GATEWAY])


def test_the_gateway_answers_by_its_file(tmp_path: Path) -> None:
    """As it stands, but for the hosts, in whose place two upstreams of this test answer."""
    made = asked(SERVE, DENSE)

    async def work() -> None:
        async with upstream(whole) as (first, one), upstream(whole) as (second, other):
            text = re.sub(r"http://node-\d+:8000/", f"http://127.0.0.1:{one}/", made.file(GATEWAY))
            text = re.sub(r"http://node-\d+:8001/", f"http://127.0.0.1:{other}/", text)
            file = tmp_path / GATEWAY
            file.write_text(text)
            options = ("--listen", "127.0.0.1:0", "--state", str(tmp_path / "state"))
            async with started(file, 0, *options) as gateway:
                answers = await asyncio.gather(*(gateway.ask(model="llama-3.1-70b") for _ in range(12)))
                assert [answer.status for answer in answers] == [200] * 12
            bodies = [one.request.body for each in (first, second) for one in each.exchanges]
            named = [msgspec.json.decode(body)["model"] for body in bodies if body]  # a probe has none
            assert named == ["meta-llama/Llama-3.1-70B"] * 12

    asyncio.run(work())

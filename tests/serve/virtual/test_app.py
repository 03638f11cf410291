"""Under a clock that a test moves, the virtual engine answers when the simulation says, and not before."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from tests.inference.serving_case import fleet, poisson

from datahall.inference.fleet.fleet import Fleet
from datahall.inference.simulation.simulate import simulate_serving
from datahall.serve.http import Request, Response, answer_of, run
from datahall.serve.http.sse import Events, data_of
from datahall.serve.upstreams.probe import read_gauges
from datahall.serve.virtual.app import VirtualServer
from datahall.serve.virtual.course import Course
from datahall.serve.virtual.engine import Engine
from datahall.serve.virtual.slow import slowed


class Bench:
    """A server whose time is moved by hand."""

    def __init__(self, on: Fleet | None = None, speed_ratio: float = 1.0) -> None:
        self.at_s = 0.0
        self.engine = Engine(
            Course(on or fleet()), usual_output=7, speed_ratio=speed_ratio, clock=lambda: self.at_s
        )
        self.server = VirtualServer(self.engine, "m")

    def pass_to(self, at_s: float) -> None:
        self.at_s = at_s
        self.engine.wake()

    async def ask(self, path: str = "/v1/chat/completions", method: str = "POST", **fields: Any) -> Response:
        body = {"model": "m", "messages": [{"role": "user", "content": "the and for"}], **fields}
        bare, _, query = path.partition("?")
        return await answer_of(self.server, Request(method, bare, query, {}, msgspec.json.encode(body)))

    async def asked(self, **fields: Any) -> asyncio.Task[Response]:
        """Ask, and let the request come in."""
        task = asyncio.ensure_future(self.ask(**fields))
        await asyncio.sleep(0)
        return task


def ran(work: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await work()

    run(whole())


async def read(response: Response) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(await response.read())
    return found


def test_tokens_come_when_the_simulation_says() -> None:
    requests = poisson(1, 1.0, prompt=3, output=5)
    requests.arrival_s[:] = 0.0
    records = simulate_serving(fleet(), requests, record=True).records
    assert records is not None

    async def work() -> None:
        bench = Bench()
        answer = await bench.asked(max_tokens=5, stream=True)
        bench.pass_to(float(records.first_s[0]) - 1e-9)
        await asyncio.sleep(0)
        assert not answer.done()
        bench.pass_to(float(records.first_s[0]))
        response = await answer
        assert (await response.piece()).count(b'"content":') == 1
        bench.pass_to(float(records.end_s[0]) - 1e-9)
        assert (await response.piece()).count(b'"content":') == 3
        assert not response.is_complete
        bench.pass_to(float(records.end_s[0]))
        assert (await response.read()).endswith(b"data: [DONE]\n\n")

    ran(work)


def test_time_passes_as_fast_as_was_asked() -> None:
    async def work() -> None:
        slow, fast = Bench(), Bench(speed_ratio=10.0)
        answers = [await bench.asked(max_tokens=20) for bench in (slow, fast)]
        for bench in (slow, fast):
            bench.pass_to(0.05)
        await asyncio.sleep(0)
        assert [answer.done() for answer in answers] == [False, True]
        slow.pass_to(0.5)
        assert (await answers[0]).status == 200

    ran(work)


def test_a_stream_is_one_that_openais_clients_read() -> None:
    async def work() -> None:
        bench = Bench()
        answer = await bench.asked(max_tokens=3, stream=True, stream_options={"include_usage": True})
        bench.pass_to(10.0)
        blocks = Events().feed(await (await answer).read())
        assert data_of(blocks[-1]) == b"[DONE]"
        chunks = [msgspec.json.decode(data_of(block)) for block in blocks[:-1]]
        assert {(one["object"], one["model"], one["id"]) for one in chunks} == {
            ("chat.completion.chunk", "m", "chatcmpl-000000000000")
        }
        assert [one["choices"][0]["delta"] for one in chunks[:4]] == [
            {"role": "assistant", "content": " the"}, {"content": " and"}, {"content": " for"}, {},
        ]  # fmt: skip
        assert [one["choices"][0]["finish_reason"] for one in chunks[:4]] == [None, None, None, "length"]
        assert chunks[4]["choices"] == []
        assert chunks[4]["usage"]["prompt_tokens"] == chunks[4]["usage"]["completion_tokens"] == 3

    ran(work)


@pytest.mark.parametrize("step_s", [0.001, 0.004, 0.015, 0.03, 0.1])
def test_tokens_on_their_way_come_before_the_end_however_late_somebody_looks(step_s: float) -> None:
    (pool,) = fleet().pools
    engine = msgspec.structs.replace(pool.replica.engine, first_token_s=0.02)
    pool = msgspec.structs.replace(pool, replica=msgspec.structs.replace(pool.replica, engine=engine))
    far = msgspec.structs.replace(fleet(), pools=(pool,))

    async def work() -> None:
        bench = Bench(far)
        answer = await bench.asked(max_tokens=9, stream=True)
        while not answer.done() or not answer.result().is_complete:
            bench.pass_to(bench.at_s + step_s)
            await asyncio.sleep(0)
        chunks = Events().feed(await answer.result().read())[:-1]
        said = [
            msgspec.json.decode(data_of(block))["choices"][0]["delta"].get("content", "") for block in chunks
        ]
        assert "".join(said) == " the and for you are but not all can"

    ran(work)


@pytest.mark.parametrize(
    ("fields", "prompt", "output"),
    [
        ({}, 3, 7),
        ({"max_completion_tokens": 2}, 3, 2),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "x" * 40}]}]}, 10, 7),
        ({"path": "/v1/completions", "prompt": [5, 6, 7, 8]}, 4, 7),
        ({"path": "/v1/completions", "prompt": ["abcd" * 6]}, 6, 7),
    ],
)
def test_an_answer_in_one_says_what_it_took(fields: dict[str, Any], prompt: int, output: int) -> None:
    async def work() -> None:
        bench = Bench()
        answer = await bench.asked(**fields)
        bench.pass_to(10.0)
        usage = (await read(await answer))["usage"]
        assert (usage["prompt_tokens"], usage["completion_tokens"]) == (prompt, output)
        assert usage["total_tokens"] == prompt + output

    ran(work)


@pytest.mark.parametrize(
    ("fields", "status", "says"),
    [
        ({"model": "other"}, 404, "does not exist"),
        ({"messages": []}, 400, "messages"),
        ({"max_tokens": 0}, 400, "max_tokens"),
        ({"max_tokens": -1}, 400, "max_tokens"),
        ({"n": 2}, 400, "n"),
        ({"max_tokens": 10_000_000}, 400, "longer than the context"),
        ({"path": "/v1/completions", "prompt": ["a", "b"]}, 400, "one prompt"),
        ({"path": "/v1/completions"}, 400, "prompt"),
        ({"path": "/virtual/fail?replica=9"}, 400, "0 to 0"),
        ({"path": "/virtual/fail?replica=0&seconds=-1"}, 400, "seconds"),
        ({"path": "/virtual/fail?replica=0&seconds=nan"}, 400, "seconds"),
        ({"path": "/v1/models"}, 405, ""),
        ({"path": "/elsewhere"}, 404, ""),
    ],
)
def test_what_cannot_be_answered_is_said_at_once(fields: dict[str, Any], status: int, says: str) -> None:
    async def work() -> None:
        answer = await Bench().ask(**fields)
        assert answer.status == status
        assert says in (await answer.read()).decode()

    ran(work)


def test_who_leaves_makes_room() -> None:
    async def work() -> None:
        bench = Bench()
        answer = await bench.asked(max_tokens=1000, stream=True)
        bench.pass_to(0.1)
        (await answer).close()
        bench.pass_to(0.2)
        assert bench.engine.course.state.replicas[0]["running"] == 0
        assert bench.engine.meter.ended == {"length": 0, "abort": 1, "error": 0}

    ran(work)


def test_a_replica_that_fails_on_request_comes_back() -> None:
    async def work() -> None:
        bench = Bench()
        assert (await bench.ask("/virtual/fail?replica=0&seconds=5")).status == 200
        answer = await bench.asked(max_tokens=2)
        bench.pass_to(4.9)
        await asyncio.sleep(0)
        assert not answer.done()
        page = (await (await bench.ask("/metrics", "GET")).read()).decode()
        assert 'datahall_virtual_replica_up{model_name="m",engine="0"} 0' in page
        assert read_gauges(page.encode())[0] == 1.0
        assert 'vllm:num_requests_waiting{model_name="m",engine="router"} 1' in page
        other = await bench.asked(max_tokens=2)
        bench.pass_to(4.95)
        await asyncio.sleep(0)
        other.cancel()
        assert read_gauges(await (await bench.ask("/metrics", "GET")).read())[0] == 2.0
        bench.pass_to(6.0)
        assert (await answer).status == 200
        assert read_gauges(await (await bench.ask("/metrics", "GET")).read())[0] == 0.0

    ran(work)


def test_metrics_have_vllms_names_and_a_gateway_reads_them() -> None:
    async def work() -> None:
        bench = Bench(fleet(2, max_sequences=1))
        answers = [await bench.asked(max_tokens=50) for _ in range(5)]
        bench.pass_to(0.1)
        page = await (await bench.ask("/metrics", "GET")).read()
        waiting, used = read_gauges(page)
        assert waiting == 3.0
        assert 0.0 < used < 0.01
        bench.pass_to(20.0)
        page = await (await bench.ask("/metrics", "GET")).read()
        assert [(await answer).status for answer in answers] == [200] * 5
        values = dict(re.findall(r'^vllm:(\w+)\{model_name="m"\} (\S+)$', page.decode(), re.M))
        assert values["prompt_tokens_total"] == "15"
        assert values["generation_tokens_total"] == "250"
        assert (
            values["time_to_first_token_seconds_count"] == values["e2e_request_latency_seconds_count"] == "5"
        )
        assert values["inter_token_latency_seconds_count"] == "245"

    ran(work)


def test_a_slow_replica_takes_so_many_times_as_long() -> None:
    on = slowed(fleet(2), {1: 3.0})
    assert on.num_replicas == 2
    course = Course(on)
    for _ in range(2):
        course.arrive(0.0, 100, 2)
    told = course.play(10.0)
    first, second = (
        {one.row: one.at_s for one in told if one.row == row and one.is_last}[row] for row in (0, 1)
    )
    assert second == pytest.approx(3.0 * first)

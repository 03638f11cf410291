"""A load is what was asked for, sent when it is due, and its figures follow from when tokens came."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.serve.gateway.gateways import failing, piece, word

import datahall as dh
from datahall.errors import ServingError
from datahall.serve.http import Exchange, run, serve
from datahall.serve.load.drive import Drive, drive
from datahall.serve.load.measured import Measured, measure, vllm_figures
from datahall.serve.load.target import Sample, Target, _hear
from datahall.workload.traffic.requests import Requests

Handler = Callable[[Exchange], Any]


def requests(arrival_s: list[float], prompt: int = 5, output: int = 3) -> Requests:
    num = len(arrival_s)
    return Requests.of(np.array(arrival_s, np.float64), np.full(num, prompt), np.full(num, output))


class Endpoint:
    """An engine of one word a token that keeps what it was asked, and how much of it at once."""

    def __init__(self, wait: Callable[[], Any] | None = None, model: str = "small") -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.num_open = self.most_open = 0
        self._wait = wait
        self._model = model

    async def __call__(self, exchange: Exchange) -> None:
        if exchange.request.path == "/v1/models":
            exchange.send(200, msgspec.json.encode({"data": [{"id": self._model}]}))
            return
        body = msgspec.json.decode(exchange.request.body)
        self.bodies.append(body)
        self.headers.append(exchange.request.headers)
        self.num_open += 1
        self.most_open = max(self.most_open, self.num_open)
        if self._wait is not None:
            await self._wait()
        exchange.start(200)
        for _ in range(body["max_tokens"]):
            exchange.write(word(" one"))
            await asyncio.sleep(0.001)
        prompt = len(body["messages"][0]["content"].split())
        usage = {"prompt_tokens": prompt, "completion_tokens": body["max_tokens"]}
        exchange.write(piece(choices=[], usage=usage) + b"data: [DONE]\n\n")
        self.num_open -= 1
        exchange.end()


def loaded(handler: Handler, what: Drive, model: str = "") -> list[Sample]:
    async def work() -> list[Sample]:
        server = await serve(handler)
        target = Target(f"http://127.0.0.1:{server.port}/v1", "secret", model)
        try:
            await target.find_model()
            return await drive(target, what)
        finally:
            target.client.close()
            await server.close()

    return run(work())


def test_users_ask_one_after_the_other_for_what_was_drawn() -> None:
    endpoint = Endpoint()
    samples = loaded(endpoint, Drive(requests=requests([0.0] * 10, prompt=7), users=3, until_s=inf))
    assert endpoint.most_open == 3
    assert [sample.row for sample in samples] == list(range(10))
    assert {(sample.prompt, sample.output, sample.error) for sample in samples} == {(7, 3, "")}
    assert all(sample.due_s <= sample.sent_s < sample.first_s < sample.end_s for sample in samples)
    assert {(body["model"], body["ignore_eos"], body["stream"]) for body in endpoint.bodies} == {
        ("small", True, True)
    }
    assert {headers["authorization"] for headers in endpoint.headers} == {"Bearer secret"}
    assert {headers["cache-control"] for headers in endpoint.headers} == {"no-store"}
    assert len({body["messages"][0]["content"] for body in endpoint.bodies}) == 10


def test_requests_at_a_rate_do_not_wait_for_the_answers_of_others() -> None:
    """The endpoint answers nobody until all have asked: a loop that waits would never end."""
    all_there = asyncio.Barrier(5)
    samples = loaded(
        Endpoint(all_there.wait), Drive(requests=requests([0.0, 0.0, 0.01, 0.01, 0.02]), until_s=inf)
    )
    assert [sample.due_s for sample in samples] == [0.0, 0.0, 0.01, 0.01, 0.02]
    assert all(sample.first_s > 0.02 and not sample.error for sample in samples)


def test_nothing_is_sent_before_it_is_due() -> None:
    due_s = [0.0004 * each for each in range(100)]  # a loop that counts milliseconds wakes before some
    for what in (requests(due_s), requests([0.0004] * 100)):
        for users in (0, 5):
            samples = loaded(Endpoint(), Drive(requests=what, users=users, until_s=inf))
            assert all(sample.sent_s >= sample.due_s for sample in samples)


def test_nobody_begins_after_the_end() -> None:
    assert len(loaded(Endpoint(), Drive(requests=requests([0.0, 0.01, 9.0]), until_s=1.0))) == 2
    assert len(loaded(Endpoint(), Drive(requests=requests([9.0, 9.0]), users=2, until_s=1.0))) == 0


def test_what_fails_is_counted_apart_with_why() -> None:
    answers = iter((failing(429), failing(429), Endpoint(), lambda one: one.start(200) or one.end()))
    samples = loaded(
        lambda exchange: next(answers)(exchange),
        Drive(requests=requests([0.0] * 4), users=1, until_s=inf),
        "m",
    )
    found = measure(samples)
    assert (found.num_completed, found.num_failed) == (1, 3)
    assert found.errors == {'429: {"error":{"message":"no"}}': 2, "an answer without a token": 1}


def test_no_run_asks_what_another_has_asked() -> None:
    asked = []
    for salt in ("a", "b", "b"):
        endpoint = Endpoint()
        loaded(endpoint, Drive(requests=requests([0.0] * 3, prompt=30), users=1, until_s=inf, salt=salt))
        asked.append([body["messages"][0]["content"] for body in endpoint.bodies])
    assert not set(asked[0]) & set(asked[1])
    assert asked[1] == asked[2]


def test_answers_of_a_cache_and_tokens_that_nobody_counts_are_said() -> None:
    def kept(exchange: Exchange) -> None:
        exchange.start(200, [("x-cache", "hit")])
        exchange.write(word("one") + word("two"))
        exchange.end()

    found = measure(loaded(kept, Drive(requests=requests([0.0], prompt=7), until_s=inf), "m"))
    assert (found.num_kept, found.num_uncounted) == (1, 1)
    assert found.prompt_tokens == 7
    with running(kept) as url:
        answer = dh.gateway_load(url, users=1, requests=1, served="m")
    assert any("out of a cache" in note for note in answer.notes)
    assert any("does not say the tokens" in note for note in answer.notes)


def test_gaps_are_between_a_token_and_the_one_before_it() -> None:
    sample, last_s = Sample(row=0, due_s=0.0), -1.0
    for at_s in (1.0, 3.0, 4.0):
        last_s = _hear(sample, [word("one")], at_s, last_s)
    assert (sample.first_s, sample.gaps_s, sample.end_s) == (1.0, [2.0, 1.0], 4.0)


def test_an_error_within_a_stream_is_one() -> None:
    def broken(exchange: Exchange) -> None:
        exchange.start(200)
        exchange.write(word("one") + piece(error={"message": "the replica is gone"}))
        exchange.end()

    (sample,) = loaded(broken, Drive(requests=requests([0.0]), until_s=inf), "m")
    assert sample.error == "the replica is gone"


@pytest.mark.parametrize(
    ("handler", "says"),
    [(failing(503), "answers 503"), (lambda one: one.send(200, b'{"data":[]}'), "lists no model")],
)
def test_an_endpoint_without_a_model_is_no_load(handler: Handler, says: str) -> None:
    with pytest.raises(ServingError, match=says):
        loaded(handler, Drive(requests=requests([0.0]), until_s=inf))


def known() -> Measured:
    """Three requests by hand: the second was sent a second late."""
    return measure(
        [
            Sample(
                row=0, due_s=0.0, sent_s=0.0, first_s=0.5, end_s=1.5, gaps_s=[0.5, 0.5], prompt=10, output=3
            ),
            Sample(row=1, due_s=1.0, sent_s=2.0, first_s=2.5, end_s=2.5, prompt=20, output=1),
            Sample(row=2, due_s=2.0, sent_s=2.0, end_s=4.0, error="no"),
        ]
    )


def test_latencies_count_from_when_a_request_was_due() -> None:
    found = known()
    assert found.ttft_s.tolist() == [0.5, 1.5]
    assert found.e2e_s.tolist() == [1.5, 1.5]
    assert found.late_s.tolist() == [0.0, 1.0]
    assert found.is_late


def test_figures_are_those_of_vllms_benchmark() -> None:
    figures = vllm_figures(known())
    assert figures["duration"] == 4.0
    assert (figures["completed"], figures["failed"]) == (2, 1)
    assert (figures["total_input_tokens"], figures["total_output_tokens"]) == (30, 4)
    assert (figures["request_throughput"], figures["output_throughput"]) == (0.5, 1.0)
    assert figures["total_token_throughput"] == 8.5
    assert (figures["mean_ttft_ms"], figures["median_ttft_ms"], figures["std_ttft_ms"]) == (
        1000.0,
        1000.0,
        500.0,
    )
    assert (figures["mean_tpot_ms"], figures["p99_tpot_ms"]) == (
        500.0,
        500.0,
    )  # of the one with several tokens
    assert (figures["mean_itl_ms"], figures["median_e2el_ms"]) == (500.0, 1500.0)


@contextmanager
def running(handler: Handler) -> Iterator[str]:
    """An endpoint on a loop of its own."""
    loop, began = asyncio.new_event_loop(), threading.Event()
    ports: list[int] = []
    ended = asyncio.Event()

    async def work() -> None:
        server = await serve(handler)
        ports.append(server.port)
        began.set()
        await ended.wait()
        await server.close()

    thread = threading.Thread(target=loop.run_until_complete, args=(work(),))
    thread.start()
    began.wait(10)
    try:
        yield f"http://127.0.0.1:{ports[0]}"
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


def test_the_answer_has_what_was_measured_beside_what_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_LOAD", "secret")
    with running(endpoint := Endpoint()) as url:
        answer = dh.gateway_load(
            url, users=2, isl=20, osl=4, requests=6, key_from="OF_LOAD", model="llama-3.1-8b", chip="h100-sxm"
        )
    assert answer.verdict == "yes"
    assert len(endpoint.bodies) == answer.results["completed"] == answer.results["simulated_completed"] == 6
    assert answer.results["total_output_tokens"] == answer.results["simulated_total_output_tokens"] == 24
    (table,) = answer.tables
    assert [row[:2] for row in table.rows][:4] == [
        ("TTFT", "measured"), ("TTFT", "simulated"), ("TPOT", "measured"), ("TPOT", "simulated"),
    ]  # fmt: skip
    simulated = dict(zip((row[:2] for row in table.rows), table.rows, strict=True))[("TPOT", "simulated")]
    assert simulated[2] == pytest.approx(answer.results["simulated_mean_tpot_ms"] / 1e3)


def test_a_load_that_fails_is_no_yes() -> None:
    with running(failing(500)) as url:
        answer = dh.gateway_load(url, users=1, requests=2, served="m")
    assert (answer.verdict, answer.results["failed"]) == ("no", 2)
    assert answer.tables[0].title == "What failed"

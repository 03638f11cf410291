"""Every request that ends is told of once, with its trace, and the way that it ended."""

from __future__ import annotations

import asyncio

import pytest
from tests.serve.gateway.gateways import failing, gateway, stream, whole
from tests.serve.http.talking import running, said, until

from datahall.serve.cache.exact import Bounds
from datahall.serve.gateway.readings import of_lines, of_upstreams
from datahall.serve.http import Client, Exchange, Origin, run
from datahall.serve.ledger.key import Limits
from datahall.serve.telemetry.log import line_of
from datahall.serve.telemetry.telemetry import Telemetry

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


async def slow(exchange: Exchange) -> None:
    await asyncio.sleep(60)
    del exchange


WAYS = {
    "answered": (whole, {}, ["answered"]),
    "a stream": (stream, {"stream": True}, ["answered"]),
    "an upstream that fails": (failing(500), {}, ["failed"]),
    "a question it does not like": (failing(400), {}, ["failed"]),
    "no such model": (whole, {"model": "n"}, ["refused"]),
    "no key": (whole, {"secret": "dh-wrong"}, ["refused"]),
}


@pytest.mark.parametrize(("handler", "asked", "results"), WAYS.values(), ids=WAYS)
def test_every_way_is_told_of_once(handler: object, asked: dict[str, object], results: list[str]) -> None:
    async def work() -> None:
        async with gateway(handler, num_retries=0) as world:  # type: ignore[arg-type]
            await (await world.ask(**asked)).read()  # type: ignore[arg-type]
            assert [told.result for told in world.ended] == results
            (told,) = world.ended
            assert told.ended_ns >= told.began_ns
            assert bool(told.first_ns) is ("stream" in asked)
            assert told.num_attempts == world.asked[0].num
            assert told.model == ("" if results == ["refused"] else "m")
            assert bool(told.code) is (results == ["refused"] or told.status == 502)

    run(work())


@running
async def test_who_left_is_told_of_with_what_the_upstream_did_for_nothing() -> None:
    async with gateway(slow) as world:
        asking = asyncio.ensure_future(world.ask())
        await until(lambda: world.asked[0].num == 1)
        asking.cancel()
        await until(lambda: len(world.ended) == 1)
        assert (world.ended[0].result, world.ended[0].num_attempts) == ("cancelled", 1)
        batch = world.gateway.ledger._batch
        (sums,) = batch.sums.values()
        assert sums[5] > 0  # nano-dollars wasted
        assert world.spent_nano_usd == 0


@running
async def test_a_hit_of_the_cache_says_what_it_spared() -> None:
    async with gateway(whole, bounds=Bounds()) as world:
        for _ in range(2):
            await (await world.ask()).read()
        assert [told.result for told in world.ended] == ["answered", "cached"]
        assert world.ended[1].charged_nano_usd == 0


@running
async def test_a_trace_goes_on_upstream() -> None:
    async with gateway(whole) as world:
        await (await world.ask(headers=[("traceparent", TRACE)])).read()
        told = world.ended[0].trace
        assert told is not None
        assert (told.parent_id, told.is_kept) == ("00f067aa0ba902b7", True)
        assert world.asked[0].exchanges[0].request.header("traceparent") == told.header()
        await (await world.ask(headers=[("traceparent", "nonsense")])).read()
        assert world.ended[1].trace is None
        assert world.asked[0].exchanges[1].request.header("traceparent") == ""


@running
async def test_metrics_count_what_was_asked() -> None:
    async with gateway(stream, limits=Limits(requests_per_minute=3)) as world:
        telemetry = Telemetry()
        telemetry.instruments.families += [
            *of_upstreams(world.upstreams, world.gateway.loop.time),
            *of_lines([*world.gateway.models.values()], world.gateway.budgets),
        ]
        world.gateway.tell = telemetry.tell
        world.gateway._telemetry = telemetry
        for _ in range(4):
            await (await world.ask(stream=True)).read()
        page = await (await world.client.request("GET", "/metrics")).read()
        for line in (
            b'datahall_requests_total{route="chat",model="m",result="answered"} 3',
            b'datahall_refused_total{code="rate_limit_exceeded"} 1',
            b'datahall_tokens_total{model="m",kind="completion"} 9',
            b'datahall_upstream_ready{upstream="u0"} 1',
            b'datahall_upstream_open_requests{upstream="u0"} 0',
            b'datahall_waiting_requests{model="m"} 0',
            b'datahall_retries_total{result="asked"} 0',
        ):
            assert line in page
        world.gateway._has_open_metrics = False
        assert (await world.client.request("GET", "/metrics")).status == 404


@running
async def test_a_page_of_elsewhere_sees_no_metrics() -> None:
    async with gateway(whole) as world:
        request = b"GET /metrics HTTP/1.1\r\nConnection: close\r\nHost: %b\r\n\r\n"
        assert (await said(world.server, request % b"evil.example")).startswith(b"HTTP/1.1 404 ")
        assert (await said(world.server, request % b"localhost:80")).startswith(b"HTTP/1.1 200 ")


@running
async def test_who_runs_the_gateway_hears_which_upstream_failed_and_why() -> None:
    async with gateway(failing(500), whole, num_retries=1) as world:
        first = world.upstreams[0]
        first.latency_s = 0.0
        await (await world.ask()).read()
        assert world.ended[0].failures == ("u0 failed with 500",)
        first.reach.close()
        nobody = Client(Origin("127.0.0.1", 1))
        first.reach = nobody
        answer = await (await world.ask()).read()
        (why,) = world.ended[1].failures
        assert why.startswith("u0: cannot reach 127.0.0.1:1")
        assert b"127.0.0.1" not in answer
        assert b'"failures":["u0: cannot reach 127.0.0.1:1' in line_of(world.ended[1])

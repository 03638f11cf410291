"""What a tenant was answered is given to it again, streamed or whole, and costs nothing but a request."""

from __future__ import annotations

import asyncio
from time import time_ns

import msgspec
import pytest
from tests.serve.gateway.gateways import DONE, LAST, STREAM, TOLD, World, failing, gateway, stream, whole
from tests.serve.http.talking import running, until

from datahall.serve.cache.exact import Bounds
from datahall.serve.http import Exchange, run
from datahall.serve.ledger.folder import Folder
from datahall.serve.ledger.key import Limits
from datahall.serve.ledger.keys import create

BOUNDS = Bounds()
COST = 7 * 1_000 + 3 * 2_000


async def either(exchange: Exchange) -> None:
    if b'"stream":true' in exchange.request.body:
        await stream(exchange)
    else:
        whole(exchange)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_an_answer_is_given_again_in_either_manner(first: bool, again: bool) -> None:
    async def work() -> None:
        async with gateway(either, bounds=BOUNDS) as world:
            begun = await (await world.ask(stream=first)).read()
            answer = await world.ask(stream=again)
            text = await answer.read()
            assert answer.headers["x-cache"] == "hit"
            assert world.asked[0].num == 1
            assert world.spent_nano_usd == COST
            assert [ended.result for ended in world.ended] == ["answered", "cached"]
            if again:
                assert text.endswith(DONE)
                assert b"usage" not in text
            else:
                assert msgspec.json.decode(text)["usage"]["completion_tokens"] == TOLD["completion_tokens"]
            assert (text == begun) or first is not again

    run(work())


@running
async def test_who_wants_the_usage_of_a_stream_gets_it_from_the_cache_too() -> None:
    async with gateway(stream, bounds=BOUNDS) as world:
        await (await world.ask(stream=True)).read()
        answer = await world.ask(stream=True, stream_options={"include_usage": True})
        assert b'"prompt_tokens":7' in await answer.read()


@running
async def test_a_stream_of_a_fallback_is_not_kept_as_the_answer_of_who_was_asked() -> None:
    others = {"spare": stream}
    async with gateway(failing(500), bounds=BOUNDS, others=others, fallbacks=("spare",)) as world:
        for _ in range(2):
            answer = await world.ask(stream=True)
            assert answer.headers["x-served-model"] == "spare"
            assert DONE in await answer.read()
        assert world.asked[1].num == 2


async def key_of_another(world: World) -> str:
    folder: Folder = world.gateway.ledger._folder
    store = folder.store()
    _, secret = create(store, folder.pepper(store), name="other", customer="globex", now_ns=time_ns())
    store.close()
    world.gateway.ledger.reload(time_ns())
    return secret


@running
async def test_no_tenant_gets_what_another_was_answered() -> None:
    async with gateway(whole, bounds=BOUNDS) as world:
        other = await key_of_another(world)
        for secret in (world.secret, other, world.secret, other):
            await (await world.ask(secret=secret)).read()
        assert world.asked[0].num == 2


@pytest.mark.parametrize(
    ("control", "num_asked"), [("no-store", 3), ("no-cache", 3), ("max-age=0", 3), ("", 1)]
)
def test_a_client_may_pass_the_cache_by(control: str, num_asked: int) -> None:
    async def work() -> None:
        async with gateway(whole, bounds=BOUNDS) as world:
            for _ in range(3):
                await (await world.ask(headers=[("cache-control", control)])).read()
            assert world.asked[0].num == num_asked

    run(work())


@pytest.mark.parametrize("bad", [failing(500), failing(400), lambda exchange: exchange.send(200, b"<html>")])
def test_what_is_no_answer_is_not_kept(bad: object) -> None:
    async def work() -> None:
        async with gateway(bad, bounds=BOUNDS, num_retries=0) as world:  # type: ignore[arg-type]
            for _ in range(2):
                await (await world.ask()).read()
            assert world.asked[0].num == 2

    run(work())


@running
async def test_a_stream_that_broke_is_not_kept() -> None:
    async def dying(exchange: Exchange) -> None:
        exchange.start(200)
        exchange.write(STREAM[0] + LAST)
        await asyncio.sleep(0.01)
        exchange.abort()

    async with gateway(dying, bounds=BOUNDS) as world:
        for _ in range(2):
            assert b"error" in await (await world.ask(stream=True)).read()
        assert world.asked[0].num == 2


@running
async def test_many_who_ask_the_same_at_once_are_answered_by_one_call() -> None:
    async def slow(exchange: Exchange) -> None:
        await asyncio.sleep(0.02)
        whole(exchange)

    async with gateway(slow, bounds=BOUNDS) as world:
        answers = await asyncio.gather(*(world.say() for _ in range(20)))
        assert [status for status, _ in answers] == [200] * 20
        assert world.asked[0].num == 1
        assert world.spent_nano_usd == COST
        assert world.is_quiet


@running
async def test_when_who_asked_first_leaves_another_asks() -> None:
    may_answer = asyncio.Event()

    async def slow(exchange: Exchange) -> None:
        await may_answer.wait()
        whole(exchange)

    async with gateway(slow, bounds=BOUNDS) as world:
        first = asyncio.ensure_future(world.ask())
        await until(lambda: world.asked[0].num == 1)
        second = asyncio.ensure_future(world.say())
        await asyncio.sleep(0.02)
        first.cancel()
        await until(lambda: world.asked[0].num == 2)
        may_answer.set()
        assert (await second)[0] == 200
        await until(lambda: world.is_quiet)


@running
async def test_a_hit_counts_among_requests_and_is_refused_as_they_are() -> None:
    async with gateway(whole, bounds=BOUNDS, limits=Limits(requests_per_minute=2)) as world:
        assert [(await world.say())[0] for _ in range(3)] == [200, 200, 429]
        assert world.asked[0].num == 1


EMBEDDED = {"data": [{"index": 0, "embedding": [0.5]}], "usage": TOLD}
ODD: dict[str, bytes] = {
    "an error": msgspec.json.encode({"error": {"message": "no"}, "usage": TOLD}),
    "choices of no form": msgspec.json.encode({"choices": ["odd"], "usage": TOLD}),
}


@pytest.mark.parametrize("body", ODD.values(), ids=ODD)
def test_an_answer_that_cannot_be_streamed_is_asked_for_again(body: bytes) -> None:
    async def odd(exchange: Exchange) -> None:
        await (stream(exchange) if b'"stream":true' in exchange.request.body else sent(exchange))

    async def sent(exchange: Exchange) -> None:
        exchange.send(200, body)

    async def work() -> None:
        async with gateway(odd, bounds=BOUNDS) as world:
            assert (await world.say())[0] == 200
            answer = await world.ask(stream=True)
            assert (answer.status, (await answer.read()).endswith(DONE)) == (200, True)
            assert world.asked[0].num == 2
            assert world.is_quiet

    run(work())


@running
async def test_a_stream_of_no_known_form_is_passed_on_and_not_kept() -> None:
    odd = b'data: {"choices":["odd"]}\n\n' + LAST + DONE

    def answer(exchange: Exchange) -> None:
        exchange.start(200)
        exchange.write(odd)
        exchange.end()

    async with gateway(answer, bounds=BOUNDS) as world:
        for _ in range(2):
            assert (await (await world.ask(stream=True)).read()).endswith(DONE)
        assert world.asked[0].num == 2
        assert [ended.result for ended in world.ended] == ["answered"] * 2


@running
async def test_embeddings_have_no_stream() -> None:
    async with gateway(
        lambda exchange: exchange.send(200, msgspec.json.encode(EMBEDDED)), bounds=BOUNDS
    ) as world:
        for streams in (False, True):
            status, said = await world.say(path="/v1/embeddings", input="Hello", stream=streams)
            assert (status, said) == (200, EMBEDDED)
        assert world.asked[0].num == 1


@running
async def test_an_answer_on_many_lines_is_given_again_as_a_stream() -> None:
    lines = msgspec.json.format(
        msgspec.json.encode(
            {"choices": [{"index": 0, "message": {"content": "Hi"}}], "usage": TOLD, "error": None}
        )
    )
    async with gateway(lambda exchange: exchange.send(200, lines), bounds=BOUNDS) as world:
        await world.say()
        answer = await world.ask(stream=True)
        assert answer.headers["x-cache"] == "hit"
        assert b'"content":"Hi"' in await answer.read()


@running
async def test_who_asks_for_what_cannot_be_kept_does_not_wait_in_turn() -> None:
    may_answer = asyncio.Event()

    async def slow(exchange: Exchange) -> None:
        await may_answer.wait()
        if exchange is not world.asked[0].exchanges[0]:
            await until(lambda: world.asked[0].num == 5)
        exchange.send(200, b'{"choices":[]}')  # that it does not say what it took

    async with gateway(slow, bounds=BOUNDS) as world:
        asking = [asyncio.ensure_future(world.say()) for _ in range(5)]
        await until(
            lambda: world.gateway.answers is not None and world.gateway.answers.cache.counts.misses == 5
        )
        assert world.asked[0].num == 1
        may_answer.set()
        assert [status for status, _ in await asyncio.gather(*asking)] == [200] * 5
        assert world.is_quiet


@running
async def test_who_waits_for_the_answer_to_another_keeps_a_deadline_of_his_own() -> None:
    may_answer = asyncio.Event()

    async def slow(exchange: Exchange) -> None:
        await may_answer.wait()
        whole(exchange)

    async with gateway(slow, bounds=BOUNDS) as world:
        first = asyncio.ensure_future(world.say())
        await until(lambda: world.asked[0].num == 1)
        status, said = await world.say(headers=[("x-request-timeout", "0.02")])
        assert (status, said["error"]["code"]) == (504, "deadline_exceeded")
        assert world.asked[0].num == 1
        may_answer.set()
        assert (await first)[0] == 200
        assert world.is_quiet


@running
async def test_a_customer_pays_for_streams_whole_answers_and_none_of_the_cache_as_its_key_does() -> None:
    async with gateway(stream, bounds=BOUNDS) as world:
        store = world.gateway.ledger._store
        store.limit_customer("acme", Limits(requests_per_minute=3, budget_nano_usd=10**9))
        world.gateway.ledger.reload(time_ns())
        for _ in range(2):
            await (await world.ask(stream=True)).read()
        left = await world.ask(stream=True, temperature=1)
        left.close()
        await until(lambda: world.is_quiet)
        customer, key = (
            world.gateway.ledger.customers(time_ns())["acme"],
            world.gateway.ledger.standing(world.key, time_ns()),
        )
        assert customer.spent_nano_usd == key.spent_nano_usd > 0
        assert (customer.num_open, customer.reserved_nano_usd) == (0, 0)
        status, said = await world.say(stream=True)
        assert (status, "customer's limit of 3 requests" in said["error"]["message"]) == (429, True)

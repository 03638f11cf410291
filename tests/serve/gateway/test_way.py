"""A request goes in, is held against its key, answered, passed on as it came, and charged for what it took."""

from __future__ import annotations

import asyncio
from time import time_ns
from typing import Any

import msgspec
import pytest
from tests.serve.gateway.gateways import (
    ASKED,
    DONE,
    LAST,
    STREAM,
    TOLD,
    gateway,
    piece,
    stream,
    whole,
    word,
)
from tests.serve.http.talking import running, said, until

from datahall.serve.cache.exact import Bounds
from datahall.serve.http import Exchange, Interrupted, Request, Timeouts, answer_of, run
from datahall.serve.ledger.key import Limits
from datahall.serve.ledger.keys import create
from datahall.serve.ledger.money import Usage

COST = 7 * 1_000 + 3 * 2_000  # nano-dollars of TOLD


@running
async def test_a_whole_answer_is_passed_on_and_charged() -> None:
    async with gateway(whole) as world:
        answer = await world.ask(temperature=0.5, tools=[])
        assert answer.status == 200
        assert msgspec.json.decode(await answer.read())["usage"] == TOLD
        assert answer.headers["x-served-model"] == "m"
        (sent,) = world.asked[0].bodies
        assert sent == {**ASKED, "model": "m-there", "temperature": 0.5, "tools": []}
        request = world.asked[0].exchanges[0].request
        assert (request.path, "authorization" in request.headers) == ("/v1/chat/completions", False)
        assert world.spent_nano_usd == COST
        (ended,) = world.ended
        assert (ended.result, ended.usage, ended.charged_nano_usd) == ("answered", Usage(7, 0, 3), COST)
        assert ended.request_id == answer.headers["x-request-id"]
        assert world.is_quiet


@pytest.mark.parametrize("wants_usage", [True, False])
def test_a_stream_is_passed_on_as_it_comes_and_always_counted(wants_usage: bool) -> None:
    async def work() -> None:
        async with gateway(stream) as world:
            asked: dict[str, Any] = {"stream_options": {"include_usage": True}} if wants_usage else {}
            answer = await world.ask(stream=True, **asked)
            expected = [*STREAM, *([LAST] if wants_usage else []), DONE]
            assert await answer.read() == b"".join(expected)
            assert answer.headers["content-type"] == "text/event-stream"
            assert world.asked[0].bodies[0]["stream_options"] == {"include_usage": True}
            assert world.spent_nano_usd == COST
            assert world.is_quiet

    run(work())


@pytest.mark.parametrize("size", [1, 7, 50])
def test_a_stream_in_any_pieces_arrives_in_whole_events(size: int) -> None:
    async def crumbs(exchange: Exchange) -> None:
        exchange.start(200)
        text = b"".join((*STREAM, LAST, DONE)).replace(b"\n", b"\r\n")
        for place in range(0, len(text), size):
            exchange.write(text[place : place + size])
            await asyncio.sleep(0)
        exchange.end()

    async def work() -> None:
        async with gateway(crumbs) as world:
            assert await (await world.ask(stream=True)).read() == b"".join((*STREAM, DONE))
            assert world.spent_nano_usd == COST

    run(work())


@running
async def test_an_upstream_that_dies_within_a_stream_is_an_error_in_it_and_what_came_is_charged() -> None:
    async def dying(exchange: Exchange) -> None:
        exchange.start(200)
        exchange.write(STREAM[0] + STREAM[1])
        exchange.write(STREAM[2][:10])
        await asyncio.sleep(0.01)
        exchange.abort()

    async with gateway(dying) as world:
        text = await (await world.ask(stream=True)).read()
        assert text.startswith(STREAM[0] + STREAM[1] + b'data: {"error":')
        assert b"upstream_failed" in text
        assert DONE not in text
        (ended,) = world.ended
        assert (ended.result, ended.usage.completion) == ("failed", 2)
        assert world.is_quiet


@running
async def test_a_stream_that_stands_still_is_ended_with_an_error() -> None:
    async def still(exchange: Exchange) -> None:
        exchange.start(200)
        exchange.write(STREAM[0])
        await asyncio.sleep(60)

    async with gateway(still, timeouts=Timeouts(between_s=0.05)) as world:
        text = await (await world.ask(stream=True)).read()
        assert b"the answer stood still" in text
        await until(lambda: world.asked[0].num_gone == 1)
        assert world.is_quiet


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_client_that_leaves_takes_the_upstream_with_it(is_stream: bool) -> None:
    async def slow(exchange: Exchange) -> None:
        if is_stream:
            exchange.start(200)
            exchange.write(STREAM[0])
        await asyncio.sleep(60)

    async def work() -> None:
        async with gateway(slow) as world:
            asking = asyncio.ensure_future(world.ask(stream=is_stream))
            await until(lambda: world.asked[0].num == 1)
            if is_stream:
                answer = await asking
                assert await answer.piece() == STREAM[0]
            world.client.close()
            await until(lambda: world.asked[0].num_gone == 1)
            await until(lambda: world.is_quiet)
            (ended,) = world.ended
            assert (ended.result, ended.usage.completion) == ("cancelled", int(is_stream))
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    run(work())


@running
async def test_a_client_that_leaves_the_line_holds_nothing() -> None:
    async def slow(exchange: Exchange) -> None:
        await asyncio.sleep(60)
        del exchange

    async with gateway(slow, most=1) as world:
        first = asyncio.ensure_future(world.ask())
        await until(lambda: world.asked[0].num == 1)
        second = asyncio.ensure_future(world.ask())
        pool = world.gateway.models["m"].pool
        await until(lambda: pool.num_waiting == 1)
        assert world.gateway.ledger.num_open == 2
        world.client.close()
        await until(lambda: world.is_quiet)
        assert pool.num_waiting == 0
        assert world.asked[0].num == 1
        await asyncio.gather(first, second, return_exceptions=True)


@running
async def test_an_answer_that_does_not_say_what_it_took_is_charged_as_far_as_it_can_be_counted() -> None:
    async with gateway(
        lambda exchange: exchange.send(200, b'{"choices":[],"x":"' + b"y" * 9 + b'"}')
    ) as world:
        assert (await world.say())[0] == 200
        (ended,) = world.ended
        assert ended.usage.prompt > 0
        assert ended.usage.completion == 10


REFUSED: dict[str, tuple[int, str, dict[str, Any]]] = {
    "no model": (400, "invalid_value", {"model": ""}),
    "a model of no name": (400, "invalid_type", {"model": 3}),
    "another model": (404, "model_not_found", {"model": "../../etc/passwd"}),
    "no messages": (400, "missing_value", {"path": "/v1/completions"}),
    "no length": (400, "invalid_value", {"max_tokens": 0}),
    "a negative length": (400, "invalid_value", {"max_tokens": -1}),
    "a length of no number": (400, "invalid_type", {"max_tokens": "many"}),
    "too many choices": (400, "invalid_value", {"n": 1000}),
    "stream of no truth": (400, "invalid_type", {"stream": "yes"}),
    "a wrong priority": (400, "invalid_value", {"headers": [("x-priority", "urgent")]}),
    "a wrong deadline": (400, "invalid_value", {"headers": [("x-request-timeout", "soon")]}),
    "no key": (401, "invalid_api_key", {"secret": ""}),
    "another key": (401, "invalid_api_key", {"secret": "dh-wrong"}),
    "another path": (404, "not_found", {"path": "/v1/audio"}),
}


@pytest.mark.parametrize(("status", "code", "asked"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_answered_is_refused_before_anybody_is_asked(
    status: int, code: str, asked: dict[str, Any]
) -> None:
    async def work() -> None:
        async with gateway(whole) as world:
            said = await world.say(**asked)
            assert (said[0], said[1]["error"]["code"]) == (status, code)
            assert {"message", "type", "param", "code"} == said[1]["error"].keys()
            assert world.asked[0].num == 0
            assert world.is_quiet
            assert world.spent_nano_usd == 0

    run(work())


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{", b"nothing", b'{"model":"m"', b"\xff", b"[" * 100_000, b'{"model":' + b"[" * 100_000],
)
def test_a_body_that_is_no_json_object_is_refused(body: bytes) -> None:
    async def work() -> None:
        async with gateway(whole) as world:
            headers = [("authorization", f"Bearer {world.secret}")]
            answer = await world.client.request("POST", "/v1/chat/completions", body, headers)
            assert answer.status == 400
            assert b"invalid" in await answer.read()

    run(work())


@running
async def test_a_key_that_stands_twice_means_one_thing() -> None:
    async with gateway(whole, others={"dear": whole}) as world:
        body = b'{"model":"dear","messages":[{}],"model":"m"}'
        headers = [("authorization", f"Bearer {world.secret}")]
        await (await world.client.request("POST", "/v1/chat/completions", body, headers)).read()
        assert world.asked[0].exchanges[0].request.body.count(b'"model"') == 1
        assert world.asked[1].num == 0


@running
async def test_limits_of_a_key_are_said_and_kept() -> None:
    async with gateway(whole, limits=Limits(requests_per_minute=2)) as world:
        answers = [await world.ask() for _ in range(3)]
        bodies = [await answer.read() for answer in answers]
        assert [answer.status for answer in answers] == [200, 200, 429]
        assert answers[0].headers["x-ratelimit-remaining-requests"] == "1"
        assert int(answers[2].headers["retry-after"]) >= 1
        assert msgspec.json.decode(bodies[2])["error"]["code"] == "rate_limit_exceeded"
        assert world.asked[0].num == 2


@running
async def test_a_budget_binds_among_many_at_once() -> None:
    may_answer = asyncio.Event()

    async def slow(exchange: Exchange) -> None:
        await may_answer.wait()
        whole(exchange)

    room = 5
    held = (len(msgspec.json.encode(ASKED)) // 3 + 1) * 1_000 + 20 * 2_000
    async with gateway(slow, limits=Limits(budget_nano_usd=room * held)) as world:
        asking = [asyncio.ensure_future(world.say()) for _ in range(40)]
        await until(lambda: sum(one.done() for one in asking) == 40 - room)
        may_answer.set()
        answers = await asyncio.gather(*asking)
        statuses = sorted(status for status, _ in answers)
        assert statuses == [200] * room + [402] * (40 - room)
        assert world.spent_nano_usd == room * COST
        assert world.is_quiet


@running
async def test_a_key_for_some_routes_is_for_no_other() -> None:
    async with gateway(whole) as world:
        folder = world.gateway.ledger._folder
        store = folder.store()
        _, secret = create(store, folder.pepper(store), name="chats", routes=["chat"], now_ns=time_ns())
        store.close()
        world.gateway.ledger.reload(time_ns())
        assert (await world.say(secret=secret))[0] == 200
        status, said = await world.say(secret=secret, path="/v1/completions", prompt="x")
        assert (status, said["error"]["code"]) == (403, "not_permitted")
        headers = [("authorization", f"Bearer {secret}")]
        assert (await world.client.request("GET", "/v1/models", headers=headers)).status == 200


@running
async def test_where_no_key_is_asked_for_anybody_is_let_in() -> None:
    async with gateway(whole, anybody=True) as world:
        assert (await world.say(secret=""))[0] == 200
        assert (await world.say(secret="sk-of-a-client-that-wants-one"))[0] == 200
        assert (await world.say(secret="dh-wrong"))[0] == 401


@running
async def test_models_and_health_are_told() -> None:
    async with gateway(whole, others={"n": whole}) as world:
        headers = [("authorization", f"Bearer {world.secret}")]

        async def get(path: str, headers: Any = headers) -> tuple[int, Any]:
            answer = await world.client.request("GET", path, headers=headers)
            return answer.status, msgspec.json.decode(await answer.read())

        assert [card["id"] for card in (await get("/v1/models"))[1]["data"]] == ["m", "n"]
        assert (await get("/v1/models/n"))[1]["id"] == "n"
        assert (await get("/v1/models/x"))[0] == 404
        assert (await get("/v1/models", headers=()))[0] == 401
        assert await get("/health") == (200, {"status": "healthy", "models": {"m": True, "n": True}})
        world.gateway.is_draining = True
        assert ((await get("/health/ready"))[0], (await get("/health/live"))[0]) == (503, 200)
        assert (await get("/v1/chat/completions"))[0] == 405


@running
async def test_a_deadline_ends_the_wait() -> None:
    async def slow(exchange: Exchange) -> None:
        await asyncio.sleep(60)
        del exchange

    async with gateway(slow) as world:
        status, said = await world.say(headers=[("x-request-timeout", "0.1")])
        assert (status, said["error"]["code"]) == (504, "deadline_exceeded")
        await until(lambda: world.asked[0].num_gone == 1)
        assert world.is_quiet


@pytest.mark.parametrize(
    "sent", [STREAM[0] + STREAM[1], STREAM[0] + STREAM[1] + LAST, STREAM[0] + STREAM[1][:20]]
)
def test_a_stream_that_only_stops_is_an_error_in_it(sent: bytes) -> None:
    def stopping(exchange: Exchange) -> None:
        exchange.start(200)
        exchange.write(sent)
        exchange.end()

    async def work() -> None:
        async with gateway(stopping) as world:
            text = await (await world.ask(stream=True)).read()
            assert text.startswith(STREAM[0])
            assert b'data: {"error":' in text
            assert DONE not in text
            assert world.ended[0].result == "failed"
            assert world.is_quiet

    run(work())


@pytest.mark.parametrize("end", [b"", DONE, DONE[:-1], DONE[:-2], DONE.replace(b"\\n", b"\\r\\n")])
def test_a_stream_that_says_why_it_ended_has_ended(end: bytes) -> None:
    def ending(exchange: Exchange) -> None:
        exchange.start(200)
        exchange.write(b"".join(STREAM) + end)
        exchange.end()

    async def work() -> None:
        async with gateway(ending) as world:
            text = await (await world.ask(stream=True)).read()
            assert text == b"".join(STREAM) + (DONE if end else b"")
            assert world.ended[0].result == "answered"

    run(work())


@running
async def test_what_is_said_at_the_beginning_of_a_stream_is_not_all_that_it_took() -> None:
    async def dying(exchange: Exchange) -> None:
        exchange.start(200)
        exchange.write(
            piece(type="message_start", message={"usage": {"input_tokens": 7, "output_tokens": 1}})
        )
        for _ in range(9):
            exchange.write(piece(type="content_block_delta", index=0))
        await asyncio.sleep(0.01)
        exchange.abort()

    async with gateway(dying) as world:
        world.upstreams[0].api = "anthropic"
        await (await world.ask(path="/v1/messages", stream=True)).read()
        assert world.ended[0].usage == Usage(7, 0, 10)


@pytest.mark.parametrize("framing", ["content-length: 9000000", "transfer-encoding: chunked"])
def test_who_has_no_key_hears_so_before_he_has_sent_his_body(framing: str) -> None:
    async def work() -> None:
        async with gateway(whole) as world:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer dh-x\r\n{framing}\r\n\r\n"
            answer = await said(world.server, head.encode())
            assert answer.startswith(b"HTTP/1.1 401 ")
            assert b'"code":"invalid_api_key"' in answer
            (ended,) = world.ended
            assert (ended.result, ended.code) == ("refused", "invalid_api_key")

    run(work())


@running
async def test_a_deadline_ends_an_answer_that_its_client_does_not_read() -> None:
    async def pour(exchange: Exchange) -> None:
        exchange.start(200)
        while True:
            exchange.write(word("x" * 60_000))
            await exchange.drain()
            await asyncio.sleep(0)

    async with gateway(pour, most=1, deadline_s=1.0) as world:
        body = msgspec.json.encode({**ASKED, "stream": True})
        headers = {"authorization": f"Bearer {world.secret}"}
        request = Request("POST", "/v1/chat/completions", headers=headers, body=body)
        answer = await answer_of(world.gateway, request)
        await until(lambda: len(world.ended) == 1)
        assert (world.ended[0].result, world.ended[0].code) == ("cancelled", "deadline_exceeded")
        await until(lambda: world.asked[0].num_gone == 1)
        assert world.is_quiet
        with pytest.raises(Interrupted):
            await answer.read()


@running
async def test_work_that_its_client_left_counts_in_the_limit_of_tokens_and_is_not_charged() -> None:
    async def slow(exchange: Exchange) -> None:
        await asyncio.sleep(60)
        del exchange

    async with gateway(slow, limits=Limits(tokens_per_minute=1000)) as world:
        asking = asyncio.ensure_future(world.ask(messages=[{"role": "user", "content": "x" * 2700}]))
        await until(lambda: world.asked[0].num == 1)
        world.client.close()
        await until(lambda: world.is_quiet)
        await asyncio.gather(asking, return_exceptions=True)
        assert world.spent_nano_usd == 0
        assert world.gateway.ledger.standing(world.key, time_ns()).tokens_left < 100


@running
async def test_a_mistake_of_ours_is_a_failure_and_no_client_that_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wrong(*_: object) -> None:
        raise ZeroDivisionError

    async with gateway(whole) as world:
        monkeypatch.setattr("datahall.serve.gateway.way.usage_of", wrong)
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        assert (await world.say())[0] == 500
        assert (world.ended[0].result, world.ended[0].status) == ("failed", 500)


def saying(**usage: Any) -> Any:
    """An upstream that says what it took, be it so or not."""
    return lambda exchange: exchange.send(200, msgspec.json.encode({"choices": [], "usage": usage}))


@pytest.mark.parametrize("is_stream", [False, True])
def test_an_answer_longer_than_it_was_asked_for_is_charged_as_it_came(is_stream: bool) -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 3000}

    async def pour(exchange: Exchange) -> None:
        if not is_stream:
            choice = {"index": 0, "message": {"role": "assistant", "content": "word " * 3000}}
            exchange.send(200, msgspec.json.encode({"choices": [choice], "usage": usage}))
            return
        exchange.start(200)
        exchange.write(b"".join((*(word("x") for _ in range(3000)), piece(choices=[], usage=usage), DONE)))
        exchange.end()

    async def work() -> None:
        async with gateway(pour) as world:
            await (await world.ask(stream=is_stream)).read()
            assert world.ended[0].usage == Usage(7, 0, 3000)

    run(work())


@running
async def test_a_number_that_is_none_does_not_hide_what_was_taken() -> None:
    answer = b'{"choices":[{"logprobs":-Infinity}],"usage":{"prompt_tokens":7,"completion_tokens":3}}'
    async with gateway(lambda exchange: exchange.send(200, answer)) as world:
        await (await world.ask()).read()
        assert world.ended[0].usage == Usage(7, 0, 3)


def saying_in_a_stream(**usage: Any) -> Any:
    async def answer(exchange: Exchange) -> None:
        exchange.start(200)
        exchange.write(b"".join((*STREAM, piece(choices=[], usage=usage), DONE)))
        exchange.end()

    return answer


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("length", [{"max_tokens": 20}, {"max_tokens": None}])
def test_an_upstream_that_counts_beyond_all_reason_does_not_spend_more_than_is_left(
    is_stream: bool, length: dict[str, Any]
) -> None:
    lies = {"prompt_tokens": 10**9, "completion_tokens": 10**9}

    async def work() -> None:
        handler = saying_in_a_stream(**lies) if is_stream else saying(**lies)
        budget = 10_000_000
        async with gateway(handler, limits=Limits(budget_nano_usd=budget, period="total")) as world:
            await (await world.ask(stream=is_stream, **length)).read()
            usage = world.ended[0].usage
            assert usage.prompt < 4_400
            assert usage.completion <= (20 if length["max_tokens"] else 1000)
            assert world.spent_nano_usd <= budget

    run(work())


@running
async def test_an_answer_of_no_length_has_no_more_tokens_than_bytes_but_for_those_it_hides() -> None:
    shown = {"prompt_tokens": 7, "completion_tokens": 5000}
    async with gateway(saying(**shown)) as world:
        answer = await (await world.ask(max_tokens=None)).read()
        assert world.ended[0].usage.completion == len(answer)
    async with gateway(saying(**shown, completion_tokens_details={"reasoning_tokens": 4990})) as world:
        await (await world.ask(max_tokens=None)).read()
        assert world.ended[0].usage.completion == 5000


@pytest.mark.parametrize(
    ("limits", "asked", "told"),
    [
        (Limits(), {}, None),
        (Limits(tokens_per_minute=100_000), {}, 4096),
        (Limits(tokens_per_minute=3000), {}, 2973),
        (Limits(budget_nano_usd=10**9), {}, 4096),
        (Limits(budget_nano_usd=2_000_000), {}, 986),
        (Limits(budget_nano_usd=2_000_000), {"n": 2}, 492),
        (Limits(budget_nano_usd=2_000_000), {"max_tokens": 12}, None),
    ],
)
def test_an_answer_of_no_length_is_given_one_where_a_key_has_an_end(
    limits: Limits, asked: dict[str, Any], told: int | None
) -> None:
    async def work() -> None:
        async with gateway(whole, limits=limits) as world:
            answer = await world.ask(**{"max_tokens": None, **asked})
            assert answer.status == 200
            assert world.asked[0].bodies[0].get("max_completion_tokens") == told

    run(work())


@running
async def test_a_budget_that_has_no_room_for_a_short_answer_is_spent() -> None:
    async with gateway(whole, limits=Limits(budget_nano_usd=400_000)) as world:
        assert (await world.say(max_tokens=None))[0] == 402
        assert (await world.say(max_tokens=20))[0] == 200


@pytest.mark.parametrize(("budget_nano_usd", "num_asked"), [(10**9, 1), (8_000_000, 2)])
def test_an_answer_that_is_short_for_want_of_money_is_given_to_nobody_else(
    budget_nano_usd: int, num_asked: int
) -> None:
    async def work() -> None:
        async with gateway(whole, bounds=Bounds(), limits=Limits(budget_nano_usd=budget_nano_usd)) as world:
            for _ in range(2):
                assert (await world.say(max_tokens=None))[0] == 200
            assert world.asked[0].num == num_asked

    run(work())

"""What fails before a client has seen anything is asked elsewhere, within a budget, never before its Retry-After."""

from __future__ import annotations

import asyncio
from itertools import count

import msgspec
import pytest
from tests.serve.gateway.gateways import STREAM, Handler, World, failing, gateway, stream, whole
from tests.serve.http.talking import running, until

from datahall.serve.gateway.attempts import MOST_ERROR_BYTES
from datahall.serve.http import Client, Exchange, Origin, Timeouts, run
from datahall.serve.ledger.money import Usage
from datahall.serve.upstreams.breaker import FAILURES
from datahall.serve.upstreams.retry_budget import MOST, SHARE


async def never(exchange: Exchange) -> None:
    await asyncio.sleep(60)
    del exchange


def hang_up(exchange: Exchange) -> None:
    exchange.abort()


def half(exchange: Exchange) -> None:
    exchange.start(200, content_type="application/json")
    exchange.write(b'{"choices"')
    exchange.abort()


def nothing(exchange: Exchange) -> None:
    exchange.start(200)
    exchange.end()


def redirect(exchange: Exchange) -> None:
    exchange.send(302, b"", [("location", "http://169.254.169.254/")])


def cut(exchange: Exchange) -> None:
    exchange.send(200, b'{"choices":[{"index":0}')


def page(exchange: Exchange) -> None:
    exchange.send(200, b"<html>", content_type="application/json")


BAD = {
    "500": failing(500),
    "503": failing(503),
    "429": failing(429, ("retry-after", "9")),
    "our key is wrong": failing(401),
    "a redirect": redirect,
    "nothing": hang_up,
    "half an answer": half,
    "a stream of nothing": nothing,
    "a part of an answer": cut,
    "a page": page,
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize("is_stream", [False, True])
def test_another_upstream_answers_where_one_fails(bad: object, is_stream: bool) -> None:
    async def work() -> None:
        async with gateway(bad, stream if is_stream else whole) as world:  # type: ignore[arg-type]
            answer = await world.ask(stream=is_stream)
            assert answer.status == 200
            assert await answer.read()
            assert [one.num for one in world.asked] == [1, 1]
            assert world.is_quiet

    run(work())


@running
async def test_what_is_the_questions_own_fault_is_passed_on_and_not_asked_again() -> None:
    async with gateway(failing(400), whole) as world:
        status, said = await world.say()
        assert (status, said) == (400, {"error": {"message": "no"}})
        assert world.asked[1].num == 0
        assert world.spent_nano_usd == 0
        assert world.is_quiet


@running
async def test_an_upstream_that_names_a_time_is_not_asked_before_it() -> None:
    async with gateway(failing(429, ("retry-after", "7"))) as world:
        for number in range(5):
            answer = await world.ask()
            await answer.read()
            assert answer.status == (429 if number == 0 else 503)
            assert 5 <= int(answer.headers["retry-after"]) <= 7
        assert world.asked[0].num == 1
        assert world.spent_nano_usd == 0
        assert world.gateway.budgets.num_spent == 0


async def amplification(world: World, num_requests: int) -> float:
    for _ in range(num_requests):
        await (await world.ask()).read()
        for upstream in world.upstreams:  # as if all the time in the world had passed
            upstream.breaker.succeed()
            upstream.not_before_s = 0.0
    return sum(one.num for one in world.asked) / num_requests


def every_other_hangs_up() -> Handler:
    """Answers the first request of a connection, and closes it when the second has come."""
    numbers = count(1)
    return lambda exchange: whole(exchange) if next(numbers) % 2 else hang_up(exchange)


@running
async def test_a_connection_that_broke_is_asked_anew_within_the_budget_too() -> None:
    async with gateway(every_other_hangs_up(), num_retries=0) as world:
        statuses = [(await world.say())[0] for _ in range(3)]
        assert statuses == [200, 200, 200]
        assert world.asked[0].num == 5
        assert world.gateway.budgets.num_spent == 2
        assert [told.num_attempts for told in world.ended] == [1, 2, 2]
        assert await amplification(world, 297) * 297 <= 300 * (1 + SHARE) + MOST <= 300 * 1.1
        assert world.gateway.budgets.num_refused > 0
        assert world.is_quiet


@pytest.mark.parametrize("bad", [failing(500), failing(429), hang_up])
def test_failing_upstreams_are_not_asked_much_more_often_than_clients_ask(bad: object) -> None:
    async def work() -> None:
        async with gateway(bad, bad, num_retries=5) as world:  # type: ignore[arg-type]
            assert await amplification(world, 300) <= 1 + SHARE + MOST / 300 <= 1.1

    run(work())


@running
async def test_a_broken_upstream_is_left_alone_and_taken_back() -> None:
    async with gateway(failing(500), num_retries=0) as world:
        codes = [(await world.say())[1]["error"]["code"] for _ in range(5)]
        world.upstreams[0].breaker._until_s += 60
        codes += [(await world.say())[1]["error"]["code"] for _ in range(3)]
        assert codes == ["upstream_failed"] * 5 + ["overloaded"] * 3
        assert world.asked[0].num == 5
        world.asked[0].handler = whole
        now_s = asyncio.get_running_loop().time()
        assert not world.upstreams[0].breaker.allows(now_s)
        world.upstreams[0].breaker._until_s = now_s
        assert (await world.say())[0] == 200
        assert world.upstreams[0].breaker.is_closed


@running
async def test_another_model_answers_where_all_upstreams_of_one_fail() -> None:
    async with gateway(failing(500), others={"spare": whole}, fallbacks=("spare",), num_retries=0) as world:
        answer = await world.ask()
        assert (answer.status, answer.headers["x-served-model"]) == (200, "spare")
        await answer.read()
        assert world.asked[1].bodies[0]["model"] == "spare-there"
        assert world.ended[0].served == "spare"


@running
async def test_a_smaller_model_relieves_one_that_many_wait_for() -> None:
    async with gateway(never, others={"small": whole}, relief="small", relief_at=1, most=1) as world:
        asking = [asyncio.ensure_future(world.ask()) for _ in range(2)]
        await until(lambda: world.gateway.models["m"].pool.num_waiting == 1)
        answer = await world.ask()
        assert answer.headers["x-served-model"] == "small"
        await answer.read()
        world.client.close()
        await asyncio.gather(*asking, return_exceptions=True)


@running
async def test_a_slow_upstream_is_overtaken_by_a_second_and_told() -> None:
    async with gateway(never, whole, hedge_s=0.02) as world:
        assert (await world.say())[0] == 200
        await until(lambda: world.asked[0].num_gone == 1)
        assert [one.num for one in world.asked] == [1, 1]
        assert world.ended[0].usage == Usage(7, 0, 3)
        await until(lambda: world.is_quiet)


@pytest.mark.parametrize(("first", "second"), [(failing(500), whole), (whole, never)])
def test_hedging_does_not_change_who_answers(first: object, second: object) -> None:
    async def work() -> None:
        async with gateway(first, second, hedge_s=5.0) as world:  # type: ignore[arg-type]
            assert (await world.say())[0] == 200
            assert world.is_quiet

    run(work())


@running
async def test_two_that_fail_while_hedged_are_one_error() -> None:
    async def slow_failure(exchange: Exchange) -> None:
        await asyncio.sleep(0.05)
        exchange.send(500)

    async with gateway(slow_failure, slow_failure, hedge_s=0.01, num_retries=0) as world:
        assert (await world.say())[0] == 502
        await until(lambda: world.is_quiet)


@running
async def test_an_upstream_that_takes_too_long_is_left_for_another() -> None:
    async with gateway(never, whole, timeouts=Timeouts(first_byte_s=0.05)) as world:
        assert (await world.say())[0] == 200
        assert world.ended[0].status == 200


@running
async def test_a_stream_that_has_begun_is_never_asked_again() -> None:
    async def broken(exchange: Exchange) -> None:
        exchange.start(200)
        exchange.write(STREAM[0])
        await asyncio.sleep(0.01)
        exchange.abort()

    async with gateway(broken, stream) as world:
        text = await (await world.ask(stream=True)).read()
        assert text.startswith(STREAM[0])
        assert b"error" in text
        assert world.asked[1].num == 0


@running
async def test_many_at_once_share_upstreams_by_their_room_and_all_are_answered() -> None:
    most_at_once = 0

    async def slow(exchange: Exchange) -> None:
        nonlocal most_at_once
        most_at_once = max(most_at_once, *(one.num_open for one in world.upstreams))
        await asyncio.sleep(0.002)
        whole(exchange)

    async with gateway(slow, slow, most=3, waiting=200) as world:
        answers = await asyncio.gather(*(world.say() for _ in range(100)))
        assert [status for status, _ in answers] == [200] * 100
        assert most_at_once == 3
        assert world.is_quiet


@running
async def test_a_full_line_is_said_with_a_time_to_come_back() -> None:
    async with gateway(never, most=1, waiting=1) as world:
        asking = [asyncio.ensure_future(world.ask()) for _ in range(2)]
        await until(lambda: world.gateway.models["m"].pool.num_waiting == 1)
        answer = await world.ask()
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert msgspec.json.decode(await answer.read())["error"]["code"] == "overloaded"
        world.client.close()
        await asyncio.gather(*asking, return_exceptions=True)
        await until(lambda: world.is_quiet)


@running
async def test_a_trial_that_asks_what_the_upstream_does_not_offer_is_no_trial() -> None:
    async with gateway(whole) as world:
        (one,) = world.upstreams
        one.api = "anthropic"
        for _ in range(FAILURES):
            one.did_fail(0.0)
        one.breaker._until_s = 0.0
        assert (await world.say(path="/v1/embeddings", input="Hello"))[1]["error"]["code"] == "not_offered"
        assert one.is_ready(asyncio.get_running_loop().time())


@running
async def test_a_client_in_a_hurry_says_nothing_of_an_upstream() -> None:
    async with gateway(never, num_retries=0) as world:
        for _ in range(FAILURES):
            status, said = await world.say(headers=[("x-request-timeout", "0.01")])
            assert (status, said["error"]["code"]) == (504, "deadline_exceeded")
        assert world.upstreams[0].breaker.is_closed
        assert world.upstreams[0].num_failed == 0
        assert world.is_quiet


@running
async def test_an_upstream_that_is_slower_than_the_model_may_be_has_failed() -> None:
    async with gateway(never, num_retries=0, deadline_s=0.01) as world:
        assert (await world.say())[0] == 504
        assert world.upstreams[0].num_failed == 1


@running
async def test_a_long_reason_for_a_refusal_is_no_failure_of_the_upstream() -> None:
    def wordy(exchange: Exchange) -> None:
        exchange.send(400, msgspec.json.encode({"detail": "x" * 2 * MOST_ERROR_BYTES}))

    async with gateway(wordy) as world:
        for _ in range(FAILURES):
            status, said = await world.say()
            assert (status, said["error"]["code"]) == (400, "upstream_refused")
        assert world.upstreams[0].breaker.is_closed
        assert world.asked[0].num == FAILURES
        assert world.is_quiet


@running
async def test_a_refusal_in_another_form_is_put_into_ours() -> None:
    def refusing(exchange: Exchange) -> None:
        exchange.send(404, b'{"detail":"Not Found"}')

    async with gateway(refusing) as world:
        status, said = await world.say()
        assert status == 404
        assert (said["error"]["message"], said["error"]["code"]) == ("Not Found", "upstream_refused")
        assert world.is_quiet


@running
async def test_where_an_upstream_stands_is_not_told_to_clients() -> None:
    async with gateway(whole, num_retries=0) as world:
        reach = world.upstreams[0].reach
        assert isinstance(reach, Client)
        reach.origin = Origin("127.0.0.1", 1)
        status, said = await world.say()
        assert (status, said["error"]["message"]) == (502, "u0 cannot be reached")


@pytest.mark.parametrize("status", [302, 401, 402, 403])
def test_an_upstream_that_sends_us_away_has_failed_and_is_not_asked_again(status: int) -> None:
    async def work() -> None:
        others = {"spare": whole}
        async with gateway(failing(status), others=others, fallbacks=("spare",)) as world:
            for _ in range(FAILURES + 3):
                assert (await world.say())[0] == 200
            assert (world.asked[0].num, world.upstreams[0].num_failed) == (FAILURES, FAILURES)
            assert not world.upstreams[0].breaker.is_closed
            assert world.gateway.budgets.num_spent == 0
            assert world.is_quiet

    run(work())


@running
async def test_where_nobody_else_is_an_upstream_that_sends_us_away_is_asked_once() -> None:
    async with gateway(failing(401), failing(500), num_retries=2) as world:
        assert (await world.say())[0] == 502
        assert [one.num for one in world.asked] == [1, 2]


@running
async def test_a_fallback_is_asked_before_the_same_upstream_again_and_at_no_cost() -> None:
    async with gateway(failing(500), others={"spare": whole}, fallbacks=("spare",)) as world:
        for _ in range(40):
            assert (await world.say())[0] == 200
            world.upstreams[0].breaker.succeed()
        assert [one.num for one in world.asked] == [40, 40]
        assert world.gateway.budgets.num_spent == 0


@running
async def test_where_the_fallback_fails_too_both_are_asked_again() -> None:
    others = {"spare": failing(500)}
    async with gateway(failing(500), others=others, fallbacks=("spare",), num_retries=1) as world:
        assert (await world.say())[0] == 502
        assert [one.num for one in world.asked] == [2, 3]
        assert [budget.num_spent for budget in map(world.gateway.budgets.of, ("m", "spare"))] == [1, 2]


@running
async def test_a_model_that_fails_takes_no_retries_from_others() -> None:
    flaky = count()
    others = {"other": lambda exchange: (failing(500) if next(flaky) % 2 == 0 else whole)(exchange)}
    async with gateway(failing(500), others=others) as world:
        await amplification(world, 50)
        assert not world.gateway.budgets.of("m").take()
        assert (await world.say(model="other"))[0] == 200


@running
async def test_an_answer_too_deep_to_read_is_asked_elsewhere() -> None:
    deep = b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}"
    for status in (200, 400):
        handler = lambda exchange, status=status: exchange.send(status, deep)  # noqa: E731
        async with gateway(handler, whole, num_retries=1) as world:
            assert (await world.say())[0] == (200 if status == 200 else 400)
            assert world.ended[0].result == ("answered" if status == 200 else "failed")
            assert world.is_quiet


@running
async def test_a_second_upstream_that_is_not_paid_for_is_not_held() -> None:
    async def slow(exchange: Exchange) -> None:
        await asyncio.sleep(0.05)
        whole(exchange)

    async with gateway(slow, whole, hedge_s=0.001) as world:
        budget = world.gateway.budgets.of("m")
        while budget.take():
            pass
        assert (await world.say())[0] == 200
        assert world.asked[1].num == 0
        assert world.is_quiet


CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "x"}}
UNFORMED: tuple[dict[str, object], ...] = (
    {"messages": [{"role": "assistant", "tool_calls": [CALL]}]},
    {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": 5}]}]},
    {"tools": [{"type": "function", "function": 1}]},
)


@pytest.mark.parametrize("asked", UNFORMED)
def test_a_question_that_cannot_be_translated_is_its_own_fault(asked: dict[str, object]) -> None:
    async def work() -> None:
        async with gateway(whole) as world:
            world.upstreams[0].api = "anthropic"
            assert (await world.say(**asked))[0] == 400
            assert (world.asked[0].num, world.upstreams[0].num_failed) == (0, 0)
            assert world.is_quiet

    run(work())

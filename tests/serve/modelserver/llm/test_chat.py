"""OpenAI's chat over an engine whose every word is known."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from tests.serve.modelserver.llm.scripted import HELLO, USAGE, Scripted, delta, piece
from tests.serve.modelserver.models import run

from datahall.serve.http import Request, Response, answer_of
from datahall.serve.http.sse import Events, data_of
from datahall.serve.modelserver.llm.chat import Chat

USER = [{"role": "user", "content": "hi"}]


def asking(**said: Any) -> Request:
    body = msgspec.json.encode({"model": "m", "messages": USER, **said})
    return Request("POST", "/v1/chat/completions", body=body)


async def decoded(chat: Chat, request: Request) -> tuple[int, Any]:
    response = await answer_of(chat.chat, request)
    return response.status, msgspec.json.decode(await response.read())


async def streamed(response: Response) -> list[Any]:
    blocks = Events().feed(await response.read())
    return [data if data == b"[DONE]" else msgspec.json.decode(data) for data in map(data_of, blocks)]


def with_chat(engine: Any, test: Callable[[Chat], Awaitable[object]], most_queued: int = 8) -> Chat:
    made = []

    async def main() -> None:
        chat = Chat("m", most_queued)
        made.append(chat)
        await chat.load(lambda: engine)
        await test(chat)
        await chat.close()
        assert (chat.meter.num_running, chat.meter.num_waiting) == (0, 0)

    run(main)
    return made[0]


def test_an_answer_that_does_not_stream_is_its_pieces_joined() -> None:
    async def test(chat: Chat) -> None:
        status, said = await decoded(chat, asking())
        assert status == 200
        assert said["object"] == "chat.completion"
        assert said["choices"] == [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello"},
                "finish_reason": "stop",
                "logprobs": None,
            }
        ]
        assert said["usage"] == USAGE

    chat = with_chat(Scripted(), test)
    assert (chat.meter.num_prompt_tokens, chat.meter.num_completion_tokens) == (3, 2)
    assert chat.meter.first_token_s.num == 1


@pytest.mark.parametrize("wants_usage", [False, True])
def test_a_stream_has_every_piece_and_its_end_and_usage_where_it_was_asked_for(wants_usage: bool) -> None:
    async def test(chat: Chat) -> None:
        more = {"stream_options": {"include_usage": True}} if wants_usage else {}
        response = await answer_of(chat.chat, asking(stream=True, **more))
        assert response.headers["content-type"] == "text/event-stream"
        *pieces, end = await streamed(response)
        assert end == b"[DONE]"
        expected = HELLO[1:] if wants_usage else HELLO[1:-1]  # progress is nobody's business
        assert pieces == [msgspec.json.decode(one) for one in expected]

    with_chat(Scripted(), test)


def test_a_property_that_is_called_pattern_is_no_pattern() -> None:
    async def test(chat: Chat) -> None:
        schema = {"type": "object", "properties": {"pattern": {"type": "string"}}}
        assert (await decoded(chat, asking(response_format=schema)))[0] == 200

    with_chat(Scripted(), test)


def test_tool_calls_and_logprobs_come_together_from_their_pieces() -> None:
    call = {"index": 0, "id": "call-1", "type": "function", "function": {"name": "add", "arguments": ""}}
    script = [
        delta(role="assistant", content=None, tool_calls=[call]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": '{"a":'}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": "1}"}}]),
        piece(
            [
                {
                    "index": 0,
                    "delta": {},
                    "logprobs": {"content": [{"token": "x"}]},
                    "finish_reason": "tool_calls",
                }
            ]
        ),
    ]

    async def test(chat: Chat) -> None:
        _, said = await decoded(chat, asking(tools=[{"type": "function", "function": {"name": "add"}}]))
        (choice,) = said["choices"]
        function = {"name": "add", "arguments": '{"a":1}'}
        assert choice["message"]["tool_calls"] == [{"id": "call-1", "type": "function", "function": function}]
        assert choice["message"]["content"] is None
        assert choice["finish_reason"] == "tool_calls"
        assert choice["logprobs"] == {"content": [{"token": "x"}]}

    with_chat(Scripted(script), test)


def test_the_engine_is_asked_for_pieces_and_for_nothing_that_a_client_may_not_reach() -> None:
    engine = Scripted()

    async def test(chat: Chat) -> None:
        parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
        messages = [{"role": "developer", "content": "be brief"}, {"role": "user", "content": parts}]
        await decoded(
            chat,
            asking(
                messages=messages, max_completion_tokens=9, temperature=0, grammar="root", id_slot=3, lora=[1]
            ),
        )

    with_chat(engine, test)
    assert engine.asked == [
        {
            "model": "m",
            "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "one\ntwo"}],
            "max_tokens": 9,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,
        }
    ]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"", 400, "truncated"),
        (b"[]", 400, "object"),
        (b"[" * 100_000, 400, "array"),
        (b'{"model": "m"}', 400, "messages"),
        ({"model": "m", "messages": []}, 400, "messages"),
        ({"model": "m", "messages": USER, "max_tokens": -1}, 400, "max_tokens"),
        ({"model": "m", "messages": USER, "max_tokens": 2**40}, 400, "max_tokens"),
        ({"model": "m", "messages": USER, "temperature": "hot"}, 400, "temperature"),
        ({"model": "m", "messages": USER, "n": 2}, 400, "n"),
        ({"model": "m", "messages": [{"role": "clown", "content": "x"}]}, 400, "clown"),
        (
            {"model": "m", "messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            400,
            "image_url",
        ),
        ({"model": "m", "messages": USER, "tools": [{"a": "x" * 5000}]}, 400, "tools has"),
        (
            {"model": "m", "messages": USER, "response_format": {"enum": ["x"] * 2000}},
            400,
            "response_format has",
        ),
        ({"model": "m", "messages": USER, "response_format": {"a": [{"pattern": "^a$"}]}}, 400, "a pattern"),
        ({"model": "other", "messages": USER}, 404, "other"),
    ],
)
def test_a_request_that_cannot_be_run_is_refused_as_openai_does(body: Any, status: int, message: str) -> None:
    async def test(chat: Chat) -> None:
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        found, said = await decoded(chat, Request("POST", "/v1/chat/completions", body=data))
        assert found == status
        assert said["error"].keys() == {"message", "type", "param", "code"}
        assert message in said["error"]["message"]
        assert said["error"]["code"] == ("model_not_found" if status == 404 else None)

    with_chat(Scripted(), test)


def test_what_the_engine_says_is_too_long_has_the_code_that_clients_know() -> None:
    error = {"code": 400, "message": "too long", "type": "exceed_context_size_error"}

    async def test(chat: Chat) -> None:
        status, said = await decoded(chat, asking(stream=True))
        assert status == 400
        assert said["error"]["code"] == "context_length_exceeded"

    with_chat(Scripted([msgspec.json.encode({"error": error})]), test)


def test_an_error_in_the_middle_of_a_stream_is_its_last_event() -> None:
    error = msgspec.json.encode({"error": {"code": 500, "message": "broke"}})

    async def test(chat: Chat) -> None:
        *_, last = await streamed(await answer_of(chat.chat, asking(stream=True)))
        assert last["error"]["message"] == "broke"

    assert with_chat(Scripted([*HELLO[:3], error]), test).meter.num_failed == 1


@pytest.mark.parametrize(("raised", "status"), [(ValueError("no tools"), 400), (OSError("no memory"), 500)])
def test_what_the_engine_raises_is_an_answer(raised: Exception, status: int) -> None:
    class Raising(Scripted):
        def chat(self, *_: object) -> None:
            raise raised

    async def test(chat: Chat) -> None:
        assert (await decoded(chat, asking()))[0] == status

    with_chat(Raising(), test)


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_frees_its_slot_at_the_next_piece(stream: bool) -> None:
    engine = Scripted(num_slots=1, at=3)

    async def test(chat: Chat) -> None:
        leaving = asyncio.create_task(answer_of(chat.chat, asking(stream=stream)))
        while not engine.asked:
            await asyncio.sleep(0.001)
        if stream:
            (await leaving).close()
        else:
            leaving.cancel()
            await asyncio.wait([leaving])
        engine.door.set()
        assert (await decoded(chat, asking()))[0] == 200  # the one slot is free
        left, whole = engine.heard
        assert left <= 4
        assert whole == 6

    assert with_chat(engine, test).meter.num_cancelled == 1


def test_who_waits_for_a_slot_and_leaves_is_never_run() -> None:
    engine = Scripted(num_slots=1, at=0)

    async def test(chat: Chat) -> None:
        first = asyncio.create_task(decoded(chat, asking()))
        while not engine.asked:
            await asyncio.sleep(0.001)
        waiting = asyncio.create_task(decoded(chat, asking()))
        await asyncio.sleep(0)
        assert chat.meter.num_waiting == 1
        waiting.cancel()
        await asyncio.wait([waiting])
        while chat.meter.num_waiting:
            await asyncio.sleep(0.001)
        second = asyncio.create_task(decoded(chat, asking(seed=2)))  # in the room that it left
        await asyncio.sleep(0)
        engine.door.set()
        assert [(await one)[0] for one in (first, second)] == [200, 200]

    assert with_chat(engine, test, most_queued=1).meter.num_cancelled == 1
    assert [one.get("seed") for one in engine.asked] == [None, 2]


def test_beyond_slots_and_queue_it_is_503_with_the_time_to_come_again() -> None:
    engine = Scripted(num_slots=1, at=0)

    async def test(chat: Chat) -> None:
        taken = [asyncio.create_task(decoded(chat, asking())) for _ in range(2)]
        await asyncio.sleep(0)
        refused = await answer_of(chat.chat, asking())
        assert refused.status == 503
        assert refused.headers["retry-after"] == "5"
        engine.door.set()
        assert [(await one)[0] for one in taken] == [200, 200]

    assert with_chat(engine, test, most_queued=1).meter.num_refused == 1


def test_before_it_is_loaded_and_after_it_is_closed_it_says_so() -> None:
    engine = Scripted(num_slots=1, at=2)

    async def main() -> None:
        chat = Chat("m")
        assert not chat.is_ready
        assert (await decoded(chat, asking()))[0] == 503
        await chat.load(lambda: engine)
        assert chat.is_ready
        streaming = await answer_of(chat.chat, asking(stream=True))
        waiting = asyncio.create_task(decoded(chat, asking()))
        await asyncio.sleep(0)
        closing = asyncio.create_task(chat.close())
        await asyncio.sleep(0)
        assert (await decoded(chat, asking()))[0] == 503
        engine.door.set()
        await closing
        assert engine.is_closed
        *_, last = await streamed(streaming)
        assert "unloaded" in last["error"]["message"]  # nobody takes it for a whole answer
        assert (await waiting)[0] == 503

    run(main)


def test_models_lists_the_one() -> None:
    async def test(chat: Chat) -> None:
        response = await answer_of(chat.models, Request("GET", "/v1/models"))
        said = msgspec.json.decode(await response.read())
        assert said["object"] == "list"
        assert [one["id"] for one in said["data"]] == ["m"]

    with_chat(Scripted(), test)


def test_counters_are_there_for_prometheus() -> None:
    async def test(chat: Chat) -> None:
        await decoded(chat, asking())
        text = chat.meter.exposition("m")
        assert 'datahall_llm_generation_tokens_total{model="m"} 2' in text
        assert 'datahall_llm_time_to_first_token_seconds_count{model="m"} 1' in text

    with_chat(Scripted(), test)

"""Who asks in Anthropic's language is answered by who speaks OpenAI's, and the other way round, tools and all."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from tests.serve.gateway.gateways import DONE, TOLD, failing, gateway, piece
from tests.serve.http.talking import running

from datahall.serve.cache.chat import FORM as CHAT
from datahall.serve.cache.exact import Bounds
from datahall.serve.cache.form import events_of
from datahall.serve.cache.messages import FORM as MESSAGES
from datahall.serve.gateway.speech.chat_by_messages import ChatByMessages
from datahall.serve.gateway.speech.messages_by_chat import MessagesByChat
from datahall.serve.http import Exchange, run
from datahall.serve.ledger.key import UNLIMITED, Limits

TOOL = {"type": "object", "properties": {"city": {"type": "string"}}}
MESSAGES_ASKED: dict[str, Any] = {
    "model": "m",
    "max_tokens": 30,
    "system": [{"type": "text", "text": "Be brief."}],
    "messages": [
        {"role": "user", "content": "Weather in Oslo?"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Oslo"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "snow"}]},
    ],
    "tools": [{"name": "weather", "description": "of a city", "input_schema": TOOL}],
    "tool_choice": {"type": "any"},
    "stop_sequences": ["."],
}
CHAT_ASKED: dict[str, Any] = {
    "max_tokens": 30,
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Weather in Oslo?"},
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [
                {
                    "type": "function",
                    "id": "t1",
                    "function": {"name": "weather", "arguments": '{"city":"Oslo"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "t1", "content": "snow"},
    ],
    "tools": [
        {"type": "function", "function": {"name": "weather", "description": "of a city", "parameters": TOOL}}
    ],
    "tool_choice": "required",
    "stop": ["."],
}
CHAT_SAID = {
    "id": "1",
    "object": "chat.completion",
    "created": 0,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "Snow.",
                "tool_calls": [
                    {
                        "id": "t2",
                        "type": "function",
                        "function": {"name": "weather", "arguments": '{"city":"Bergen"}'},
                    }
                ],
            },
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {**TOLD, "prompt_tokens_details": {"cached_tokens": 2}},
}
MESSAGE_SAID = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [
        {"type": "text", "text": "Snow."},
        {"type": "tool_use", "id": "t2", "name": "weather", "input": {"city": "Bergen"}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 5, "cache_read_input_tokens": 2, "output_tokens": 3},
}


def test_a_question_is_put_into_the_other_language_and_back() -> None:
    assert MessagesByChat().question(MESSAGES_ASKED) == CHAT_ASKED
    back = ChatByMessages(False, 4096).question(CHAT_ASKED)
    assert back["messages"][0] == {"role": "user", "content": [{"type": "text", "text": "Weather in Oslo?"}]}
    assert (
        back["messages"][1:] == MESSAGES_ASKED["messages"][1:]
        or back["messages"][2]["content"][0]["content"] == "snow"
    )
    assert back["system"] == "Be brief."
    for name in ("tools", "tool_choice", "stop_sequences", "max_tokens"):
        assert back[name] == MESSAGES_ASKED[name]


def test_images_are_put_into_the_other_language_and_back() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    asked = {
        "max_tokens": 9,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "What?"}, image]}],
    }
    there = MessagesByChat().question(asked)
    assert there["messages"][0]["content"][1]["image_url"]["url"] == "data:image/png;base64,AA=="
    assert ChatByMessages(False, 4096).question(there)["messages"] == asked["messages"]


def test_an_answer_is_put_into_the_other_language_and_back() -> None:
    there = MessagesByChat().answer(msgspec.json.encode(CHAT_SAID))
    assert msgspec.json.decode(there) == MESSAGE_SAID
    back = msgspec.json.decode(ChatByMessages(False, 4096).answer(there))
    assert {**back, "id": "1"} == CHAT_SAID


def test_a_stream_is_put_into_the_other_language_and_back() -> None:
    chat = b"".join(event + b"\n\n" for event in CHAT.apart(msgspec.json.encode(CHAT_SAID))) + piece(
        choices=[], usage=CHAT_SAID["usage"]
    )
    there = MessagesByChat().events(chat + DONE)
    joined = msgspec.json.decode(MESSAGES.joined(events_of(there)))
    assert joined["content"] == MESSAGE_SAID["content"]
    assert (joined["stop_reason"], joined["usage"]["output_tokens"]) == ("tool_use", 3)
    back = ChatByMessages(True, 4096).events(there)
    assert back.endswith(DONE)
    again = msgspec.json.decode(CHAT.joined(events_of(back)))
    (choice,) = again["choices"]
    assert choice["message"]["content"] == "Snow."
    assert choice["message"]["tool_calls"][0]["function"]["arguments"] == '{"city":"Bergen"}'
    assert choice["finish_reason"] == "tool_calls"
    assert again["usage"]["total_tokens"] >= 3


async def chat(exchange: Exchange) -> None:
    """An upstream that speaks OpenAI's chat."""
    if b'"stream":true' not in exchange.request.body:
        exchange.send(200, msgspec.json.encode(CHAT_SAID))
        return
    exchange.start(200)
    for event in CHAT.apart(msgspec.json.encode(CHAT_SAID)):
        exchange.write(event + b"\n\n")
        await asyncio.sleep(0)
    exchange.write(piece(choices=[], usage=TOLD) + DONE)
    exchange.end()


async def messages(exchange: Exchange) -> None:
    """An upstream that speaks Anthropic's messages."""
    if b'"stream":true' not in exchange.request.body:
        exchange.send(200, msgspec.json.encode(MESSAGE_SAID))
        return
    exchange.start(200)
    for event in MESSAGES.apart(msgspec.json.encode(MESSAGE_SAID)):
        exchange.write(event + b"\n\n")
        await asyncio.sleep(0)
    exchange.end()


@pytest.mark.parametrize("api", ["openai", "anthropic"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
@pytest.mark.parametrize("is_stream", [False, True])
def test_every_client_is_answered_by_every_upstream(api: str, path: str, is_stream: bool) -> None:
    async def work() -> None:
        async with gateway(chat if api == "openai" else messages) as world:
            world.upstreams[0].api = "openai" if api == "openai" else "anthropic"
            answer = await world.ask(
                path=path, secret="", headers=[("x-api-key", world.secret)], stream=is_stream
            )
            text = await answer.read()
            assert answer.status == 200, text
            (asked,) = world.asked[0].exchanges
            assert asked.request.path == ("/v1/chat/completions" if api == "openai" else "/v1/messages")
            if is_stream:
                form = CHAT if "chat" in path else MESSAGES
                text = form.joined(events_of(text))
            said = msgspec.json.decode(text)
            if "chat" in path:
                assert said["choices"][0]["message"]["content"] == "Snow."
            else:
                assert said["content"] == MESSAGE_SAID["content"]
            (ended,) = world.ended
            assert (ended.usage.prompt, ended.usage.completion, ended.result) == (7, 3, "answered")
            assert world.is_quiet

    run(work())


@running
async def test_what_is_wrong_is_said_in_the_language_of_who_asks() -> None:
    async with gateway(failing(400)) as world:
        status, said = await world.say(path="/v1/messages", messages=[])
        assert (status, said["type"], said["error"]["message"]) == (400, "error", "no")
        status, said = await world.say(path="/v1/messages", model="n")
        assert (status, said["error"]["type"]) == (404, "not_found_error")
        world.upstreams[0].api = "anthropic"
        status, said = await world.say()
        assert (status, said["error"]["message"]) == (400, "no")
        status, said = await world.say(path="/v1/embeddings", input="x")
        assert (status, said["error"]["code"]) == (400, "not_offered")


@running
async def test_a_stream_that_breaks_says_so_as_anthropic_does() -> None:
    async def dying(exchange: Exchange) -> None:
        exchange.start(200)
        exchange.write(piece(id="1", choices=[{"index": 0, "delta": {"content": "Sn"}}]))
        await asyncio.sleep(0.01)
        exchange.abort()

    async with gateway(dying) as world:
        text = await (await world.ask(path="/v1/messages", stream=True)).read()
        assert text.startswith(b"event: message_start\n")
        assert b'event: error\ndata: {"type":"error"' in text


@pytest.mark.parametrize("arguments", ['{"city": "Par', ["x"], "[1]"])
def test_a_tool_call_that_its_length_cut_is_an_answer(arguments: Any) -> None:
    call = {"id": "t", "function": {"name": "weather", "arguments": arguments}}
    choice = {"message": {"tool_calls": [call]}, "finish_reason": "length"}
    body = msgspec.json.encode({"id": "1", "choices": [choice], "usage": TOLD})

    async def work() -> None:
        async with gateway(lambda exchange: exchange.send(200, body)) as world:
            status, said = await world.say(path="/v1/messages")
            assert (status, said["stop_reason"]) == (200, "max_tokens")
            text = arguments if isinstance(arguments, str) else '["x"]'
            assert said["content"][0]["input"] == {"INVALID_JSON": text}
            assert (world.asked[0].num, world.upstreams[0].num_failed) == (1, 0)

    run(work())


def test_arguments_of_a_tool_may_be_a_table() -> None:
    call = {"id": "t", "function": {"name": "weather", "arguments": {"city": "Oslo"}}}
    body = msgspec.json.encode({"choices": [{"message": {"tool_calls": [call]}}]})
    assert msgspec.json.decode(MessagesByChat().answer(body))["content"][0]["input"] == {"city": "Oslo"}


ODD_OF_CHAT: tuple[dict[str, Any], ...] = (
    {"choices": [{"message": 5}]},
    {"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens_details": {"cached_tokens": "5"}}},
)
ODD_CHUNKS: tuple[dict[str, Any], ...] = (
    {"choices": [{"delta": [1]}]},
    {"choices": [{"finish_reason": []}]},
    {"choices": [{"delta": {"tool_calls": [{"index": None}]}}]},
    {"usage": {"prompt_tokens_details": {"cached_tokens": "5"}}},
)
ODD_OF_MESSAGES: tuple[dict[str, Any], ...] = (
    {"content": [], "usage": 5},
    {"content": [], "usage": {"input_tokens": "1"}},
)
ODD_EVENTS: tuple[dict[str, Any], ...] = (
    {"type": "message_start", "message": 5},
    {"type": "message_delta", "delta": 5},
    {"type": "content_block_delta", "index": {}, "delta": 7},
)


@pytest.mark.parametrize(
    ("path", "odd"),
    [("/v1/messages", one) for one in ODD_OF_CHAT]
    + [("/v1/chat/completions", one) for one in ODD_OF_MESSAGES],
)
def test_an_answer_in_no_form_is_asked_elsewhere(path: str, odd: dict[str, Any]) -> None:
    is_chat = path == "/v1/chat/completions"

    async def work() -> None:
        body = msgspec.json.encode(odd)
        async with gateway(
            lambda exchange: exchange.send(200, body), messages if is_chat else chat, num_retries=1
        ) as world:
            for upstream in world.upstreams:
                upstream.api = "anthropic" if is_chat else "openai"
            assert (await world.ask(path=path)).status == 200
            assert (world.asked[0].num, world.upstreams[0].num_failed) == (1, 1)

    run(work())


@pytest.mark.parametrize(
    ("path", "odd"),
    [("/v1/messages", one) for one in ODD_CHUNKS] + [("/v1/chat/completions", one) for one in ODD_EVENTS],
)
def test_an_event_in_no_form_ends_a_stream_with_an_error(path: str, odd: dict[str, Any]) -> None:
    is_chat = path == "/v1/chat/completions"

    async def work() -> None:
        def answer(exchange: Exchange) -> None:
            exchange.start(200)
            exchange.write(piece(**odd))
            exchange.end()

        async with gateway(answer) as world:
            world.upstreams[0].api = "anthropic" if is_chat else "openai"
            text = await (await world.ask(path=path, stream=True)).read()
            assert b'"error":' in text
            assert world.ended[0].result == "failed"
            assert world.is_quiet

    run(work())


@pytest.mark.parametrize("longest", [100, 32_000])
@pytest.mark.parametrize("limits", [UNLIMITED, Limits(tokens_per_minute=10**6)])
def test_a_length_that_is_left_open_is_the_longest_of_the_model_in_either_language(
    longest: int, limits: Limits
) -> None:
    async def work() -> None:
        async with gateway(messages, longest_tokens=longest, limits=limits) as world:
            world.upstreams[0].api = "anthropic"
            assert (await world.say(max_tokens=None))[0] == 200
            assert world.asked[0].bodies[0]["max_tokens"] == longest

    run(work())


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions"])
@pytest.mark.parametrize("error", [{"message": "out of memory"}, "out of memory"])
def test_an_error_within_a_stream_is_its_end_and_is_not_kept(path: str, error: Any) -> None:
    def failing_late(exchange: Exchange) -> None:
        exchange.start(200)
        exchange.write(piece(id="1", choices=[{"index": 0, "delta": {"content": "half"}}]))
        exchange.write(piece(choices=[], usage=TOLD) + piece(error=error) + DONE)
        exchange.end()

    async def work() -> None:
        async with gateway(failing_late, bounds=Bounds()) as world:
            for _ in range(2):
                text = await (await world.ask(path=path, stream=True)).read()
                assert b"half" in text
                assert b"the answer broke off: out of memory" in text
                assert DONE not in text
                assert b"message_stop" not in text
            assert world.asked[0].num == 2
            assert [told.result for told in world.ended] == ["failed", "failed"]
            assert world.upstreams[0].num_failed == 2
            assert world.is_quiet

    run(work())


@pytest.mark.parametrize("body", [b"nothing", b"[]", b"\xff"])
def test_an_answer_that_is_none_is_an_upstream_that_failed(body: bytes) -> None:
    async def work() -> None:
        async with gateway(lambda exchange: exchange.send(200, body), num_retries=0) as world:
            assert (await world.ask(path="/v1/messages")).status == 502
            assert world.is_quiet

    run(work())

"""The real model: 135 million parameters that know the capital of France."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import openai
import pytest
from tests.serve.modelserver.models import run

from datahall.errors import ScenarioError
from datahall.serve.http import Request, answer_of, serve
from datahall.serve.modelserver.llm.app import ChatServer
from datahall.serve.modelserver.llm.chat import Chat
from datahall.serve.modelserver.llm.engine import Llama, Slots
from datahall.serve.modelserver.llm.weights import NAME, weights

FRANCE = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture(scope="module")
def file() -> Path:
    return weights(lambda _: None)


def with_model(file: Path, test: Callable[[Chat], Awaitable[object]]) -> Chat:
    made = []

    async def main() -> None:
        chat = Chat(NAME)
        made.append(chat)
        await chat.load(partial(Llama, file, NAME, Slots(num_slots=2, num_context=256)))
        await test(chat)
        await chat.close()

    run(main)
    return made[0]


async def asked(chat: Chat, **said: Any) -> tuple[int, Any]:
    body = msgspec.json.encode({"model": NAME, "messages": FRANCE, "temperature": 0, "max_tokens": 8, **said})
    response = await answer_of(chat.chat, Request("POST", "/v1/chat/completions", body=body))
    return response.status, msgspec.json.decode(await response.read())


def test_openais_client_hears_paris_streaming_and_not(file: Path) -> None:
    async def test(chat: Chat) -> None:
        server = await serve(ChatServer(chat))
        client = openai.AsyncOpenAI(
            base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0
        )
        create = partial(client.chat.completions.create, model=NAME, temperature=0, max_tokens=12)
        assert [one.id async for one in client.models.list()] == [NAME]
        whole = await create(messages=FRANCE)
        assert whole.choices[0].message.content == "The capital of France is Paris."
        assert whole.choices[0].finish_reason == "stop"
        assert whole.usage.completion_tokens == 8
        stream = await create(messages=FRANCE, stream=True, stream_options={"include_usage": True})
        pieces = [one async for one in stream]
        said = [one.choices[0].delta.content or "" for one in pieces if one.choices]
        assert "".join(said) == "The capital of France is Paris."
        assert pieces[-1].usage.total_tokens == whole.usage.total_tokens
        with pytest.raises(openai.BadRequestError) as refused:
            await create(messages=[{"role": "user", "content": "word " * 400}])
        assert refused.value.code == "context_length_exceeded"
        with pytest.raises(openai.NotFoundError):
            await client.chat.completions.create(model="gpt-5", messages=FRANCE)
        go_on = partial(
            client.completions.create, model=NAME, temperature=0, prompt="The capital of France is"
        )
        text = await go_on(max_tokens=2)
        assert text.choices[0].text.startswith(" Paris")
        assert (text.choices[0].finish_reason, text.usage.completion_tokens) == ("length", 2)
        pieces = [one async for one in await go_on(max_tokens=2, stream=True)]
        assert "".join(one.choices[0].text for one in pieces) == text.choices[0].text
        with pytest.raises(openai.BadRequestError) as refused:
            await go_on(prompt="word " * 400)
        assert refused.value.code == "context_length_exceeded"
        await client.close()
        await server.close()

    with_model(file, test)


def test_more_requests_than_slots_are_all_answered_each_with_its_own(file: Path) -> None:
    async def test(chat: Chat) -> None:
        capitals = {"France": "Paris", "Italy": "Rome", "Germany": "Berlin"}
        asking = [
            asked(chat, messages=[{"role": "user", "content": f"What is the capital of {land}?"}])
            for land in capitals
        ]
        for (status, said), capital in zip(await asyncio.gather(*asking), capitals.values(), strict=True):
            assert status == 200
            assert capital in said["choices"][0]["message"]["content"]

    with_model(file, test)


def test_who_leaves_frees_the_slot_before_the_answer_would_have_ended(file: Path) -> None:
    async def test(chat: Chat) -> None:
        body = {
            "model": NAME,
            "messages": [{"role": "user", "content": "Write a long story."}],
            "stream": True,
        }
        request = Request(
            "POST", "/v1/chat/completions", body=msgspec.json.encode({**body, "temperature": 0})
        )
        leaving = [await answer_of(chat.chat, request) for _ in range(2)]  # both slots
        for one in leaving:
            await one.piece()
            one.close()
        assert (await asked(chat))[0] == 200
        assert chat.meter.num_completion_tokens == 8  # nobody's story was told to its end

    assert with_model(file, test).meter.num_cancelled == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"tools": [{"type": "function"}]},
        {"tools": [{}]},
        {"tool_choice": "sometimes", "tools": [{"type": "function", "function": {"name": "f"}}]},
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "wrong"}}}},
        {"response_format": {"type": "riddle"}},
        {"messages": [{"role": "user"}, {"role": "assistant", "tool_calls": [{}]}]},
    ],
)
def test_what_the_engine_cannot_read_is_the_clients_mistake(file: Path, wrong: dict[str, Any]) -> None:
    async def test(chat: Chat) -> None:
        status, said = await asked(chat, **wrong)
        assert status in (200, 400), said
        assert (await asked(chat))[0] == 200  # it still runs

    with_model(file, test)


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.gguf"
    file.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(ScenarioError, match="not a model that llama"):
        Llama(file, "a", Slots())


def test_the_engines_own_server_is_out_of_reach(file: Path) -> None:
    engine = Llama(file, NAME, Slots(num_slots=1, num_context=64))
    folder = Path(engine.folder.name)
    assert folder.stat().st_mode & 0o077 == 0
    (door,) = folder.iterdir()
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(str(door))
        stranger.sendall(b"POST /completion HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
        assert stranger.recv(100).startswith(b"HTTP/1.1 401")
    engine.close()
    assert not folder.exists()

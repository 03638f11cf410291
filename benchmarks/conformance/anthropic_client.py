"""Anthropic's Python client, unchanged, before an upstream that speaks OpenAI's language."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import anthropic
from servers import MODEL, World

ASKED = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8}


def _client(world: World, key: str = "") -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=world.url, api_key=key or world.key, max_retries=0)


def whole(world: World) -> None:
    said = _client(world).messages.create(**ASKED)
    assert said.content[0].text
    assert said.stop_reason == "max_tokens"
    assert said.usage.output_tokens == 8


def stream(world: World) -> None:
    with _client(world).messages.stream(**ASKED) as events:
        text = "".join(events.text_stream)
        final = events.get_final_message()
    assert text == final.content[0].text
    assert final.usage.output_tokens == 8


def asynchronous(world: World) -> None:
    async def work() -> None:
        async with anthropic.AsyncAnthropic(base_url=world.url, api_key=world.key, max_retries=0) as client:
            answers = await asyncio.gather(*(client.messages.create(**ASKED) for _ in range(20)))
        assert all(one.content[0].text for one in answers)

    asyncio.run(work())


def _raises(kind: type[anthropic.APIStatusError], status: int, ask: Callable[[], object]) -> None:
    found: anthropic.APIStatusError | None = None
    try:
        ask()
    except kind as error:
        found = error
    assert found is not None, f"no {kind.__name__}"
    assert found.status_code == status
    assert found.body["type"] == "error"


def no_key(world: World) -> None:
    client = _client(world, "dh-wrong")
    _raises(anthropic.AuthenticationError, 401, lambda: client.messages.create(**ASKED))


def no_model(world: World) -> None:
    client = _client(world)
    _raises(anthropic.NotFoundError, 404, lambda: client.messages.create(**{**ASKED, "model": "none"}))


def bad(world: World) -> None:
    client = _client(world)
    _raises(anthropic.BadRequestError, 400, lambda: client.messages.create(**{**ASKED, "max_tokens": 0}))


CHECKS = {
    "messages": whole,
    "stream": stream,
    "async, 20 at once": asynchronous,
    "401 AuthenticationError": no_key,
    "404 NotFoundError": no_model,
    "400 BadRequestError": bad,
}

"""OpenAI's Python client, unchanged: answers, streams, both kinds of call, and its own exceptions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import openai
from servers import MODEL, World

ASKED = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8}


def _client(world: World, key: str = "", retries: int = 0) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{world.url}/v1", api_key=key or world.key, max_retries=retries)


def models(world: World) -> None:
    client = _client(world)
    assert {one.id for one in client.models.list()} == {MODEL, "other"}
    assert client.models.retrieve(MODEL).id == MODEL


def whole(world: World) -> None:
    said = _client(world).chat.completions.create(**ASKED)
    assert said.choices[0].message.content
    assert said.choices[0].finish_reason == "length"
    assert said.usage is not None
    assert said.usage.completion_tokens == 8


def headers(world: World) -> None:
    raw = _client(world).chat.completions.with_raw_response.create(**ASKED)
    assert raw.headers["x-served-model"] == MODEL
    assert raw.request_id == raw.headers["x-request-id"]


def stream(world: World) -> None:
    options = {"include_usage": True}
    chunks = [*_client(world).chat.completions.create(**ASKED, stream=True, stream_options=options)]
    assert "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 8


def stream_without_usage(world: World) -> None:
    chunks = [*_client(world).chat.completions.create(**ASKED, stream=True)]
    assert all(one.choices for one in chunks)


def completions(world: World) -> None:
    said = _client(world).completions.create(model=MODEL, prompt="Hello", max_tokens=5)
    assert said.choices[0].text


def asynchronous(world: World) -> None:
    async def work() -> None:
        async with openai.AsyncOpenAI(base_url=f"{world.url}/v1", api_key=world.key, max_retries=0) as client:
            answers = await asyncio.gather(*(client.chat.completions.create(**ASKED) for _ in range(40)))
            assert all(one.choices[0].message.content for one in answers)
            events = await client.chat.completions.create(**ASKED, stream=True)
            assert [one async for one in events]

    asyncio.run(work())


def leaves(world: World) -> None:
    """A stream that is left after its first event, again and again, and then a question that is answered."""
    client = _client(world)
    for _ in range(20):
        events = client.chat.completions.create(**{**ASKED, "max_tokens": 400}, stream=True)
        pieces = iter(events)
        next(pieces)
        events.close()
    whole(world)


def _raises(
    kind: type[openai.APIStatusError], status: int, ask: Callable[[], object]
) -> openai.APIStatusError:
    found: openai.APIStatusError | None = None
    try:
        ask()
    except kind as error:
        found = error
    assert found is not None, f"no {kind.__name__}"
    assert found.status_code == status
    assert found.message
    return found


def no_key(world: World) -> None:
    client = _client(world, "dh-wrong")
    error = _raises(openai.AuthenticationError, 401, lambda: client.chat.completions.create(**ASKED))
    assert error.code == "invalid_api_key"


def not_allowed(world: World) -> None:
    client = _client(world, world.key_of_other)
    _raises(openai.PermissionDeniedError, 403, lambda: client.chat.completions.create(**ASKED))


def no_model(world: World) -> None:
    client = _client(world)
    error = _raises(
        openai.NotFoundError, 404, lambda: client.chat.completions.create(**{**ASKED, "model": "none"})
    )
    assert (error.code, error.param) == ("model_not_found", "model")


def no_path(world: World) -> None:
    _raises(openai.NotFoundError, 404, lambda: _client(world).files.list())


def bad(world: World) -> None:
    client = _client(world)
    error = _raises(
        openai.BadRequestError, 400, lambda: client.chat.completions.create(**{**ASKED, "max_tokens": -1})
    )
    assert error.param == "max_tokens"


def limited(world: World) -> None:
    client = _client(world, world.key_of_few)
    client.chat.completions.create(**ASKED)
    error = _raises(openai.RateLimitError, 429, lambda: client.chat.completions.create(**ASKED))
    assert int(error.response.headers["retry-after"]) > 0


def late(world: World) -> None:
    try:
        _client(world).with_options(timeout=0.05).chat.completions.create(**{**ASKED, "max_tokens": 5000})
    except openai.APITimeoutError:
        return
    raise AssertionError("no APITimeoutError")


CHECKS = {
    "models, listed and one": models,
    "chat": whole,
    "headers and request id": headers,
    "stream with usage": stream,
    "stream without usage": stream_without_usage,
    "completions": completions,
    "async, 40 at once, and a stream": asynchronous,
    "20 streams left, then answered": leaves,
    "401 AuthenticationError": no_key,
    "403 PermissionDeniedError": not_allowed,
    "404 NotFoundError, of a model": no_model,
    "404 NotFoundError, of a path": no_path,
    "400 BadRequestError": bad,
    "429 RateLimitError with Retry-After": limited,
    "APITimeoutError": late,
}

"""OpenAI's completions over an engine whose every word is known, and over the one that comes with the house."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.serve.modelserver.llm.scripted import PROGRESS, USAGE, Scripted, piece
from tests.serve.modelserver.llm.test_chat import streamed, with_chat

from datahall.serve.http import Request, Response, answer_of
from datahall.serve.modelserver.llm.chat import Chat


def text(said: str, finish_reason: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "text": said, "logprobs": None, "finish_reason": finish_reason}
    return piece([choice], **more)


SCRIPT = [PROGRESS, text(" Pa"), text("ris"), text("", "length", usage=USAGE, timings={"prompt_ms": 1.0})]


async def asked(chat: Chat, **said: Any) -> Response:
    body = msgspec.json.encode({"model": "m", "prompt": "The capital of France is", **said})
    return await answer_of(chat.complete, Request("POST", "/v1/completions", body=body))


def test_an_answer_that_does_not_stream_is_its_pieces_joined() -> None:
    engine = Scripted(SCRIPT)

    async def test(chat: Chat) -> None:
        for prompt in ("The capital of France is", ["The capital of France is"]):
            said = msgspec.json.decode(await (await asked(chat, prompt=prompt, max_tokens=2, seed=3)).read())
            assert said["object"] == "text_completion"
            choice = {"index": 0, "text": " Paris", "finish_reason": "length", "logprobs": None}
            assert said["choices"] == [choice]
            assert said["usage"] == USAGE
        await (await asked(chat)).read()

    with_chat(engine, test)
    assert [one["prompt"] for one in engine.asked] == ["The capital of France is"] * 3
    assert [one["max_tokens"] for one in engine.asked] == [2, 2, 16]
    assert engine.asked[0]["seed"] == 3


@pytest.mark.parametrize("wants_usage", [False, True])
def test_a_stream_says_what_it_took_in_an_event_of_its_own_where_that_was_asked_for(
    wants_usage: bool,
) -> None:
    async def test(chat: Chat) -> None:
        more = {"stream_options": {"include_usage": True}} if wants_usage else {}
        *pieces, end = await streamed(await asked(chat, stream=True, **more))
        assert end == b"[DONE]"
        assert [one["choices"][0]["text"] for one in pieces if one["choices"]] == [" Pa", "ris", ""]
        assert [one["usage"] for one in pieces if "usage" in one] == [USAGE] * wants_usage
        assert not [one for one in pieces if "timings" in one]

    with_chat(Scripted(SCRIPT), test)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"prompt": ""}, 400),
        ({"prompt": []}, 400),
        ({"prompt": ["a", "b"]}, 400),
        ({"prompt": [1, 2]}, 400),
        ({"echo": True}, 400),
        ({"suffix": "."}, 400),
        ({"n": 2}, 400),
        ({"max_tokens": 0}, 400),
        ({"model": "another"}, 404),
    ],
)
def test_what_is_not_done_is_refused(said: dict[str, Any], status: int) -> None:
    engine = Scripted(SCRIPT)

    async def test(chat: Chat) -> None:
        answer = await asked(chat, **said)
        assert answer.status == status
        assert msgspec.json.decode(await answer.read())["error"]["message"]

    with_chat(engine, test)
    assert not engine.asked

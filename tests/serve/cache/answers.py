"""Answers of the three routes that stream, whole and as events."""

from __future__ import annotations

import msgspec

from datahall.serve.cache.asked import Asked, asked_of
from datahall.serve.ledger.money import Usage

USAGE = Usage(9, 0, 2)
CHAT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "small",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Paris."},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
}
TEXT = {
    "id": "cmpl-1",
    "object": "text_completion",
    "created": 1,
    "model": "small",
    "choices": [{"index": 0, "text": " Paris.", "logprobs": None, "finish_reason": "length"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "small",
    "content": [
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "tool_1", "name": "weather", "input": {"city": "Paris"}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 9, "output_tokens": 2},
}
WHOLE = {"chat": CHAT, "completions": TEXT, "messages": MESSAGE}


def json(table: object) -> bytes:
    return msgspec.json.encode(table)


def body(**fields: object) -> bytes:
    return json({"model": "small", "messages": [{"role": "user", "content": "Capital of France?"}], **fields})


def asked(tenant: str = "acme", route: str = "chat", **fields: object) -> Asked:
    found = asked_of(tenant, "small@1", route, body(**fields))
    assert found is not None
    return found


def chunk(**fields: object) -> bytes:
    said = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "small"}
    return b"data: " + json({**said, **fields}) + b"\n\n"


def delta(finish: str | None = None, index: int = 0, **fields: object) -> bytes:
    return chunk(choices=[{"index": index, "delta": fields, "logprobs": None, "finish_reason": finish}])


USED = chunk(choices=[], usage=CHAT["usage"])
DONE = b"data: [DONE]\n\n"
STREAM = (
    delta(role="assistant", content="")
    + delta(content="Par")
    + delta(content="is.")
    + delta("stop")
    + USED
    + DONE
)

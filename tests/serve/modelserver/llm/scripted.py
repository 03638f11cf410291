"""An engine that says what a test wants, piece by piece, and waits where a test holds it."""

from __future__ import annotations

import threading
from typing import Any

import msgspec

from datahall.serve.modelserver.llm.engine import Hear


def piece(choices: list[Any], **more: Any) -> bytes:
    head = {"id": "chatcmpl-1", "created": 7, "model": "m", "object": "chat.completion.chunk"}
    return msgspec.json.encode({"choices": choices, **head, **more})


def delta(finish_reason: str | None = None, **said: Any) -> bytes:
    return piece([{"index": 0, "delta": said, "finish_reason": finish_reason}])


PROGRESS = piece(
    [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": None}], prompt_progress={"processed": 1}
)
USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
HELLO = [
    PROGRESS,
    delta(role="assistant", content=None),
    delta(content="Hel"),
    delta(content="lo"),
    delta("stop"),
    piece([], usage=USAGE),
]


class Scripted:
    """Says its script to each request; `at` holds every request before that piece until the door opens."""

    def __init__(
        self, script: list[bytes] | None = None, *, num_slots: int = 2, at: int | None = None
    ) -> None:
        self.num_slots = num_slots
        self.script = HELLO if script is None else script
        self.at = at
        self.door = threading.Event()
        self.asked: list[dict[str, Any]] = []
        self.heard: list[int] = []  # pieces that each request took
        self.is_closed = False

    def chat(self, body: bytes, hear: Hear) -> None:
        self.asked.append(msgspec.json.decode(body))
        for num, data in enumerate(self.script, 1):
            if num - 1 == self.at:
                assert self.door.wait(5), "nobody opened"
            if hear(data):
                break
        self.heard.append(num)

    def complete(self, body: bytes, hear: Hear) -> None:
        self.chat(body, hear)

    def close(self) -> None:
        self.is_closed = True

"""What the engine says of one request, piece by piece, and the pieces joined where the answer does not stream."""

from __future__ import annotations

from typing import Any

import msgspec


class Event(msgspec.Struct):
    """The parts of an event that say what to do with it; its bytes go to the client as they are."""

    choices: list[Any] = []
    usage: dict[str, Any] | None = None
    prompt_progress: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


_EVENTS = msgspec.json.Decoder(Event)


def read(data: bytes) -> Event:
    """An event of the engine."""
    return _EVENTS.decode(data)


class Whole:
    """An answer that grows by events: text and arguments are laid end to end, everything else is said once."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._message: dict[str, Any] = {"role": "assistant", "content": None}
        self._calls: dict[int, dict[str, Any]] = {}
        self._logprobs: list[Any] = []
        self._finish_reason: str | None = None
        self._usage: dict[str, Any] | None = None

    def add(self, data: bytes) -> None:
        """One event more."""
        event = msgspec.json.decode(data)
        self._head = {
            key: event[key] for key in ("id", "created", "model", "system_fingerprint") if key in event
        }
        self._usage = event.get("usage") or self._usage
        for choice in event.get("choices", ()):
            self._finish_reason = choice.get("finish_reason") or self._finish_reason
            self._logprobs += (choice.get("logprobs") or {}).get("content") or ()
            self._add_delta(choice.get("delta") or {})

    def body(self) -> bytes:
        """The answer as OpenAI's clients read it."""
        message = dict(self._message)
        if self._calls:
            message["tool_calls"] = [self._calls[place] for place in sorted(self._calls)]
        choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": self._finish_reason}
        choice["logprobs"] = {"content": self._logprobs} if self._logprobs else None
        return msgspec.json.encode(
            {**self._head, "object": "chat.completion", "choices": [choice], "usage": self._usage}
        )

    def _add_delta(self, delta: dict[str, Any]) -> None:
        for key in ("content", "reasoning_content"):
            if delta.get(key):
                self._message[key] = (self._message.get(key) or "") + delta[key]
        for call in delta.get("tool_calls") or ():
            kept = self._calls.setdefault(
                call.get("index", 0), {"id": "", "type": "function", "function": {}}
            )
            kept["id"] = call.get("id") or kept["id"]
            function = kept["function"]
            for key, text in (call.get("function") or {}).items():
                function[key] = function.get(key, "") + (text or "")

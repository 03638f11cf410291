"""Anthropic's messages, answered by an upstream that speaks OpenAI's chat."""

from __future__ import annotations

from typing import Any

from datahall.serve.gateway.question import Kind
from datahall.serve.gateway.speech.translation import (
    Table,
    Untranslatable,
    encode,
    listed,
    table,
    tables,
    text_of,
)
from datahall.serve.http import Interrupted
from datahall.serve.http.sse import event

SAME = ("max_tokens", "temperature", "top_p", "stream")
ENDS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
CHOICES = {"auto": "auto", "any": "required", "none": "none"}


class MessagesByChat:
    """One question of messages."""

    kind: Kind = "chat"

    def __init__(self) -> None:
        self._message: Table | None = None  # begun in the stream
        self._block = -1  # that is open
        self._tools: dict[int, int] = {}  # index of a call: the block that it is
        self._stop = "end_turn"
        self._usage: Table = {}

    def question(self, body: Table) -> Table:
        said = {name: body[name] for name in SAME if name in body}
        system = text_of(body.get("system", ""))
        said["messages"] = [{"role": "system", "content": system}] if system else []
        for message in listed(body.get("messages")):
            said["messages"] += _turns(message)
        if "stop_sequences" in body:
            said["stop"] = body["stop_sequences"]
        if body.get("stream"):
            said["stream_options"] = {"include_usage": True}
        if "tools" in body:
            said["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.get("name"),
                        "description": tool.get("description", ""),
                        "parameters": tool.get("input_schema", {}),
                    },
                }
                for tool in listed(body["tools"])
            ]
        choice = body.get("tool_choice")
        if isinstance(choice, dict):
            name = {"type": "function", "function": {"name": choice.get("name")}}
            said["tool_choice"] = CHOICES.get(str(choice.get("type")), name)
        return said

    def answer(self, body: bytes) -> bytes:
        said = table(body)
        choice = (listed(said.get("choices")) or [{}])[0]
        message = choice.get("message") or {}
        content: list[Table] = []
        if message.get("content"):
            content.append({"type": "text", "text": message["content"]})
        for call in listed(message.get("tool_calls")):
            function = call.get("function") or {}
            given = _input(function.get("arguments"))
            content.append(
                {"type": "tool_use", "id": call.get("id"), "name": function.get("name"), "input": given}
            )
        stop = ENDS.get(str(choice.get("finish_reason")), "end_turn")
        return encode(_message(said, content, stop, _usage(said.get("usage"))))

    def events(self, blocks: bytes) -> bytes:
        said: list[bytes] = []
        for one in tables(blocks):
            if not one:
                said += self._end()
                continue
            if self._message is None:
                self._message = _message(one, [], None, {"input_tokens": 0, "output_tokens": 0})
                said.append(_event("message_start", message=self._message))
            if one.get("usage"):
                self._usage = _usage(one["usage"])
            for choice in listed(one.get("choices"))[:1]:
                said += self._delta(choice.get("delta") or {})
                if choice.get("finish_reason"):
                    self._stop = ENDS.get(choice["finish_reason"], "end_turn")
        return b"".join(said)

    def _delta(self, delta: Table) -> list[bytes]:
        said: list[bytes] = []
        if delta.get("content"):
            if self._block < 0 or self._block in self._tools.values():
                said += self._open({"type": "text", "text": ""})
            said.append(self._piece({"type": "text_delta", "text": delta["content"]}))
        for call in listed(delta.get("tool_calls")):
            index, function = int(call.get("index", 0)), call.get("function") or {}
            if index not in self._tools:
                block: Table = {
                    "type": "tool_use",
                    "id": call.get("id"),
                    "name": function.get("name"),
                    "input": {},
                }
                said += self._open(block)
                self._tools[index] = self._block
            if function.get("arguments"):
                said.append(self._piece({"type": "input_json_delta", "partial_json": function["arguments"]}))
        return said

    def _open(self, block: Table) -> list[bytes]:
        said = self._close()
        self._block += 1
        return [*said, _event("content_block_start", index=self._block, content_block=block)]

    def _close(self) -> list[bytes]:
        return [_event("content_block_stop", index=self._block)] if self._block >= 0 else []

    def _piece(self, delta: Table) -> bytes:
        return _event("content_block_delta", index=self._block, delta=delta)

    def _end(self) -> list[bytes]:
        delta = {"stop_reason": self._stop, "stop_sequence": None}
        usage = self._usage or {"output_tokens": 0}
        return [*self._close(), _event("message_delta", delta=delta, usage=usage), _event("message_stop")]


def _turns(message: Table) -> list[Table]:
    """One message of Anthropic's as those of OpenAI's: what tools gave is a message each."""
    role, content = message.get("role"), message.get("content", "")
    if isinstance(content, str):
        return [{"role": role, "content": content}]
    turns: list[Table] = []
    parts: list[Table] = []
    calls: list[Table] = []
    for block in listed(content):
        kind = block.get("type")
        if kind == "text":
            parts.append({"type": "text", "text": block.get("text", "")})
        elif kind == "image":
            parts.append({"type": "image_url", "image_url": {"url": _url(block.get("source") or {})}})
        elif kind == "tool_use":
            function = {"name": block.get("name"), "arguments": encode(block.get("input", {})).decode()}
            calls.append({"type": "function", "id": block.get("id"), "function": function})
        elif kind == "tool_result":
            text = text_of(block.get("content", ""))
            turns.append({"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": text})
        elif kind not in ("thinking", "redacted_thinking"):
            raise Untranslatable(f"a part of the kind {kind}")
    if parts or calls:
        only_text = all(part["type"] == "text" for part in parts)
        said: Any = "".join(part["text"] for part in parts) if only_text else parts
        turns.append({"role": role, "content": said or None, **({"tool_calls": calls} if calls else {})})
    return turns


def _url(source: Table) -> str:
    if source.get("type") == "base64":
        return f"data:{source.get('media_type')};base64,{source.get('data')}"
    return str(source.get("url", ""))


def _input(arguments: Any) -> Table:
    """Arguments of a tool as a table; those that are none, as a length cut them, go in the one that Anthropic names."""
    if isinstance(arguments, dict):
        return arguments
    text = arguments if isinstance(arguments, str) else encode(arguments).decode()
    try:
        return table((text if arguments else "{}").encode())
    except Interrupted:
        return {"INVALID_JSON": text}


def _message(said: Table, content: list[Table], stop: str | None, usage: Table) -> Table:
    return {
        "id": f"msg_{said.get('id', '')}",
        "type": "message",
        "role": "assistant",
        "model": said.get("model", ""),
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage,
    }


def _usage(said: Any) -> Table:
    """Tokens as Anthropic counts them: what was cached stands apart from the rest of the prompt."""
    if not isinstance(said, dict):
        return {"input_tokens": 0, "output_tokens": 0}
    cached = (said.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return {
        "input_tokens": (said.get("prompt_tokens") or 0) - cached,
        "cache_read_input_tokens": cached,
        "output_tokens": said.get("completion_tokens") or 0,
    }


def _event(name: str, **fields: Any) -> bytes:
    return event(encode({"type": name, **fields}), name)

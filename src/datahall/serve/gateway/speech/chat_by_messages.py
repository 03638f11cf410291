"""OpenAI's chat, answered by an upstream that speaks Anthropic's messages."""

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
from datahall.serve.http.sse import DONE, event

SAME = ("temperature", "top_p", "stream")
ENDS = {"max_tokens": "length", "tool_use": "tool_calls", "refusal": "content_filter"}
CHOICES = {"auto": {"type": "auto"}, "required": {"type": "any"}, "none": {"type": "none"}}


class ChatByMessages:
    """One question of chat."""

    kind: Kind = "messages"

    def __init__(self, wants_usage: bool, longest: int) -> None:
        self._wants_usage = wants_usage  # in the stream
        self._longest = longest  # an answer whose length is left open, as Anthropic must be told one
        self._head: Table = {"id": "", "object": "chat.completion.chunk", "created": 0, "model": ""}
        self._start: Table = {}  # usage of the prompt
        self._calls: dict[int, int] = {}  # block: index of the call that it is

    def question(self, body: Table) -> Table:
        if (body.get("n") or 1) != 1:
            raise Untranslatable("more than one choice")
        said = {name: body[name] for name in SAME if body.get(name) is not None}
        said["max_tokens"] = body.get("max_completion_tokens") or body.get("max_tokens") or self._longest
        system, said["messages"] = [], []
        for message in listed(body.get("messages")):
            if message.get("role") in ("system", "developer"):
                system.append(text_of(message.get("content")))
            else:
                _join(said["messages"], _turn(message))
        if system:
            said["system"] = "\n".join(system)
        stop = body.get("stop")
        if stop:
            said["stop_sequences"] = [stop] if isinstance(stop, str) else stop
        if body.get("tools"):
            functions = [tool.get("function") or {} for tool in listed(body["tools"])]
            said["tools"] = [
                {
                    "name": one.get("name"),
                    "description": one.get("description", ""),
                    "input_schema": one.get("parameters") or {"type": "object"},
                }
                for one in functions
            ]
        choice = body.get("tool_choice")
        if isinstance(choice, dict):
            said["tool_choice"] = {"type": "tool", "name": (choice.get("function") or {}).get("name")}
        elif choice in CHOICES:
            said["tool_choice"] = CHOICES[choice]
        return said

    def answer(self, body: bytes) -> bytes:
        said = table(body)
        blocks = listed(said.get("content"))
        calls = [
            {
                "id": block.get("id"),
                "type": "function",
                "function": {"name": block.get("name"), "arguments": encode(block.get("input", {})).decode()},
            }
            for block in blocks
            if block.get("type") == "tool_use"
        ]
        message: Table = {"role": "assistant", "content": text_of(blocks) or None}
        if calls:
            message["tool_calls"] = calls
        return encode(
            {
                "id": said.get("id", ""),
                "object": "chat.completion",
                "created": 0,
                "model": said.get("model", ""),
                "choices": [
                    {"index": 0, "message": message, "finish_reason": _finish(said.get("stop_reason"))}
                ],
                "usage": _usage(said.get("usage") or {}),
            }
        )

    def events(self, blocks: bytes) -> bytes:
        return b"".join(self._said(one) for one in tables(blocks))

    def _said(self, one: Table) -> bytes:
        kind = one.get("type")
        if kind == "message_start":
            message = one.get("message") or {}
            self._head |= {"id": message.get("id", ""), "model": message.get("model", "")}
            self._start = message.get("usage") or {}
            return self._chunk({"role": "assistant", "content": ""})
        if kind == "content_block_start":
            return self._begun(one.get("index", 0), one.get("content_block") or {})
        if kind == "content_block_delta":
            return self._delta(one.get("index", 0), one.get("delta") or {})
        if kind == "message_delta":
            finish = _finish((one.get("delta") or {}).get("stop_reason"))
            said = self._chunk({}, finish)
            if self._wants_usage:
                usage = _usage({**self._start, **(one.get("usage") or {})})
                said += event(encode({**self._head, "choices": [], "usage": usage}))
            return said
        if kind == "message_stop":
            return DONE
        if kind == "error":
            return event(
                encode({"error": {"param": None, "code": "upstream_failed", **(one.get("error") or {})}})
            )
        return b""

    def _begun(self, place: int, block: Table) -> bytes:
        if block.get("type") != "tool_use":
            return b""
        index = self._calls[place] = len(self._calls)
        function = {"name": block.get("name"), "arguments": ""}
        call = {"index": index, "id": block.get("id"), "type": "function", "function": function}
        return self._chunk({"tool_calls": [call]})

    def _delta(self, place: int, delta: Table) -> bytes:
        if delta.get("type") == "text_delta":
            return self._chunk({"content": delta.get("text", "")})
        if delta.get("type") == "input_json_delta" and place in self._calls:
            call = {"index": self._calls[place], "function": {"arguments": delta.get("partial_json", "")}}
            return self._chunk({"tool_calls": [call]})
        return b""

    def _chunk(self, delta: Table, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return event(encode({**self._head, "choices": [choice]}))


def _turn(message: Table) -> Table:
    """One message of OpenAI's as one of Anthropic's."""
    if message.get("role") == "tool":
        result = {
            "type": "tool_result",
            "tool_use_id": message.get("tool_call_id"),
            "content": text_of(message.get("content")),
        }
        return {"role": "user", "content": [result]}
    content = message.get("content")
    blocks: list[Table] = []
    if isinstance(content, str):
        blocks = [{"type": "text", "text": content}] if content else []
    for part in listed(content):
        if part.get("type") == "text":
            blocks.append({"type": "text", "text": part.get("text", "")})
        elif part.get("type") == "image_url":
            blocks.append(
                {"type": "image", "source": _source(str((part.get("image_url") or {}).get("url", "")))}
            )
        else:
            raise Untranslatable(f"a part of the kind {part.get('type')}")
    for call in listed(message.get("tool_calls")):
        function = call.get("function") or {}
        arguments = table(str(function.get("arguments") or "{}").encode())
        blocks.append(
            {"type": "tool_use", "id": call.get("id"), "name": function.get("name"), "input": arguments}
        )
    return {"role": message.get("role"), "content": blocks}


def _join(turns: list[Table], turn: Table) -> None:
    """Roles take turns: two messages of one role are one."""
    if turns and turns[-1]["role"] == turn["role"]:
        turns[-1]["content"] += turn["content"]
    elif turn["content"]:
        turns.append(turn)


def _source(url: str) -> Table:
    if url.startswith("data:"):
        media, _, data = url.removeprefix("data:").partition(";base64,")
        return {"type": "base64", "media_type": media, "data": data}
    return {"type": "url", "url": url}


def _finish(stop: Any) -> str:
    return ENDS.get(str(stop), "stop")


def _usage(said: Table) -> Table:
    cached = said.get("cache_read_input_tokens") or 0
    prompt = (said.get("input_tokens") or 0) + cached + (said.get("cache_creation_input_tokens") or 0)
    completion = said.get("output_tokens") or 0
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }

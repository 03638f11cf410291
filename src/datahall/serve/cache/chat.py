"""Chat completions: a message as chunks of it, and chunks as a message."""

from __future__ import annotations

from typing import Any

from datahall.serve.cache.form import Form, Table, encode, event_of, grown, table_in, table_of
from datahall.serve.cache.openai_stream import SAID, head, is_end, is_usage, is_whole, usage_event


def joined(events: list[bytes]) -> bytes:
    """The message that chunks make."""
    answer: Table = {"object": "chat.completion"}
    choices: dict[int, Table] = {}
    for event in events:
        chunk = table_of(event)
        answer |= {name: chunk[name] for name in SAID if name in chunk}
        if chunk.get("usage"):
            answer["usage"] = chunk["usage"]
        for part in chunk.get("choices") or ():
            index = part.get("index", 0)
            choice = choices.setdefault(
                index, {"index": index, "message": {"role": "assistant", "content": None}, "logprobs": None}
            )
            grown(choice["message"], part.get("delta") or {})
            if part.get("logprobs"):
                choice["logprobs"] = choice["logprobs"] or {}
                grown(choice["logprobs"], part["logprobs"])
            if part.get("finish_reason"):
                choice["finish_reason"] = part["finish_reason"]
    for choice in choices.values():
        for call in choice["message"].get("tool_calls") or ():
            call.pop("index", None)
    answer["choices"] = [choices[index] for index in sorted(choices)]
    return encode(answer)


def apart(whole: bytes) -> list[bytes]:
    """The chunks of a message: who speaks, all that is said, and why it ends."""
    answer = table_in(whole)
    said = {**head(answer), "object": "chat.completion.chunk"}
    events = []
    for choice in answer.get("choices") or ():
        index, message = choice.get("index", 0), dict(choice.get("message") or {})
        calls = message.pop("tool_calls", None)
        if calls:
            message["tool_calls"] = [{"index": place, **call} for place, call in enumerate(calls)]
        role = message.pop("role", "assistant")
        delta = {name: value for name, value in message.items() if value is not None}
        events.append(_chunk(said, index, {"role": role, "content": ""}, None))
        if delta:
            events.append(_chunk(said, index, delta, None, choice.get("logprobs")))
        events.append(_chunk(said, index, {}, choice.get("finish_reason") or "stop"))
    if answer.get("usage"):
        events.append(event_of({**said, "choices": [], "usage": answer["usage"]}))
    return events


def _chunk(said: Table, index: int, delta: Table, finish: str | None, logprobs: Any = None) -> bytes:
    choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
    return event_of({**said, "choices": [choice]})


FORM = Form(joined, apart, is_usage, is_end, is_whole, usage_event, ends_with_done=True)

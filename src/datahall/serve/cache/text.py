"""Completions: a text as chunks of it, and chunks as a text."""

from __future__ import annotations

from datahall.serve.cache.form import Form, Table, encode, event_of, grown, table_in, table_of
from datahall.serve.cache.openai_stream import SAID, head, is_end, is_usage, is_whole, usage_event


def joined(events: list[bytes]) -> bytes:
    """The text that chunks make."""
    answer: Table = {"object": "text_completion"}
    choices: dict[int, Table] = {}
    for event in events:
        chunk = table_of(event)
        answer |= {name: chunk[name] for name in SAID if name in chunk}
        if chunk.get("usage"):
            answer["usage"] = chunk["usage"]
        for part in chunk.get("choices") or ():
            index = part.get("index", 0)
            choice = choices.setdefault(index, {"index": index, "text": "", "logprobs": None})
            choice["text"] += part.get("text") or ""
            if part.get("logprobs"):
                choice["logprobs"] = choice["logprobs"] or {}
                grown(choice["logprobs"], part["logprobs"])
            if part.get("finish_reason"):
                choice["finish_reason"] = part["finish_reason"]
    answer["choices"] = [choices[index] for index in sorted(choices)]
    return encode(answer)


def apart(whole: bytes) -> list[bytes]:
    """A text as one chunk a choice."""
    answer = table_in(whole)
    said = head(answer)
    events = [event_of({**said, "choices": [choice]}) for choice in answer.get("choices") or ()]
    if answer.get("usage"):
        events.append(event_of({**said, "choices": [], "usage": answer["usage"]}))
    return events


FORM = Form(joined, apart, is_usage, is_end, is_whole, usage_event, ends_with_done=True)

"""Anthropic's messages: a message as named events of its blocks, and events as a message."""

from __future__ import annotations

import msgspec

from datahall.serve.cache.form import Form, NotStreamed, Table, encode, event_of, table_in, table_of
from datahall.serve.ledger.money import Usage

# of a block, the text that its deltas add to, by the type of a delta, and the field of the delta that has it
GROWS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
}
# of a block, the field that is said in deltas, and their type
SAID_BY = {"text": ("text", "text_delta"), "thinking": ("thinking", "thinking_delta")}


def joined(events: list[bytes]) -> bytes:
    """The message that events make."""
    message: Table = {}
    blocks: dict[int, Table] = {}
    written: dict[int, str] = {}  # the JSON of what a tool is called with, as it came
    for event in events:
        table = table_of(event)
        kind = table.get("type")
        if kind == "message_start":
            message = dict(table["message"])
        elif kind == "content_block_start":
            blocks[table["index"]] = dict(table["content_block"])
        elif kind == "content_block_delta":
            delta, block = table["delta"], blocks[table["index"]]
            if delta["type"] == "input_json_delta":
                written[table["index"]] = written.get(table["index"], "") + delta["partial_json"]
            elif delta["type"] == "citations_delta":
                block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
            elif delta["type"] in GROWS:
                field, part = GROWS[delta["type"]]
                block[field] = (block.get(field) or "") + delta[part]
        elif kind == "message_delta":
            message |= table["delta"]
            message["usage"] = {**message.get("usage", {}), **table.get("usage", {})}
    for index, text in written.items():
        blocks[index]["input"] = _input(text)
    return encode({**message, "content": [blocks[index] for index in sorted(blocks)]})


def _input(text: str) -> object:
    try:
        return msgspec.json.decode(text) if text else {}
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotStreamed(str(error)) from error


def apart(whole: bytes) -> list[bytes]:
    """The events of a message: its start, each block with all it says, and why it ends."""
    message = table_in(whole)
    ends = {name: message.get(name) for name in ("stop_reason", "stop_sequence")}
    begun = {**message, "content": [], **dict.fromkeys(ends)}
    events = [_event("message_start", message=begun)]
    for index, block in enumerate(message.get("content") or ()):
        events += _block(index, block)
    events.append(_event("message_delta", delta=ends, usage=message.get("usage") or {}))
    events.append(_event("message_stop"))
    return events


def _block(index: int, block: Table) -> list[bytes]:
    first, deltas = dict(block), list[Table]()
    if block.get("type") in SAID_BY:
        field, kind = SAID_BY[block["type"]]
        first[field] = ""
        deltas.append({"type": kind, field: block.get(field) or ""})
        if block.get("signature"):
            first["signature"] = ""
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        for citation in first.pop("citations", None) or ():
            deltas.append({"type": "citations_delta", "citation": citation})
    elif "input" in block:
        first["input"] = {}
        deltas.append({"type": "input_json_delta", "partial_json": encode(block["input"]).decode()})
    return [
        _event("content_block_start", index=index, content_block=first),
        *(_event("content_block_delta", index=index, delta=delta) for delta in deltas),
        _event("content_block_stop", index=index),
    ]


def _event(kind: str, **fields: object) -> bytes:
    return event_of({"type": kind, **fields}, kind)


def is_whole(events: list[bytes]) -> bool:
    """Whether the message was begun and ended."""
    kinds = [table_of(event).get("type") for event in events]
    return "message_start" in kinds and kinds[-1] == "message_stop"


def never(event: bytes) -> bool:
    """Usage and end of a message are among its own events."""
    del event
    return False


def no_event(chunk: bytes, usage: Usage) -> bytes:
    """What is used is said by `message_delta`."""
    del chunk, usage
    return b""


FORM = Form(joined, apart, never, never, is_whole, no_event, ends_with_done=False)

"""A chat request as OpenAI's clients send it: what is read, within which bounds, and what the engine is given of it.

The engine has many more switches (grammars, slots, files); a client reaches none of them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from datahall.serve.modelserver.refused import Refused

MOST_MESSAGES = 1024
MOST_TOKENS = 1 << 20
MOST_GRAMMAR_BYTES = (
    4096  # of schemas that an answer must keep to: all slots wait while a token is checked by them
)

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=MOST_TOKENS)]
Penalty: TypeAlias = Annotated[float, msgspec.Meta(ge=-2, le=2)]
Sequence: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


class Text(msgspec.Struct, tag="text"):
    """A part of a message; this model reads nothing but text."""

    text: str


class Message(msgspec.Struct, omit_defaults=True):
    """One turn of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Text] | None = None
    name: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None


class StreamOptions(msgspec.Struct, omit_defaults=True):
    """What a stream has besides its tokens."""

    include_usage: bool | None = None


class ChatRequest(msgspec.Struct, omit_defaults=True):
    """The fields of a chat request that this model heeds; others are left aside, as OpenAI's servers do."""

    model: str
    messages: Annotated[list[Message], msgspec.Meta(min_length=1, max_length=MOST_MESSAGES)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Count | None = None
    max_completion_tokens: Count | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    n: Annotated[int, msgspec.Meta(ge=1, le=1)] | None = None
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] | None = None
    stop: Sequence | Annotated[list[Sequence], msgspec.Meta(max_length=4)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, msgspec.Meta(ge=0, le=20)] | None = None
    response_format: dict[str, Any] | None = None
    tools: Annotated[list[dict[str, Any]], msgspec.Meta(max_length=128)] | None = None
    tool_choice: str | dict[str, Any] | None = None

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with an event of its tokens."""
        return bool(self.stream_options and self.stream_options.include_usage)


_REQUESTS = msgspec.json.Decoder(ChatRequest)


def read(body: bytes) -> ChatRequest:
    """The request, or why it is none."""
    try:
        asked = _REQUESTS.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused(400, str(error)) from None
    for name in ("response_format", "tools"):
        said = getattr(asked, name)
        size = len(msgspec.json.encode(said))
        if size > MOST_GRAMMAR_BYTES:
            raise Refused(400, f"{name} has {size} bytes, of which this model takes {MOST_GRAMMAR_BYTES}")
        if _has_pattern(said):
            raise Refused(400, f"{name} has a pattern, and this model heeds none")
    return asked


def _has_pattern(schema: object) -> bool:
    """Whether a regular expression stands in it: some take the engine, and with it everybody, minutes to unfold."""
    rest = [schema]
    while rest:
        one = rest.pop()
        if isinstance(one, dict):
            if isinstance(one.get("pattern"), str):
                return True
            rest += one.values()
        elif isinstance(one, list):
            rest += one
    return False


def for_engine(asked: ChatRequest) -> bytes:
    """The request as the engine is asked: always in pieces, so that it can be stopped between two of them."""
    said: dict[str, Any] = msgspec.to_builtins(asked)
    for message in said["messages"]:
        if isinstance(message.get("content"), list):
            message["content"] = "\n".join(part["text"] for part in message["content"])
        message["role"] = "system" if message["role"] == "developer" else message["role"]
        message.setdefault("content", "")
    limit = said.pop("max_completion_tokens", None) or said.get("max_tokens")
    said = {key: value for key, value in said.items() if value is not None}
    if limit:
        said["max_tokens"] = limit
    said |= {"stream": True, "stream_options": {"include_usage": True}, "return_progress": True}
    return msgspec.json.encode(said)

"""A completion of a text as OpenAI's clients ask for it and read it: without turns, without a template."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from datahall.serve.modelserver.llm.request import Count, Penalty, Sequence, StreamOptions
from datahall.serve.modelserver.refused import Refused

USUAL_TOKENS = 16  # of an answer whose length nobody says, as at OpenAI's


class CompletionRequest(msgspec.Struct, omit_defaults=True):
    """The fields of a request that this model heeds, and those that it would be wrong to leave aside."""

    model: str
    prompt: str | Annotated[list[str], msgspec.Meta(min_length=1, max_length=1)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Count | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    n: Annotated[int, msgspec.Meta(ge=1, le=1)] | None = None
    best_of: Annotated[int, msgspec.Meta(ge=1, le=1)] | None = None
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] | None = None
    stop: Sequence | Annotated[list[Sequence], msgspec.Meta(max_length=4)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    echo: bool | None = None
    suffix: str | None = None

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with an event of its tokens."""
        return bool(self.stream_options and self.stream_options.include_usage)

    @property
    def text(self) -> str:
        """What is gone on with."""
        return self.prompt if isinstance(self.prompt, str) else self.prompt[0]


_REQUESTS = msgspec.json.Decoder(CompletionRequest)
_NOT_HEEDED = ("best_of", "echo", "suffix")


def read(body: bytes) -> CompletionRequest:
    """The request, or why it is none."""
    try:
        asked = _REQUESTS.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused(400, str(error)) from None
    if not asked.text:
        raise Refused(400, "prompt is empty")
    if asked.echo or asked.suffix:
        raise Refused(400, f"{'echo' if asked.echo else 'suffix'} is not done by this model")
    return asked


def for_engine(asked: CompletionRequest) -> bytes:
    """The request as the engine is asked: always in pieces, so that it can be stopped between two of them."""
    said: dict[str, Any] = msgspec.to_builtins(asked)
    said = {key: value for key, value in said.items() if value is not None and key not in _NOT_HEEDED}
    said |= {"prompt": asked.text, "max_tokens": asked.max_tokens or USUAL_TOKENS}
    said |= {"stream": True, "stream_options": {"include_usage": True}, "return_progress": True}
    return msgspec.json.encode(said)


def pieces(data: bytes, wants_usage: bool) -> list[bytes]:
    """An event of the engine as clients read it: what was taken stands in one of its own, where it was asked for."""
    said = msgspec.json.decode(data)
    usage = said.pop("usage", None)
    said.pop("timings", None)
    found = [msgspec.json.encode(said)] if said.get("choices") else []
    if usage is not None and wants_usage:
        found.append(msgspec.json.encode({**said, "choices": [], "usage": usage}))
    return found


class WholeText:
    """An answer that grows by events."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._text: list[str] = []
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
            self._text.append(choice.get("text") or "")

    def body(self) -> bytes:
        """The answer as OpenAI's clients read it."""
        choice = {
            "index": 0, "text": "".join(self._text), "finish_reason": self._finish_reason, "logprobs": None,
        }  # fmt: skip
        return msgspec.json.encode(
            {**self._head, "object": "text_completion", "choices": [choice], "usage": self._usage}
        )

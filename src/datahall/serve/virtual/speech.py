"""OpenAI's chat and completions as an engine of many tokens and no thoughts hears and speaks them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from datahall.serve.modelserver.llm.request import StreamOptions
from datahall.serve.modelserver.refused import Refused

TOKEN_BYTES = 4  # of English text; token numbers are counted as they are
WORDS = (
    " the",
    " and",
    " for",
    " you",
    " are",
    " but",
    " not",
    " all",
    " can",
    " had",
    " her",
    " was",
    " one",
)

Count = Annotated[int, msgspec.Meta(ge=1, le=1 << 24)]


class _Body(msgspec.Struct):
    model: str
    messages: list[dict[str, Any]] | None = None
    prompt: str | list[str | int | list[int]] | None = None
    max_tokens: Count | None = None
    max_completion_tokens: Count | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Annotated[int, msgspec.Meta(ge=1, le=1)] | None = None


_BODIES = msgspec.json.Decoder(_Body)


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What a request wants."""

    model: str
    prompt: int  # tokens
    output: int  # tokens; 0: as many as is usual
    is_chat: bool
    is_stream: bool
    wants_usage: bool


def read(body: bytes, *, is_chat: bool) -> Ask:
    """A request, or why it is none."""
    try:
        said = _BODIES.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused(400, str(error)) from None
    given: object = said.messages if is_chat else said.prompt
    if not given:
        raise Refused(400, f"Object missing required field `{'messages' if is_chat else 'prompt'}`")
    if not is_chat and isinstance(given, list) and not isinstance(given[0], int):
        if len(given) > 1:
            raise Refused(400, "one prompt a request")
        given = given[0]
    return Ask(
        model=said.model,
        prompt=max(1, num_tokens(given)),
        output=said.max_completion_tokens or said.max_tokens or 0,
        is_chat=is_chat,
        is_stream=bool(said.stream),
        wants_usage=bool(said.stream_options and said.stream_options.include_usage),
    )


def num_tokens(given: object) -> int:
    """Tokens of a prompt: of text a fourth of its bytes, of messages those of what they say.

    >>> num_tokens("the and for"), num_tokens([11, 12, 13]), num_tokens([{"role": "user", "content": "the and"}])
    (3, 3, 2)
    """
    if isinstance(given, str):
        return -(-len(given.encode("utf-8", "surrogatepass")) // TOKEN_BYTES)
    if not isinstance(given, list):
        return 0
    if given and isinstance(given[0], int):
        return len(given)
    return sum(_of_message(one) for one in given if isinstance(one, dict))


def _of_message(message: dict[str, Any]) -> int:
    content = message.get("content")
    if isinstance(content, list):
        return sum(num_tokens(part.get("text")) for part in content if isinstance(part, dict))
    return num_tokens(content)


class Answering:
    """The words of one answer; they mean nothing."""

    def __init__(self, name: str, asked: Ask, created: int) -> None:
        kind = "chat.completion" if asked.is_chat else "text_completion"
        self._asked = asked
        piece = kind + ".chunk" if asked.is_chat else kind
        self._whole = {"id": name, "object": kind, "created": created, "model": asked.model}
        self._start = msgspec.json.encode({**self._whole, "object": piece})[:-1]

    def piece(self, said: int, more: int) -> bytes:
        """An event with so many tokens more."""
        text = words(said, more).encode()
        if self._asked.is_chat:
            role = b"" if said else b'"role":"assistant",'
            return b'data: %b,"choices":[{"index":0,"delta":{%b"content":"%b"},"finish_reason":null}]}\n\n' % (
                self._start, role, text,
            )  # fmt: skip
        return b'data: %b,"choices":[{"index":0,"text":"%b","finish_reason":null}]}\n\n' % (self._start, text)

    def last(self, said: int, hit: int) -> bytes:
        """The events that end a stream."""
        empty = b'"delta":{}' if self._asked.is_chat else b'"text":""'
        end = b'data: %b,"choices":[{"index":0,%b,"finish_reason":"length"}]}\n\n' % (self._start, empty)
        if self._asked.wants_usage:
            usage = msgspec.json.encode(self._usage(said, hit))
            end += b'data: %b,"choices":[],"usage":%b}\n\n' % (self._start, usage)
        return end + b"data: [DONE]\n\n"

    def whole(self, said: int, hit: int) -> bytes:
        """The answer in one."""
        text = words(0, said)
        said_as = (
            {"message": {"role": "assistant", "content": text}} if self._asked.is_chat else {"text": text}
        )
        choice = {"index": 0, **said_as, "finish_reason": "length"}
        return msgspec.json.encode({**self._whole, "choices": [choice], "usage": self._usage(said, hit)})

    def _usage(self, said: int, hit: int) -> dict[str, Any]:
        prompt = self._asked.prompt
        return {
            "prompt_tokens": prompt,
            "completion_tokens": said,
            "total_tokens": prompt + said,
            "prompt_tokens_details": {"cached_tokens": hit},
        }


def words(said: int, more: int) -> str:
    """So many tokens, after some that were said.

    >>> words(12, 2)
    ' one the'
    """
    return "".join(WORDS[place % len(WORDS)] for place in range(said, said + more))

"""What an upstream says that a request took, in the forms that there are."""

from __future__ import annotations

import json

import msgspec

from datahall.serve.ledger.money import Usage


class _Details(msgspec.Struct):
    cached_tokens: int | None = 0


class _Hidden(msgspec.Struct):
    """Tokens of an answer that do not stand in it."""

    reasoning_tokens: int | None = 0
    rejected_prediction_tokens: int | None = 0


class _Said(msgspec.Struct):
    """OpenAI's names and Anthropic's, whose prompt counts without what was cached."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Hidden | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None

    def usage(self, num_bytes: int) -> Usage:
        """As said, but of OpenAI's no more tokens than bytes of the answer have come, beside those that it hides."""
        if self.prompt_tokens is None and self.input_tokens is not None:
            cached = self.cache_read_input_tokens or 0
            prompt = self.input_tokens + cached + (self.cache_creation_input_tokens or 0)
            return Usage(prompt, cached, self.output_tokens or 0)
        details = self.prompt_tokens_details
        cached = (details.cached_tokens or 0) if details is not None else 0
        completion = self.completion_tokens or 0
        if completion > num_bytes:
            hidden = self.completion_tokens_details or _Hidden()
            num_bytes += max(0, hidden.reasoning_tokens or 0) + max(0, hidden.rejected_prediction_tokens or 0)
        return Usage(self.prompt_tokens or 0, cached, min(completion, num_bytes))


class _Message(msgspec.Struct):
    usage: _Said | None = None


class _Answer(msgspec.Struct):
    usage: _Said | None = None
    message: _Message | None = None  # in which Anthropic's stream says what the prompt took
    choices: list[msgspec.Raw] | None = None


class _Content(msgspec.Struct):
    """Where an answer says what it has to say, at OpenAI's and at Anthropic's."""

    choices: msgspec.Raw = msgspec.Raw()
    content: msgspec.Raw = msgspec.Raw()


NO_NUMBERS = (b"NaN", b"Infinity")
_answer = msgspec.json.Decoder(_Answer)
_content = msgspec.json.Decoder(_Content)


def usage_of(body: bytes) -> Usage | None:
    """What a whole answer says that it took.

    >>> usage_of(b'{"usage": {"prompt_tokens": 9, "completion_tokens": 2}, "logprob": -Infinity}')
    Usage(prompt=9, cached=0, completion=2)
    """
    answer = _answer_of(body)
    return None if answer is None or answer.usage is None else answer.usage.usage(len(body))


def _answer_of(data: bytes) -> _Answer | None:
    """An answer as far as it says what it took; numbers that are none are let pass, as engines say them."""
    try:
        return _answer.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        if not any(word in data for word in NO_NUMBERS):
            return None
    try:
        return _answer.decode(msgspec.json.encode(json.loads(data)))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def most_in(body: bytes) -> int:
    """The most tokens that a whole answer may have: a byte of what it says each.

    >>> most_in(b'{"choices": [{"text": "four"}], "usage": {}}')
    16
    """
    try:
        said = _content.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return len(body)
    return max(0, len(memoryview(said.choices)) - 2) + max(0, len(memoryview(said.content)) - 2)


def usage_of_chunk(data: bytes, num_bytes: int) -> tuple[Usage | None, bool]:
    """What a piece of a stream of so many bytes says, and whether it says nothing else."""
    answer = _answer_of(data)
    if answer is None:
        return None, False
    if answer.message is not None and answer.message.usage is not None:
        return answer.message.usage.usage(num_bytes), False
    if answer.usage is None:
        return None, False
    return answer.usage.usage(num_bytes), answer.choices is not None and not answer.choices

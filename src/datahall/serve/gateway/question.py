"""What a request asks: read far enough to route, to count and to bound it; all else goes on as it came.

A body is read one level deep and written anew, so that every key stands in it once: what is checked here is what the
upstream reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import msgspec

from datahall.scenario.words import Route
from datahall.serve.gateway.refusing import Refused
from datahall.serve.ledger.money import Usage
from datahall.serve.upstreams.pool import NORMAL, PRIORITIES
from datahall.serve.upstreams.routing import Hint

Kind = Route
Body = dict[str, msgspec.Raw]
Value = TypeVar("Value")

BYTES_PER_TOKEN = 3  # of a prompt before anybody has counted it; English has about 4
USUAL_TOKENS = 1024  # of an answer whose length is left to the model
MOST_TOKENS = 1_000_000
MOST_NAME = 200  # characters of a model
MOST_CHOICES = 128
PREFIX_BYTES = 1024  # of a prompt, by which requests are found alike
PROMPTS: dict[Kind, tuple[str, ...]] = {
    "chat": ("messages", "tools"),
    "completions": ("prompt",),
    "embeddings": ("input",),
    "messages": ("messages", "system", "tools"),
}
LENGTHS = ("max_completion_tokens", "max_tokens")
WITH_USAGE = msgspec.Raw(b'{"include_usage":true}')

_body = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.Encoder().encode


class StreamOptions(msgspec.Struct):
    """What of the options of a stream concerns us."""

    include_usage: bool | None = None


class Question(NamedTuple):
    """A request for a model."""

    kind: Kind
    model: str
    is_stream: bool
    wants_usage: bool  # in the stream
    estimate: Usage  # the most that it may take
    hint: Hint
    priority: int
    body: Body

    def for_model(self, model: str, other: Callable[[dict[str, Any]], dict[str, Any]] | None = None) -> bytes:
        """The body as an upstream gets it, which calls the model by its own name and always says what it took.

        `other` puts it into another language first.
        """
        if other is not None:
            said = other(msgspec.json.decode(_encode(self.body)))
            return _encode({**said, "model": model})
        body = self.body
        body["model"] = msgspec.Raw(_encode(model))
        if self.is_stream and self.kind in ("chat", "completions"):
            body["stream_options"] = WITH_USAGE
        return _encode(body)


def read_question(kind: Kind, data: bytes, header: Callable[[str], str], owner: str) -> Question:
    """Read a request for a model, or refuse it."""
    try:
        body = _body.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(400, f"the body is no JSON object: {error}", "invalid_json") from None
    model = _value(body, "model", str, "")
    if not model or len(model) > MOST_NAME:
        raise Refused(400, "model names the model that is asked", "invalid_value", param="model")
    streams = _value(body, "stream", bool | None, None)  # type: ignore[arg-type]
    is_stream = bool(streams) and kind != "embeddings"
    wants_usage = False
    if "stream_options" in body:
        options = _value(body, "stream_options", StreamOptions | None, None)  # type: ignore[arg-type]
        wants_usage = bool(options and options.include_usage)
    num_bytes = 0
    for name in PROMPTS[kind]:
        if name in body:
            num_bytes += len(memoryview(body[name]))
    if not num_bytes or PROMPTS[kind][0] not in body:
        raise Refused(400, f"{PROMPTS[kind][0]} is missing", "missing_value", param=PROMPTS[kind][0])
    prompt = memoryview(body[PROMPTS[kind][0]])
    first = owner.encode() + b"\0"
    hint = Hint(first + bytes(prompt[:PREFIX_BYTES]), session_of(first, body, header))
    num_prompts, num_numbers = _counted(body, kind)
    answers = 0 if kind == "embeddings" else _most_tokens(body) * num_prompts
    estimate = Usage(max(num_bytes // BYTES_PER_TOKEN + 1, num_numbers), 0, answers)
    return Question(
        kind, model, is_stream, wants_usage, estimate, hint, priority_of(header("x-priority")), body
    )


def _counted(body: Body, kind: Kind) -> tuple[int, int]:
    """Prompts of a question, each of which is answered, and tokens that it gives as numbers."""
    if kind not in ("completions", "embeddings"):
        return 1, 0
    said: Any = _value(body, PROMPTS[kind][0], object, None)
    if not isinstance(said, list) or not said:
        return 1, 0
    if isinstance(said[0], int):
        return 1, len(said)
    return len(said), sum(len(one) for one in said if isinstance(one, list))


def _most_tokens(body: Body) -> int:
    """How many tokens the answer to a prompt may have, of all its choices together: by the longest that is said."""
    said = []
    for name in LENGTHS:
        if name in body:
            length = _value(body, name, int | None, None)  # type: ignore[arg-type]
            if length is not None and not 1 <= length <= MOST_TOKENS:
                raise Refused(400, f"{name} is 1 to {MOST_TOKENS}", "invalid_value", param=name)
            said += [length] if length else []
    most = max(said, default=USUAL_TOKENS)
    choices = 1
    for name in ("n", "best_of"):
        if name in body:
            count = _value(body, name, int | None, None)  # type: ignore[arg-type]
            if count is not None and not 1 <= count <= MOST_CHOICES:
                raise Refused(400, f"{name} is 1 to {MOST_CHOICES}", "invalid_value", param=name)
            choices = max(choices, count or 1)
    return most * choices


def session_of(first: bytes, body: Body, header: Callable[[str], str]) -> bytes:
    named = header("x-session-id")
    if named:
        return first + named.encode()
    for name in ("prompt_cache_key", "user"):
        if name in body:
            return first + bytes(memoryview(body[name]))
    return b""


def priority_of(word: str) -> int:
    if not word:
        return NORMAL
    if word not in PRIORITIES:
        raise Refused(400, f"x-priority is {', '.join(PRIORITIES)}", "invalid_value")
    return PRIORITIES.index(word)


def _value(body: Body, name: str, kind: type[Value], otherwise: Value) -> Value:
    raw = body.get(name)
    if raw is None:
        return otherwise
    try:
        found: Any = msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(400, f"{name}: {error}", "invalid_type", param=name) from None
    return found  # type: ignore[no-any-return]

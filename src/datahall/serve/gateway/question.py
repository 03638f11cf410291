"""What a request asks: read far enough to route, to count and to bound it; all else goes on as it came.

A body is read one level deep and written anew, so that every key stands in it once: what is checked here is what the
upstream reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
FEWEST_TOKENS = 256  # that such an answer is worth asking for
TEMPLATE_TOKENS = 4096  # that a model may be told beside a prompt: roles, tools, what its maker adds
ATTACHED_TOKENS = 65_536  # of a picture or a file that a prompt only names
MOST_TOKENS = 1_000_000
MOST_NAME = 200  # characters of a model
MOST_CHOICES = 128
MOST_PROMPTS = 16_384  # of one question
# what would hold up everybody else while it is read, which nobody asks in earnest
MOST_KEYS = 50_000  # colons outside of prompts
MOST_PARTS = 200_000  # brackets or commas of what is taken apart
PREFIX_BYTES = 1024  # of a prompt, by which requests are found alike
PROMPTS: dict[Kind, tuple[str, ...]] = {
    "chat": ("messages", "tools"),
    "completions": ("prompt",),
    "embeddings": ("input",),
    "messages": ("messages", "system", "tools"),
}
# the names that each API has for the length of an answer, first the one that it is told by
LENGTHS: dict[Kind, tuple[str, ...]] = {
    "chat": ("max_completion_tokens", "max_tokens"),
    "completions": ("max_tokens",),
    "messages": ("max_tokens",),
}
# those of others, which some upstreams read and some do not
OTHER_LENGTHS = (
    "max_completion_tokens", "max_tokens", "n_predict", "max_new_tokens", "max_output_tokens", "max_tokens_to_sample",
)  # fmt: skip
ATTACHED = (b'"image', b'"input_', b'"file', b'"document', b'"audio', b'"video')
WITH_USAGE = msgspec.Raw(b'{"include_usage":true}')


class _Prompts(msgspec.Struct):
    """The parts of a body that may be long."""

    messages: msgspec.Raw = msgspec.Raw()
    tools: msgspec.Raw = msgspec.Raw()
    prompt: msgspec.Raw = msgspec.Raw()
    input: msgspec.Raw = msgspec.Raw()
    system: msgspec.Raw = msgspec.Raw()


_body = msgspec.json.Decoder(dict[str, msgspec.Raw])
_prompts = msgspec.json.Decoder(_Prompts)
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
    num_bytes: int
    num_open: int = 0  # answers whose length is left to the model

    @property
    def longest(self) -> int:
        """Tokens that one answer is held at whose length is left to the model."""
        return self.estimate.completion // (self.num_open or 1)

    def held_to(self, longest: int, room: int | None) -> tuple[Question, bool]:
        """A length for an answer that has none said, where means have an end what they allow; whether that is less."""
        if room is None:
            return self.of_length(longest, is_sent=False), False
        length = max(min(FEWEST_TOKENS, longest), min(longest, room // self.num_open))
        return self.of_length(length, is_sent=True), length < longest

    def of_length(self, tokens: int, *, is_sent: bool) -> Question:
        """The question with a length for each answer that has none, which the upstream is told or only held for it."""
        estimate = Usage(self.estimate.prompt, 0, tokens * self.num_open)
        if not is_sent:
            return self._replace(estimate=estimate)
        self.body[LENGTHS[self.kind][0]] = msgspec.Raw(b"%d" % tokens)
        return self._replace(estimate=estimate, num_open=0)

    def believed(self, said: Usage, delivered: int) -> Usage:
        """What an upstream says that it took, if that can be: a token of a prompt has a byte, an answer its length.

        `delivered`: the most tokens that the answer may have, as it came; one that is longer than was asked for is.
        """
        said = said.bounded()
        prompt, completion = said.prompt, said.completion
        if prompt > self.num_bytes + TEMPLATE_TOKENS:
            parts = b"".join(
                bytes(memoryview(self.body[name])) for name in PROMPTS[self.kind] if name in self.body
            )
            attached = sum(parts.count(word) for word in ATTACHED)
            prompt = min(prompt, self.num_bytes + TEMPLATE_TOKENS + attached * ATTACHED_TOKENS)
        if not self.num_open:
            completion = min(completion, max(self.estimate.completion, delivered))
        if prompt == said.prompt and completion == said.completion:
            return said
        return Usage(prompt, min(said.cached, prompt), completion)

    def for_model(self, model: str, other: Callable[[dict[str, Any]], dict[str, Any]] | None = None) -> bytes:
        """The body as an upstream gets it, which calls the model by its own name and always says what it took.

        `other` puts it into another language first.
        """
        if other is not None:
            whole = _encode(self.body)
            if whole.count(b"{") + whole.count(b"[") > MOST_PARTS:
                raise Refused(
                    400, f"of more than {MOST_PARTS} parts, for an upstream of another API", "not_offered"
                )
            said = other(msgspec.json.decode(whole))
            return _encode({**said, "model": model})
        body = self.body
        body["model"] = msgspec.Raw(_encode(model))
        if self.is_stream and self.kind in ("chat", "completions"):
            body["stream_options"] = WITH_USAGE
        return _encode(body)


def read_question(kind: Kind, data: bytes, header: Callable[[str], str], owner: str) -> Question:
    """Read a request for a model, or refuse it."""
    try:
        hold_to_few_keys(data)
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
    if PROMPTS[kind][0] not in body:
        raise Refused(400, f"{PROMPTS[kind][0]} is missing", "missing_value", param=PROMPTS[kind][0])
    prompt = memoryview(body[PROMPTS[kind][0]])
    first = owner.encode() + b"\0"
    hint = Hint(first + bytes(prompt[:PREFIX_BYTES]), session_of(first, body, header))
    num_prompts, num_numbers = _counted(body, kind)
    completion = num_open = 0
    if kind != "embeddings":
        length, num_answers = _said_length(body, kind), _num_choices(body) * num_prompts
        completion = (length or USUAL_TOKENS) * num_answers
        num_open = 0 if length else num_answers
    # all of it: what is no prompt may become one, as functions and documents do
    estimate = Usage(max(len(data) // BYTES_PER_TOKEN + 1, num_numbers), 0, completion)
    return Question(
        kind, model, is_stream, wants_usage, estimate, hint, priority_of(header("x-priority")), body, len(data),
        num_open,
    )  # fmt: skip


def hold_to_few_keys(data: bytes) -> None:
    """Refuse a body of so many keys that to make a table of them would take long; within a prompt none is made."""
    if len(data) <= MOST_KEYS or data.count(b":") <= MOST_KEYS:
        return
    found = _prompts.decode(data)
    parts = (found.messages, found.tools, found.prompt, found.input, found.system)
    if data.count(b":") - sum(bytes(memoryview(part)).count(b":") for part in parts) > MOST_KEYS:
        raise Refused(400, f"more than {MOST_KEYS} keys beside the prompt", "invalid_value")


def _counted(body: Body, kind: Kind) -> tuple[int, int]:
    """Prompts of a question, each of which is answered, and tokens that it gives as numbers, by their commas."""
    if kind not in ("completions", "embeddings"):
        return 1, 0
    name = PROMPTS[kind][0]
    said = bytes(memoryview(body[name]))
    if not said.startswith(b"["):
        return 1, 0
    if b'"' not in said:
        prompts, numbers = max(1, said.count(b"[") - 1), said.count(b",") + 1
    else:
        numbers = 0
        marks = said.replace(b"\\\\", b"")
        prompts = (marks.count(b'"') - marks.count(b'\\"')) // 2
        if prompts <= MOST_PROMPTS:  # or else it is too many, and no list is made of them
            kind_of_list: Any = list[msgspec.Raw] if said.count(b",") <= MOST_PARTS else list[str]
            prompts = len(_value(body, name, kind_of_list, []))
    if prompts > MOST_PROMPTS:
        raise Refused(400, f"{name} has more than {MOST_PROMPTS} parts", "invalid_value", param=name)
    return prompts, numbers


def _said_length(body: Body, kind: Kind) -> int:
    """How many tokens an answer may have, by the longest that is said; 0 where none is.

    A length under a name of another API is said anew under its own, as what is held must be what the upstream reads.
    """
    own = _longest(body, LENGTHS[kind])
    others = [name for name in OTHER_LENGTHS if name not in LENGTHS[kind] and name in body]
    if not others:
        return own
    longest = _longest(body, others)
    for name in others:
        del body[name]
    if longest and not own:
        body[LENGTHS[kind][0]] = msgspec.Raw(b"%d" % longest)
    return own or longest


def _longest(body: Body, names: Sequence[str]) -> int:
    said = []
    for name in names:
        if name in body:
            length = _value(body, name, int | None, None)  # type: ignore[arg-type]
            if length is not None and not 1 <= length <= MOST_TOKENS:
                raise Refused(400, f"{name} is 1 to {MOST_TOKENS}", "invalid_value", param=name)
            said += [length] if length else []
    return max(said, default=0)


def _num_choices(body: Body) -> int:
    """How many answers a prompt may have."""
    choices = 1
    for name in ("n", "best_of"):
        if name in body:
            count = _value(body, name, int | None, None)  # type: ignore[arg-type]
            if count is not None and not 1 <= count <= MOST_CHOICES:
                raise Refused(400, f"{name} is 1 to {MOST_CHOICES}", "invalid_value", param=name)
            choices = max(choices, count or 1)
    return choices


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


def patience_s(header: Callable[[str], str]) -> float:
    """How long the client is willing to wait, where it says so."""
    text = header("x-request-timeout")
    if not text:
        return 1e9
    try:
        wait_s = float(text)
    except ValueError:
        wait_s = -1.0
    if not 0 < wait_s < 1e9:
        raise Refused(400, "x-request-timeout is seconds, more than 0", "invalid_value")
    return wait_s

"""What the gateway says of itself: its operations, with what they read of a body and what they pass through."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

import msgspec

from datahall import __version__
from datahall.scenario.words import Route
from datahall.serve.gateway.question import MOST_CHOICES, MOST_TOKENS
from datahall.serve.gateway.speech.inference import ROOT
from datahall.serve.modelserver.refused import InferenceRefusal, PredictRefusal
from datahall.serve.openapi import PATH, Operation, Shape, described

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Length = Annotated[int, msgspec.Meta(ge=1, le=MOST_TOKENS)]
Choices = Annotated[int, msgspec.Meta(ge=1, le=MOST_CHOICES)]
Passed = dict[str, Any]  # on to the upstream, as it came

KINDS: dict[str, Route] = {
    "/v1/chat/completions": "chat",
    "/v1/completions": "completions",
    "/v1/embeddings": "embeddings",
    "/v1/messages": "messages",
    "/predict": "predict",
}
MODELS = "/v1/models"


class Message(msgspec.Struct, frozen=True):
    """One turn of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Passed] | None = None


class Turn(msgspec.Struct, frozen=True):
    """One turn, as Anthropic writes it."""

    role: Literal["user", "assistant"]
    content: str | list[Passed]


class StreamOptions(msgspec.Struct, frozen=True):
    """What a stream has at its end."""

    include_usage: bool | None = None


class Chat(msgspec.Struct, frozen=True, kw_only=True):
    """OpenAI's chat; fields that are not here are passed on."""

    model: Name
    messages: Annotated[list[Message], msgspec.Meta(min_length=1)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Length | None = None
    max_completion_tokens: Length | None = None
    n: Choices | None = None
    tools: list[Passed] | None = None


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """OpenAI's completions; fields that are not here are passed on."""

    model: Name
    prompt: str | list[str]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Length | None = None
    n: Choices | None = None


class Embedding(msgspec.Struct, frozen=True, kw_only=True):
    """OpenAI's embeddings; fields that are not here are passed on."""

    model: Name
    input: str | list[str]


class Messages(msgspec.Struct, frozen=True, kw_only=True):
    """Anthropic's messages; fields that are not here are passed on."""

    model: Name
    max_tokens: Length
    messages: Annotated[list[Turn], msgspec.Meta(min_length=1)]
    system: str | list[Passed] | None = None
    stream: bool | None = None
    tools: list[Passed] | None = None


class Problem(msgspec.Struct, frozen=True):
    """What was wrong."""

    message: str
    type: str
    param: str | None
    code: str | None


class Refusal(msgspec.Struct, frozen=True):
    """An error, as OpenAI's clients read it."""

    error: Problem


class AnthropicProblem(msgspec.Struct, frozen=True):
    """What was wrong, in Anthropic's words."""

    type: str
    message: str


class AnthropicRefusal(msgspec.Struct, frozen=True):
    """An error, as Anthropic's clients read it."""

    type: Literal["error"]
    error: AnthropicProblem


class Card(msgspec.Struct, frozen=True):
    """A model that may be asked."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class Cards(msgspec.Struct, frozen=True):
    """All models that a key may ask."""

    object: Literal["list"]
    data: list[Card]


class Health(msgspec.Struct, frozen=True):
    """How the gateway is, and whether a model has an upstream that may be asked."""

    status: Literal["healthy", "degraded", "draining"]
    models: dict[str, bool]


ASKED: dict[Route, tuple[str, Shape]] = {
    "chat": ("an answer to a conversation", Chat),
    "completions": ("a text continued", Completion),
    "embeddings": ("vectors of texts", Embedding),
    "messages": ("an answer to a conversation, in Anthropic's words", Messages),
    "predict": ("the answer of another model, which is asked as it was", Passed),
}
REFUSED: dict[Route, Shape] = {"messages": AnthropicRefusal, "predict": PredictRefusal}
NEVER_STREAMED: tuple[Route, ...] = ("embeddings", "predict")
INFERENCE = f"{ROOT}/models/{{model}}"
REFUSALS = (400, 401, 402, 403, 404, 408, 413, 429, 500, 502, 503, 504)
OPERATIONS = (
    *(
        Operation(
            path=path,
            method="POST",
            about=ASKED[kind][0],
            body=ASKED[kind][1],
            answer=Passed,
            is_streamed=kind not in NEVER_STREAMED,
            refusal=REFUSED.get(kind, Refusal),
            statuses=REFUSALS,
            has_key=True,
        )
        for path, kind in KINDS.items()
    ),
    Operation(
        path=MODELS,
        about="models that the key may ask",
        answer=Cards,
        refusal=Refusal,
        statuses=(401, 403),
        has_key=True,
    ),
    Operation(
        path=f"{MODELS}/{{model}}",
        about="one of them",
        answer=Card,
        refusal=Refusal,
        statuses=(400, 401, 403, 404),
        has_key=True,
    ),
    Operation(path=ROOT, about="who answers the Open Inference Protocol", answer=Passed),
    Operation(path=f"{ROOT}/health/live", about="whether it answers at all", answer=Passed),
    Operation(
        path=f"{ROOT}/health/ready",
        about="whether requests may be sent",
        answer=Passed,
        refusal=InferenceRefusal,
        statuses=(503,),
    ),
    *(
        Operation(
            path=at + end,
            method=method,
            about=about,
            body=Passed if method == "POST" else None,
            answer=Passed,
            refusal=InferenceRefusal,
            statuses=REFUSALS,
            has_key=True,
        )
        for at in (INFERENCE, f"{INFERENCE}/versions/{{version}}")
        for end, method, about in (
            ("", "GET", "what another model takes and gives"),
            ("/ready", "GET", "whether it answers"),
            ("/infer", "POST", "its answer"),
        )
    ),
    Operation(path="/health", about="how the gateway is", answer=Health),
    Operation(path="/health/live", about="whether it answers at all", answer=Health),
    Operation(path="/health/ready", about="whether requests may be sent", answer=Health),
    Operation(path="/metrics", about="counters for Prometheus"),
    Operation(path=PATH, about="this description", answer=Passed),
)


@cache
def description() -> bytes:
    """The gateway as OpenAPI describes it."""
    return described("Datahall gateway", __version__, OPERATIONS)

"""What the model server says of itself: the lab's paths and those of the Open Inference Protocol."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import msgspec

from datahall.serve.modelserver.open_inference import ROOT, InferenceRequest, InferenceResponse
from datahall.serve.modelserver.predict import HealthResponse, PredictRequest, PredictResponse
from datahall.serve.modelserver.refused import InferenceRefusal, PredictRefusal
from datahall.serve.openapi import PATH, Operation, described


class Status(msgspec.Struct, frozen=True):
    """Whether the server answers, and its model with it."""

    status: Literal["live", "ready", "loading"]


class ServerMetadata(msgspec.Struct, frozen=True):
    """Who answers the protocol."""

    name: str
    version: str
    extensions: list[str]


class ServerLive(msgspec.Struct, frozen=True):
    """The server answers."""

    live: bool


class ServerReady(msgspec.Struct, frozen=True):
    """The server has a model."""

    ready: bool


class ModelReady(msgspec.Struct, frozen=True):
    """A model is loaded."""

    name: str
    ready: bool


class TensorMetadata(msgspec.Struct, frozen=True):
    """An input or an output, -1 where any length is taken."""

    name: str
    datatype: str
    shape: list[int]


class ModelMetadata(msgspec.Struct, frozen=True):
    """A model, and what it takes and gives."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]


MODEL = f"{ROOT}/models/{{model}}"
NAMED = (MODEL, f"{MODEL}/versions/{{version}}")
OPERATIONS = (
    Operation(
        path="/predict",
        method="POST",
        about="the model's answer to a row",
        body=PredictRequest,
        answer=PredictResponse,
        refusal=PredictRefusal,
        statuses=(422, 500, 503),
    ),
    Operation(
        path="/health", about="whether the model is there, and how long it takes", answer=HealthResponse
    ),
    Operation(path="/health/live", about="whether the server answers", answer=Status),
    Operation(
        path="/health/ready",
        about="whether the model answers",
        answer=Status,
        refusal=Status,
        statuses=(503,),
    ),
    Operation(path="/metrics", about="counters for Prometheus"),
    Operation(path=PATH, about="this description", answer=dict[str, Any]),
    Operation(path=ROOT, about="who answers", answer=ServerMetadata),
    Operation(path=f"{ROOT}/health/live", about="whether the server answers", answer=ServerLive),
    Operation(
        path=f"{ROOT}/health/ready",
        about="whether a model is loaded",
        answer=ServerReady,
        refusal=InferenceRefusal,
        statuses=(503,),
    ),
    *(
        one
        for at in NAMED
        for one in (
            Operation(
                path=at,
                about="what it takes and gives",
                answer=ModelMetadata,
                refusal=InferenceRefusal,
                statuses=(404,),
            ),
            Operation(
                path=f"{at}/ready",
                about="whether it is loaded",
                answer=ModelReady,
                refusal=InferenceRefusal,
                statuses=(404,),
            ),
            Operation(
                path=f"{at}/infer",
                method="POST",
                about="its answer",
                body=InferenceRequest,
                answer=InferenceResponse,
                refusal=InferenceRefusal,
                statuses=(400, 404, 500, 503),
            ),
        )
    ),
)


@cache
def description(version: str) -> bytes:
    """The model server as OpenAPI describes it."""
    return described("Datahall model server", version, OPERATIONS)

"""The Open Inference Protocol, version 2, over HTTP with JSON: health, metadata and inference of every loaded model."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import unquote

import msgspec
import numpy as np

from datahall.serve.http import Exchange
from datahall.serve.modelserver.answering import retry_after
from datahall.serve.modelserver.refused import BadInput, InferenceRefusal, Refused
from datahall.serve.modelserver.runners.runner import Arrays
from datahall.serve.modelserver.shelf import Shelf
from datahall.serve.modelserver.tensor import DATATYPES, Array, Tensor, array_of, datatype_of
from datahall.serve.modelserver.version import Version

NAME = "datahall"
ROOT = "/v2"
MOST_AXES = 32  # of a tensor, as NumPy has them

Side = Annotated[int, msgspec.Meta(ge=0, le=2**40)]


class InputTensor(msgspec.Struct):
    """One input, its data flat or nested, in row-major order."""

    name: str
    shape: Annotated[list[Side], msgspec.Meta(min_length=1, max_length=MOST_AXES)]
    datatype: str
    data: list[Any]
    parameters: dict[str, Any] = {}


class RequestedOutput(msgspec.Struct):
    """An output that the client wants; without any, all of them."""

    name: str
    parameters: dict[str, Any] = {}


class InferenceRequest(msgspec.Struct):
    """What a client sends to `infer`."""

    inputs: list[InputTensor]
    id: str = ""
    outputs: list[RequestedOutput] = []
    parameters: dict[str, Any] = {}


class OutputTensor(msgspec.Struct):
    """One output, its data flat."""

    name: str
    shape: tuple[int, ...]
    datatype: str
    data: list[Any]


class InferenceResponse(msgspec.Struct, omit_defaults=True):
    """What `infer` answers."""

    model_name: str
    model_version: str
    outputs: list[OutputTensor]
    id: str = ""


_REQUESTS = msgspec.json.Decoder(InferenceRequest)
_ENCODER = msgspec.json.Encoder()


class OpenInference:
    """All of `/v2`."""

    def __init__(self, shelf: Shelf, server_version: str) -> None:
        self._shelf = shelf
        self._server_version = server_version

    def __call__(self, exchange: Exchange) -> None:
        """Answer, whatever follows `/v2`; parts of a path are read after they are cut."""
        parts = [unquote(part) for part in exchange.request.path.split("/")[2:]]
        try:
            self._answer(exchange, [part for part in parts if part])
        except Refused as refusal:
            status = 400 if isinstance(refusal, BadInput) else refusal.status
            _fail(exchange, status, refusal.message, refusal.retry_after_s)

    def _answer(self, exchange: Exchange, parts: list[str]) -> None:
        method = exchange.request.method
        match parts:
            case ["models", *named, "infer"] if named:
                version = self._named(named)
                _only(method, "POST")
                self._infer(exchange, version)
            case _:
                said = self._said(parts)
                _only(method, "GET")
                exchange.send(200, _ENCODER.encode(said))

    def _said(self, parts: list[str]) -> object:
        """What a question without a body is answered."""
        match parts:
            case []:
                return {"name": NAME, "version": self._server_version, "extensions": []}
            case ["health", "live"]:
                return {"live": True}
            case ["health", "ready"]:
                if not any(True for _ in self._shelf):
                    raise Refused(503, "no model is loaded", retry_after_s=1.0)
                return {"ready": True}
            case ["models", *named, "ready"] if named:
                version = self._named(named)
                return {"name": version.name, "ready": True}
            case ["models", *named] if named:
                return self._metadata(self._named(named))
        raise Refused(404, "there is no such endpoint")

    def _named(self, parts: list[str]) -> Version:
        match parts:
            case [name]:
                return self._shelf.get(name)
            case [name, "versions", version]:
                return self._shelf.get(name, version)
        raise Refused(404, "there is no such endpoint")

    def _metadata(self, version: Version) -> dict[str, object]:
        return {
            "name": version.name,
            "versions": self._shelf.versions_of(version.name),
            "platform": version.runner.platform,
            "inputs": [_said_of(tensor) for tensor in version.runner.inputs],
            "outputs": [_said_of(tensor) for tensor in version.runner.outputs],
        }

    def _infer(self, exchange: Exchange, version: Version) -> None:
        try:
            asked = _REQUESTS.decode(exchange.request.body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadInput(str(error)) from None
        arrays = _inputs(version, asked.inputs)
        wanted = _wanted(version, asked.outputs)

        def done(answer: Arrays | BaseException) -> None:
            if isinstance(answer, BaseException):
                _fail(exchange, 500, f"{version.name} failed: {answer or type(answer).__name__}")
                return
            outputs = [_output(name, np.asarray(answer[name])) for name in wanted]
            if None in outputs:
                _fail(exchange, 500, f"{version.name} answered what JSON cannot hold: no finite number")
                return
            said = InferenceResponse(version.name, version.version, [one for one in outputs if one], asked.id)
            exchange.send(200, _ENCODER.encode(said))

        exchange.on_gone(version.submit(arrays, done).cancel)


def _inputs(version: Version, sent: list[InputTensor]) -> dict[str, Array]:
    """The inputs of a request as arrays, in the order in which the model declares them."""
    by_name = {one.name: one for one in sent}
    if len(by_name) != len(sent):
        raise BadInput("an input is there twice")
    declared = {one.name: one for one in version.runner.inputs}
    if by_name.keys() != declared.keys():
        raise BadInput(
            f"inputs {', '.join(sorted(by_name)) or 'none'}, where {', '.join(declared)} are taken"
        )
    return {name: _input(one, by_name[name]) for name, one in declared.items()}


def _input(declared: Tensor, sent: InputTensor) -> Array:
    if sent.datatype not in DATATYPES:
        raise BadInput(f"{sent.name}: {sent.datatype} is no datatype; known: {', '.join(DATATYPES)}")
    if sent.datatype != declared.datatype and not declared.is_open:
        raise BadInput(f"{sent.name}: {sent.datatype}, where {declared.datatype} is taken")
    return array_of(declared, sent.data, tuple(sent.shape), sent.datatype)


def _wanted(version: Version, asked: list[RequestedOutput]) -> list[str]:
    known = [one.name for one in version.runner.outputs]
    wanted = [one.name for one in asked] or known
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise BadInput(f"{unknown[0]} is no output of {version.name}, which has {', '.join(known)}")
    return wanted


def _output(name: str, array: Array) -> OutputTensor | None:
    """An output as JSON has it, its data flat; nothing where a value is no finite number."""
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        return None
    return OutputTensor(name, array.shape, datatype_of(array), array.ravel().tolist())


def _said_of(tensor: Tensor) -> dict[str, object]:
    return {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}


def _only(method: str, allowed: str) -> None:
    if method != allowed:
        raise Refused(405, f"{method} is not answered here, only {allowed}")


def _fail(exchange: Exchange, status: int, message: str, wait_s: float = 0.0) -> None:
    exchange.send(status, _ENCODER.encode(InferenceRefusal(message)), retry_after(wait_s))

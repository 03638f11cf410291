"""Models that are no language models, through the gateway: `POST /predict`, and the Open Inference Protocol under /v2.

A call is a call, whatever rows it holds: it counts as one token, and costs what `price.call` says.  Its body goes on as
it came, but for the name of the model; what the model says goes back as it came, its own 500 too, as that says
something of the rows and nothing of the server.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from time import time_ns
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import msgspec

from datahall import __version__
from datahall.scenario.words import Route
from datahall.serve.gateway.model import Model
from datahall.serve.gateway.question import (
    MOST_NAME,
    Body,
    Question,
    hold_to_few_keys,
    priority_of,
    session_of,
)
from datahall.serve.gateway.refusing import Refused
from datahall.serve.http import Exchange, Failure, Request
from datahall.serve.ledger.money import Usage
from datahall.serve.upstreams.routing import Hint
from datahall.serve.upstreams.upstream import INFERENCE

if TYPE_CHECKING:
    from datahall.serve.gateway.gateway import Gateway

ROOT = "/v2"
CALL = Usage(prompt=1)
CALLS: tuple[Route, ...] = ("predict", "infer")

_body = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.Encoder().encode


class Call(Question):
    """A question to such a model."""

    version: str = ""  # of the model, where a client names one

    def for_model(self, model: str, other: Callable[[dict[str, Any]], dict[str, Any]] | None = None) -> bytes:
        """The body, which does not say the model."""
        del model, other
        return _encode(self.body)

    def path(self, model: str) -> str:
        """Where an upstream that has the model under this name is asked."""
        return "/predict" if self.kind == "predict" else f"{path_of(model, self.version)}/infer"


def read_call(kind: Route, request: Request, gateway: Gateway, owner: str) -> Call:
    """Read a call, or refuse it."""
    try:
        hold_to_few_keys(request.body)
        body = _body.decode(request.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(400, f"the body is no JSON object: {error}", "invalid_json") from None
    if kind == "predict":
        model, version = _named(body, request) or _only_one(gateway), ""
    else:
        model, version = named(parts_of(request.path)[:-1])
    first = owner.encode() + b"\0"
    call = Call(
        kind=kind,
        model=model,
        is_stream=False,
        wants_usage=False,
        estimate=CALL,
        hint=Hint(first + model.encode("utf-8", "surrogatepass"), session_of(first, body, request.header)),
        priority=priority_of(request.header("x-priority")),
        body=body,
        num_bytes=len(request.body),
    )
    call.version = version
    return call


def answer(gateway: Gateway, exchange: Exchange) -> Coroutine[Any, Any, None] | None:
    """What is asked under /v2 beside calls: the server, the health of it and of its models, and what those take."""
    request = exchange.request
    parts = parts_of(request.path)
    if request.method not in ("GET", "HEAD"):
        raise Refused(405, f"{request.path[:100]} is asked by GET", "method_not_allowed")
    match parts:
        case []:
            said: object = {"name": "datahall", "version": __version__, "extensions": []}
        case ["health", "live"]:
            said = {"live": True}
        case ["health", "ready"]:
            if gateway.is_draining:
                raise Refused(503, "the gateway ends", "overloaded", retry_after_s=1.0)
            said = {"ready": True}
        case ["models", *rest] if rest and rest[-1] == "ready" and len(rest) > 1:
            model, _ = _known(gateway, request, rest[:-1])
            if not model.pool.has_ready((), gateway.loop.time()):
                raise Refused(503, f"{model.name} is not ready", "overloaded", retry_after_s=1.0)
            said = {"name": model.name, "ready": True}
        case ["models", *rest] if rest:
            return _describe(gateway, exchange, *_known(gateway, request, rest))
        case _:
            raise Refused(404, f"nothing is at {request.path[:100]}", "not_found")
    exchange.send(200, _encode(said))
    return None


def is_call(path: str) -> bool:
    """Whether a path under /v2 asks a model for an answer."""
    return path.startswith(f"{ROOT}/models/") and path.endswith("/infer")


def parts_of(path: str) -> list[str]:
    """A path below /v2, read after it is cut."""
    return [unquote(part) for part in path.removeprefix(ROOT).split("/") if part]


def named(parts: list[str]) -> tuple[str, str]:
    """A model and a version of it."""
    match parts[1:] if parts[:1] == ["models"] else parts:
        case [model] if len(model) <= MOST_NAME:
            return model, ""
        case [model, "versions", version] if len(model) <= MOST_NAME and len(version) <= MOST_NAME:
            return model, version
    raise Refused(404, "there is no such endpoint", "not_found")


def path_of(model: str, version: str) -> str:
    """A model of an upstream.

    >>> path_of("a/b", "2")
    '/v2/models/a%2Fb/versions/2'
    """
    of = f"/versions/{quote(version, safe='')}" if version else ""
    return f"{ROOT}/models/{quote(model, safe='')}{of}"


def _named(body: Body, request: Request) -> str:
    """The model that a call of /predict names, in its body or beside it."""
    raw = body.pop("model", None)
    if raw is None:
        return request.header("x-model")
    try:
        return msgspec.json.decode(raw, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Refused(400, "model names the model that is asked", "invalid_value", param="model") from None


def _only_one(gateway: Gateway) -> str:
    names = [name for name, model in gateway.models.items() if _is_one(model)]
    if len(names) == 1:
        return names[0]
    if not names:
        raise Refused(404, "no model here answers /predict", "model_not_found")
    raise Refused(
        400, 'several models answer: say "model" in the body, or x-model', "missing_value", param="model"
    )


def _is_one(model: Model) -> bool:
    return any(target.upstream.api == INFERENCE for target in model.pool.targets)


def _known(gateway: Gateway, request: Request, parts: list[str]) -> tuple[Model, str]:
    """A model that whoever asks may use."""
    key = gateway.known(request, "infer", time_ns())
    name, version = named(parts)
    model = gateway.models.get(name)
    if model is None or not _is_one(model) or not key.may_use(name):
        raise Refused(404, f"the model {name!r} does not exist", "model_not_found")
    return model, version


async def _describe(gateway: Gateway, exchange: Exchange, model: Model, version: str) -> None:
    """Say what a model takes, as an upstream of it says, under the name that it has here."""
    target = model.pool.free(Hint(b"", b""), (), gateway.loop.time())
    refused = Refused(503, f"no upstream of {model.name} can be asked now", "overloaded", retry_after_s=1.0)
    try:
        if target is None:
            raise refused
        upstream = target.upstream
        try:
            path = upstream.base + path_of(target.model, version)
            response = await upstream.reach.request("GET", path, b"", upstream.headers, upstream.timeouts)
            body = await response.read()
            said = msgspec.json.decode(body, type=dict[str, Any]) if response.status == 200 else None
        except (Failure, msgspec.DecodeError):
            raise refused from None
        finally:
            upstream.told_nothing()
            upstream.end()
        if said is None:
            exchange.send(response.status if response.status == 404 else 502, body)
            return
        exchange.send(200, _encode({**said, "name": model.name}))
    except Refused as found:
        found.send(exchange, gateway.next_id(), "infer")

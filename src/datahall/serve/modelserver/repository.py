"""The repository of the Open Inference Protocol: which models there are, and loading and unloading them.

It stands at an address of its own, for who runs the server.  What may be loaded are the files that were named when the
server began: nothing that is sent here is a model, or a path to one.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any
from urllib.parse import unquote

import msgspec

from datahall.errors import DatahallError
from datahall.serve.http import Exchange
from datahall.serve.modelserver.refused import InferenceRefusal, Refused, UnknownModel
from datahall.serve.modelserver.shelf import Shelf

ROOT = "/v2/repository"
READY, GONE = "READY", "UNAVAILABLE"
Load = Callable[[], Coroutine[Any, Any, None]]

_encode = msgspec.json.Encoder().encode


class _Asked(msgspec.Struct):
    """What may stand in a body."""

    ready: bool = False  # only models that are
    parameters: dict[str, Any] = {}


_REQUESTS = msgspec.json.Decoder(_Asked)


class Repository:
    """Models by name, each with what loads it; what loads one waits for what unloads it."""

    def __init__(self, shelf: Shelf, loads: Mapping[str, Load]) -> None:
        self._shelf = shelf
        self._loads = dict(loads)

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one request when it is done."""
        try:
            exchange.send(200, _encode(await self._said(exchange)))
        except Refused as refusal:
            exchange.send(refusal.status, _encode(InferenceRefusal(refusal.message)))

    async def _said(self, exchange: Exchange) -> object:
        request = exchange.request
        if request.path != ROOT and not request.path.startswith(f"{ROOT}/"):
            raise Refused(404, "there is no such endpoint")
        if request.method != "POST":
            raise Refused(405, f"{request.method} is not answered here, only POST")
        try:
            asked = _REQUESTS.decode(request.body or b"{}")
        except (msgspec.DecodeError, RecursionError) as error:
            raise Refused(400, str(error)) from None
        if asked.parameters:
            raise Refused(400, "a model is loaded from the file that the server was told, with no parameters")
        match [unquote(part) for part in request.path.removeprefix(ROOT).split("/")[1:]]:
            case ["index"]:
                return self._index(only_ready=asked.ready)
            case ["models", name, "load"]:
                await self._load(name)
                return {}
            case ["models", name, "unload"]:
                if name in self._loads:
                    await self._unload(name)
                    return {}
                raise UnknownModel(name)
        raise Refused(404, "there is no such endpoint")

    def _index(self, *, only_ready: bool) -> list[dict[str, str]]:
        """Every version that answers, and every model that does not."""
        found = []
        for name in self._loads:
            versions = self._shelf.versions_of(name)
            found += [{"name": name, "version": one, "state": READY, "reason": ""} for one in versions]
            if not versions and not only_ready:
                found.append({"name": name, "version": "", "state": GONE, "reason": "unloaded"})
        return found

    async def _load(self, name: str) -> None:
        load = self._loads.get(name)
        if load is None:
            raise UnknownModel(name)
        try:
            await load()
        except DatahallError as error:
            raise Refused(400, error.message) from None

    async def _unload(self, name: str) -> None:
        if self._shelf.versions_of(name):
            await self._shelf.unload(name)

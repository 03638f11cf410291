"""A model's file served until somebody says that it is over; SIGHUP swaps it for what is in the file by then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import count

import msgspec

from datahall.serve.ending import Say, reloading, serve_until_told
from datahall.serve.http import Server, serve
from datahall.serve.http.browsers import guarded
from datahall.serve.modelserver.app import ModelServer
from datahall.serve.modelserver.batcher import Batching
from datahall.serve.modelserver.repository import Repository
from datahall.serve.modelserver.runners.open import file_and_function, opened
from datahall.serve.modelserver.shelf import Shelf
from datahall.serve.modelserver.tensor import ANY
from datahall.serve.modelserver.version import Version

GRACE_S = 30.0
MOST_SHOWN = 16  # features in a line to copy


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What is served, where, and how."""

    path: str  # of the model; of a Python function FILE:FUNCTION
    host: str = "127.0.0.1"
    port: int = 8080
    batching: Batching = Batching()
    allow_pickle: tuple[str, ...] = ()  # names of files that may run code when they are loaded
    server_version: str = ""
    admin: tuple[str, int] | None = None  # where models are loaded and unloaded; nothing: nowhere


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """What whoever started it wants to know."""

    url: str
    name: str
    platform: str
    admin_url: str  # nothing where there is none
    example: str  # a body for /predict; nothing where the model does not say how many features it takes


async def run_model(told: Told, when_ready: Callable[[Running], None], say: Say) -> bool:
    """Serve until SIGTERM or SIGINT; whether every request had ended within the grace."""
    file, _ = file_and_function(told.path)
    shelf = Shelf()
    versions = map(str, count(1))

    one_by_one = asyncio.Lock()

    async def load() -> None:
        opening = partial(opened, told.path, told.allow_pickle)
        async with one_by_one:
            await shelf.swap(file.stem, opening, version=next(versions), batching=told.batching)

    await load()
    admin: Server | None = None
    try:
        app = guarded(ModelServer(shelf, file.stem, told.server_version), told.host)
        server = await serve(app, (told.host, told.port))
        if told.admin is not None:
            admin = await serve(guarded(Repository(shelf, {file.stem: load}), told.admin[0]), told.admin)
        running = _running(told, server.port, admin, shelf.get(file.stem))
        with reloading(load, say, "the model"):
            return await serve_until_told(server, GRACE_S, when_ready=lambda: when_ready(running))
    finally:
        if admin is not None:
            await admin.close()
        await shelf.close()


def _running(told: Told, port: int, admin: Server | None, loaded: Version) -> Running:
    inputs = loaded.runner.inputs
    sides = inputs[0].shape
    width = sides[1] if len(sides) == 2 and len(inputs) == 1 else ANY
    return Running(
        url=_url(told.host, port),
        admin_url=_url(told.admin[0], admin.port) if told.admin is not None and admin is not None else "",
        name=loaded.name,
        platform=loaded.runner.platform,
        example=f'{{"features":[{",".join("0" * width)}]}}' if 0 < width <= MOST_SHOWN else "",
    )


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

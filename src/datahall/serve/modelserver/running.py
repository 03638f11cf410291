"""A model's file served until somebody says that it is over."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from datahall.serve.ending import serve_until_told
from datahall.serve.http import serve
from datahall.serve.modelserver.app import ModelServer
from datahall.serve.modelserver.batcher import Batching
from datahall.serve.modelserver.runners.open import file_and_function, opened
from datahall.serve.modelserver.shelf import Shelf
from datahall.serve.modelserver.tensor import ANY

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


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """What whoever started it wants to know."""

    url: str
    name: str
    platform: str
    example: str  # a body for /predict; nothing where the model does not say how many features it takes


async def run_model(told: Told, when_ready: Callable[[Running], None]) -> bool:
    """Serve until SIGTERM or SIGINT; whether every request had ended within the grace."""
    file, _ = file_and_function(told.path)
    shelf = Shelf()
    loaded = await shelf.load(
        file.stem, partial(opened, told.path, told.allow_pickle), batching=told.batching
    )
    try:
        server = await serve(ModelServer(shelf, file.stem, told.server_version), (told.host, told.port))
        host = f"[{told.host}]" if ":" in told.host else told.host
        sides = loaded.runner.inputs[0].shape
        width = sides[1] if len(sides) == 2 and len(loaded.runner.inputs) == 1 else ANY
        running = Running(
            url=f"http://{host}:{server.port}",
            name=file.stem,
            platform=loaded.runner.platform,
            example=f'{{"features":[{",".join("0" * width)}]}}' if 0 < width <= MOST_SHOWN else "",
        )
        return await serve_until_told(server, GRACE_S, when_ready=lambda: when_ready(running))
    finally:
        await shelf.close()

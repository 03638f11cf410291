"""Models of files in the process of who asks them: loaded before it begins, let go when it ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

from datahall import __version__
from datahall.serve.http import Handler
from datahall.serve.modelserver.app import ModelServer
from datahall.serve.modelserver.runners.open import opened
from datahall.serve.modelserver.shelf import Shelf


@asynccontextmanager
async def mounted(files: Mapping[str, str]) -> AsyncIterator[dict[str, Handler]]:
    """What answers for each of them, by the name that it is given."""
    shelf = Shelf()
    try:
        for name, path in files.items():
            await shelf.load(name, partial(opened, path))
        yield {name: ModelServer(shelf, name, __version__) for name in files}
    finally:
        await shelf.close()

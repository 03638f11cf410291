"""Models are loaded and unloaded by who runs the server, from the files that it was told, and at no other address."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.serve.modelserver.models import Held, ask, function, run

from datahall.errors import ScenarioError
from datahall.serve.modelserver.app import ModelServer
from datahall.serve.modelserver.repository import Repository
from datahall.serve.modelserver.shelf import Shelf

ROOT = "/v2/repository"
FEATURES = {"features": [1.0]}


class World:
    """A model server whose model is loaded anew as the next version."""

    def __init__(self) -> None:
        self.shelf = Shelf()
        self.server = ModelServer(self.shelf, "m", "1")
        self.repository = Repository(self.shelf, {"m": self._load})
        self.num_loads = 0
        self.is_broken = False

    async def _load(self) -> None:
        if self.is_broken:
            raise ScenarioError("m.onnx cannot be loaded")
        self.num_loads += 1
        factor = float(self.num_loads)
        await self.shelf.swap("m", function(lambda rows: factor * rows, 1), version=str(self.num_loads))

    async def post(self, path: str, body: object = None) -> tuple[int, Any]:
        return await ask(self.repository, ROOT + path, body, "POST")

    async def predicted(self) -> tuple[int, Any]:
        status, said = await ask(self.server, "/predict", FEATURES)
        return status, said.get("prediction")


def test_a_model_is_loaded_anew_unloaded_and_loaded_again() -> None:
    async def main() -> None:
        world = World()
        assert await world.post("/index") == (
            200, [{"name": "m", "version": "", "state": "UNAVAILABLE", "reason": "unloaded"}],
        )  # fmt: skip
        assert await world.post("/index", {"ready": True}) == (200, [])
        assert await world.post("/models/m/load") == (200, {})
        assert await world.predicted() == (200, [1.0])
        assert await world.post("/models/m/load") == (200, {})
        assert await world.predicted() == (200, [2.0])
        assert (await world.post("/index"))[1] == [
            {"name": "m", "version": "2", "state": "READY", "reason": ""}
        ]
        for _ in range(2):
            assert await world.post("/models/m/unload") == (200, {})
        assert (await world.predicted())[0] == 503
        assert (await ask(world.server, "/v2/models/m/ready"))[0] == 404
        assert await world.post("/models/m/load") == (200, {})
        assert await world.predicted() == (200, [3.0])
        await world.shelf.close()

    run(main)


def test_a_file_that_cannot_be_loaded_changes_nothing() -> None:
    async def main() -> None:
        world = World()
        await world.post("/models/m/load")
        world.is_broken = True
        assert await world.post("/models/m/load") == (400, {"error": "m.onnx cannot be loaded"})
        assert await world.predicted() == (200, [1.0])
        await world.shelf.close()

    run(main)


def test_what_is_queued_is_answered_before_a_model_goes() -> None:
    async def main() -> None:
        world, held = World(), Held(factor=5.0)
        await world.shelf.load("m", function(held, 1))
        asking = asyncio.create_task(world.predicted())
        await held.entered(1)
        going = asyncio.create_task(world.post("/models/m/unload"))
        await asyncio.sleep(0)
        assert not going.done()
        held.door.set()
        assert await asking == (200, [5.0])
        assert await going == (200, {})

    run(main)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/models/other/load", None, 404),
        ("/models/other/unload", None, 404),
        ("/models/..%2fm/load", None, 404),
        ("/models/m/load", {"parameters": {"file:1/model.onnx": "AAAA"}}, 400),
        ("/models/m/load", b"{", 400),
        ("/models/m", None, 404),
        ("/nothing", None, 404),
    ],
)
def test_nothing_that_is_sent_is_a_model(path: str, body: object, status: int) -> None:
    async def main() -> None:
        world = World()
        found, said = await world.post(path, body)
        assert (found, list(said)) == (status, ["error"])
        assert not world.num_loads

    run(main)


def test_it_is_asked_by_post_and_nowhere_else() -> None:
    async def main() -> None:
        world = World()
        assert (await ask(world.repository, f"{ROOT}/index"))[0] == 405
        assert (await ask(world.repository, "/predict", FEATURES))[0] == 404
        assert (await ask(world.repository, "/v2x/index", {}))[0] == 404
        await world.post("/models/m/load")
        for path in ("/models/m/load", "/models/m/unload", "/index"):
            assert (await ask(world.server, ROOT + path, {}))[0] == 404
        assert world.num_loads == 1
        await world.shelf.close()

    run(main)

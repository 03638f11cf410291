"""Versions of a model come and go under load, and no request is lost or answered by two of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.serve.modelserver.models import Held, ask, function, linear, opener, run

from datahall.errors import ScenarioError
from datahall.serve.modelserver.app import ModelServer
from datahall.serve.modelserver.batcher import Batching
from datahall.serve.modelserver.refused import Refused, UnknownModel
from datahall.serve.modelserver.shelf import Shelf


def test_swapping_under_load_loses_no_request_and_mixes_no_versions(tmp_path: Path) -> None:
    files = {str(version): linear(tmp_path, factor=float(version)) for version in range(1, 6)}

    async def main() -> None:
        shelf = Shelf()
        await shelf.load("m", opener(files["1"]), version="1", batching=Batching(most_rows=4))
        server = ModelServer(shelf, "m", "1")
        seen: list[tuple[str, list[float]]] = []
        is_over = False

        async def client(place: int) -> None:
            body = {"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 0, place]}]}
            while not is_over:
                status, said = await ask(server, "/v2/models/m/infer", body)
                assert status == 200, said
                version = said["model_version"]
                expected = [4 * place * float(version), (1 + 5 * place) * float(version)]
                assert said["outputs"][0]["data"] == expected
                seen.append(version)

        clients = [asyncio.create_task(client(place)) for place in range(12)]
        for version in "2345":
            num = len(seen)
            while len(seen) < num + 40:
                await asyncio.sleep(0)
            await shelf.swap("m", opener(files[version]), version=version, batching=Batching(most_rows=4))
            assert shelf.versions_of("m") == [version]
        is_over = True
        await asyncio.gather(*clients)
        assert set(seen) == set("12345")
        await shelf.close()

    run(main)


def test_what_a_version_took_it_answers_though_it_is_being_replaced() -> None:
    old = Held(factor=1.0)

    async def main() -> None:
        shelf = Shelf()
        await shelf.load("m", function(old, 1), version="1", batching=Batching(most_rows=1))
        server = ModelServer(shelf, "m", "1")
        waiting = [asyncio.create_task(ask(server, "/predict", {"features": [one]})) for one in (1, 2)]
        await old.entered(1)
        swapping = asyncio.create_task(shelf.swap("m", function(lambda rows: -rows, 1), version="2"))
        while shelf.versions_of("m") != ["2"]:
            await asyncio.sleep(0.001)
        assert (await ask(server, "/predict", {"features": [3]}))[1]["prediction"] == [-3.0]
        assert not swapping.done()  # the old one still has two
        old.door.set()
        assert [(await one)[1]["prediction"] for one in waiting] == [[1.0], [2.0]]
        await swapping
        await shelf.close()

    run(main)


def test_two_versions_answer_side_by_side_until_one_is_unloaded() -> None:
    async def main() -> None:
        shelf = Shelf()
        await shelf.load("m", function(lambda rows: rows), version="1")
        await shelf.load("m", function(lambda rows: 2 * rows), version="2")
        assert shelf.versions_of("m") == ["1", "2"]
        assert shelf.get("m").version == "2"
        assert shelf.get("m", "1").version == "1"
        await shelf.unload("m", "2")
        assert shelf.get("m").version == "1"
        await shelf.unload("m")
        with pytest.raises(UnknownModel):
            shelf.get("m")
        with pytest.raises(UnknownModel):
            await shelf.unload("m")

    run(main)


def test_a_version_that_cannot_be_loaded_leaves_the_old_one_in_place(tmp_path: Path) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")

    async def main() -> None:
        shelf = Shelf()
        await shelf.load("m", function(lambda rows: rows), version="1")
        with pytest.raises(ScenarioError):
            await shelf.swap("m", opener(broken), version="2")
        assert shelf.versions_of("m") == ["1"]
        await shelf.close()

    run(main)


def test_a_model_is_warm_before_its_name_leads_to_it() -> None:
    sizes = []

    def model(rows: object) -> object:
        sizes.append(len(rows))  # type: ignore[arg-type]
        return rows

    async def main() -> None:
        shelf = Shelf()
        await shelf.load("m", function(model, 3), batching=Batching(most_rows=8))
        assert sizes == [1, 8]
        await shelf.load("wide", function(model), batching=Batching(most_rows=8))  # says no width
        assert sizes == [1, 8]
        await shelf.close()

    run(main)


def test_a_model_that_refuses_zeros_is_loaded_all_the_same() -> None:
    def model(rows: object) -> object:
        if not rows.any():  # type: ignore[attr-defined]
            raise ValueError("zeros")
        return rows

    async def main() -> None:
        shelf = Shelf()
        await shelf.load("m", function(model, 1))
        assert (await ask(ModelServer(shelf, "m", "1"), "/predict", {"features": [1]}))[0] == 200
        await shelf.close()

    run(main)


def test_a_version_that_is_loaded_again_takes_the_place_of_itself() -> None:
    async def main() -> None:
        shelf = Shelf()
        old = await shelf.load("m", function(lambda rows: rows))
        new = await shelf.load("m", function(lambda rows: 2 * rows))
        assert shelf.get("m") is new
        with pytest.raises(Refused, match="unloaded"):
            old.batcher.submit({}, print)
        await shelf.close()

    run(main)

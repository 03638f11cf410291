"""What servers say of themselves is so: every path, every status, and nothing that is drawn from it breaks one."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from tests.serve.drawn import Described, spoiled
from tests.serve.gateway.gateways import gateway, whole
from tests.serve.modelserver.models import linear, opener

from datahall.serve.gateway.described import description as of_gateway
from datahall.serve.http import Handler, Request, answer_of, run
from datahall.serve.modelserver.app import ModelServer
from datahall.serve.modelserver.batcher import Batching
from datahall.serve.modelserver.described import description as of_model_server
from datahall.serve.modelserver.shelf import Shelf

CASES = 2000


def resolved(document: Any, node: Any) -> None:
    if isinstance(node, dict):
        if "$ref" in node:
            name = node["$ref"].removeprefix("#/components/schemas/")
            assert name in document["components"]["schemas"]
        for one in node.values():
            resolved(document, one)
    elif isinstance(node, list):
        for one in node:
            resolved(document, one)


@pytest.mark.parametrize("document", [of_gateway(), of_model_server("1")], ids=["gateway", "model server"])
def test_a_description_is_whole(document: bytes) -> None:
    read = msgspec.json.decode(document)
    resolved(read, read)
    for name in read["components"]["schemas"]:
        assert re.fullmatch(r"[A-Za-z0-9._-]+", name)
    for path, methods in read["paths"].items():
        for said in methods.values():
            named = [one["name"] for one in said.get("parameters", ())]
            assert named == re.findall(r"\{(\w+)\}", path)


async def hammer(
    handler: Handler, described: Described, model: str, secret: str, fitting: Mapping[str, Any]
) -> Counter[int]:
    """Ask thousands of questions that are drawn from the description, half of them with something wrong."""
    random = Random(13)
    operations = [*described.operations()]
    seen: Counter[int] = Counter()
    for _ in range(CASES):
        path, method, said = random.choice(operations)
        body = described.body(said, random)
        if path in fitting and random.random() < 0.6:
            body = fitting[path]
        if isinstance(body, dict) and "model" in body:
            body["model"] = model
        if body is not None and random.random() < 0.5:
            body = spoiled(body, random)
        named = model if random.random() < 0.7 else random.choice(("", "..", "%2e%2e%2f", "é", "x" * 400))
        place = path.replace("{model}", named).replace("{version}", random.choice(("7", "8", "-1")))
        headers = {"authorization": f"Bearer {secret}"} if random.random() < 0.9 else {}
        data = b"" if body is None else json.dumps(body).encode()
        answer = await answer_of(handler, Request(method, place, "", headers, data))
        page = await answer.read()
        seen[answer.status] += 1
        about = (method, place, data[:300], answer.status, page[:300])
        assert answer.status < 500, about
        assert str(answer.status) in said["responses"] or named != model, about
    return seen


def test_nothing_that_is_drawn_from_the_gateways_description_breaks_it() -> None:
    async def work() -> Counter[int]:
        async with gateway(whole) as world, asyncio.timeout(60):
            return await hammer(world.gateway, Described(of_gateway()), "m", world.secret, {})

    seen = run(work())
    assert {200, 400, 401, 404} <= seen.keys()
    assert seen[200] > CASES / 10


def test_nothing_that_is_drawn_from_the_open_inference_protocol_breaks_the_model_server(
    tmp_path: Path,
) -> None:
    tensor = {"name": "x", "shape": [2, 3], "datatype": "FP32", "data": [1, 2, 3, 4, 5, 6]}
    asked = {"id": "1", "inputs": [tensor], "outputs": [{"name": "y"}]}
    fitting = {
        "/predict": {"features": [1.0, 2.0, 3.0]},
        "/v2/models/{model}/infer": asked,
        "/v2/models/{model}/versions/{version}/infer": asked,
    }

    async def work() -> Counter[int]:
        shelf = Shelf()
        await shelf.load("m", opener(linear(tmp_path)), version="7", batching=Batching())
        try:
            async with asyncio.timeout(60):
                server = ModelServer(shelf, "m", "1")
                return await hammer(server, Described(of_model_server("1")), "m", "", fitting)
        finally:
            await shelf.close()

    seen = run(work())
    assert {200, 400, 404, 422} <= seen.keys()
    assert seen[200] > CASES / 4


def test_servers_show_their_descriptions() -> None:
    async def work() -> None:
        async with gateway(whole) as world:
            for handler, document in (
                (world.gateway, of_gateway()),
                (ModelServer(Shelf(), "m", "1"), of_model_server("1")),
            ):
                answer = await answer_of(handler, Request("GET", "/openapi.json"))
                assert (answer.status, await answer.read()) == (200, document)

    run(work())


def test_every_path_of_the_model_server_is_described() -> None:
    described = {(path, method) for path, method, _ in Described(of_model_server("1")).operations()}
    routes = ModelServer(Shelf(), "m", "1").routes
    assert {(path, method) for path, by_method in routes.items() for method in by_method} == {
        (path, method) for path, method in described if not path.startswith("/v2")
    }

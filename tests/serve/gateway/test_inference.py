"""Models that are no language models, behind the gateway: the way of a call is that of any request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from tests.serve.gateway.gateways import PRICE, World, failing, gateway, whole
from tests.serve.http.talking import running, until
from tests.serve.modelserver.models import function

from datahall.serve.gateway.running import Running
from datahall.serve.gateway.speech.inference import CALL
from datahall.serve.http import Exchange, Handler
from datahall.serve.ledger.key import Limits
from datahall.serve.modelserver.app import ModelServer
from datahall.serve.modelserver.shelf import Shelf
from datahall.serve.upstreams.upstream import INFERENCE

COST_NANO_USD = PRICE.cost_nano_usd(CALL)
ROW = {"name": "features", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}


def picky(rows: Any) -> Any:
    """Twice what is sent, of which nothing may be below zero."""
    if (rows < 0).any():
        raise ValueError("below zero")
    return 2 * rows


@asynccontextmanager
async def served(*more: Handler, **fields: Any) -> AsyncIterator[World]:
    """A gateway before a model server, which calls the model otherwise, and before other upstreams like it."""
    shelf = Shelf()
    await shelf.load("m-there", function(picky, 2), version="3")
    async with gateway(ModelServer(shelf, "m-there", "1"), *more, **fields) as world:
        for upstream in world.upstreams:
            upstream.api, upstream.base = INFERENCE, ""
        yield world
    await shelf.close()


async def asked(
    world: World, path: str, method: str = "POST", key: str | None = None, **body: Any
) -> tuple[int, Any]:
    secret = world.secret if key is None else key
    headers = [("authorization", f"Bearer {secret}")] if secret else []
    answer = await world.client.request(method, path, msgspec.json.encode(body) if body else b"", headers)
    return answer.status, msgspec.json.decode(await answer.read())


@running
async def test_predict_answers_as_the_model_server_does_and_is_charged_as_one_call() -> None:
    async with served() as world:
        for named in ({}, {"model": "m"}):
            status, said = await asked(world, "/predict", features=[1, 2], **named)
            assert (status, said["prediction"]) == (200, [2, 4])
        assert b"model" not in world.asked[0].exchanges[-1].request.body
        assert world.spent_nano_usd == 2 * COST_NANO_USD > 0
        assert {(one.route, one.usage, one.result) for one in world.ended} == {("predict", CALL, "answered")}
        status, said = await asked(world, "/predict", features=["x"])
        assert status == 422
        assert said["detail"][0]["loc"] == ["body", "features", 0]
        assert world.spent_nano_usd == 2 * COST_NANO_USD
        assert world.is_quiet


@running
async def test_the_open_inference_protocol_goes_by_the_name_that_a_model_has_here() -> None:
    async with served() as world:
        for path in ("/v2/models/m/infer", "/v2/models/m/versions/3/infer"):
            status, said = await asked(world, path, inputs=[ROW], id="7")
            assert status == 200
            assert said["outputs"][0]["data"] == [2, 4]
            assert said["id"] == "7"
        assert world.asked[0].exchanges[-1].request.path == "/v2/models/m-there/versions/3/infer"
        assert world.spent_nano_usd == 2 * COST_NANO_USD
        status, said = await asked(world, "/v2/models/m/versions/9/infer", inputs=[ROW])
        assert (status, list(said)) == (404, ["error"])
        status, said = await asked(world, "/v2/models/m", "GET")
        assert (status, said["name"], said["versions"]) == (200, "m", ["3"])
        assert (await asked(world, "/v2/models/m/versions/9", "GET"))[0] == 404
        assert await asked(world, "/v2/models/m/ready", "GET") == (200, {"name": "m", "ready": True})
        assert world.is_quiet


@running
async def test_health_needs_no_key_and_models_do() -> None:
    async with served() as world:
        assert (await asked(world, "/v2", "GET", key=""))[1]["name"] == "datahall"
        assert await asked(world, "/v2/health/live", "GET", key="") == (200, {"live": True})
        assert await asked(world, "/v2/health/ready", "GET", key="") == (200, {"ready": True})
        for method, path in (
            ("GET", "/v2/models/m"),
            ("GET", "/v2/models/m/ready"),
            ("POST", "/v2/models/m/infer"),
        ):
            status, said = await asked(world, path, method, key="", inputs=[ROW])
            assert (status, list(said)) == (401, ["error"])
        status, said = await asked(world, "/predict", key="", features=[1, 2])
        assert (status, list(said)) == (401, ["detail"])
        assert not world.asked[0].num


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/v2/models/nobody/infer", 404),
        ("GET", "/v2/models/nobody", 404),
        ("GET", "/v2/models", 404),
        ("GET", "/v2/models/m/infer", 405),
        ("POST", "/v2/models/m", 405),
        ("POST", "/v2/models/m/x/y/infer", 404),
        ("POST", "/v2/models/..%2f..%2frepository/infer", 404),
        ("POST", "/v2/repository/index", 405),
        ("POST", "/v2/repository/models/m/load", 405),
        ("GET", "/v2/repository/index", 404),
        ("GET", "/v2x", 404),
    ],
)
def test_other_paths_are_refused_in_the_protocols_form(method: str, path: str, status: int) -> None:
    @running
    async def test() -> None:
        async with served() as world:
            found, said = await asked(world, path, method, inputs=[ROW])
            assert found == status
            assert list(said) == ["error"]
            assert not world.asked[0].num
            assert world.is_quiet

    test()


@running
async def test_limits_and_budgets_hold_for_calls() -> None:
    async with served(limits=Limits(requests_per_minute=1)) as world:
        assert (await asked(world, "/predict", features=[1, 2]))[0] == 200
        status, said = await asked(world, "/v2/models/m/infer", inputs=[ROW])
        assert (status, list(said)) == (429, ["error"])
    async with served(limits=Limits(budget_nano_usd=2 * COST_NANO_USD)) as world:
        found = [(await asked(world, "/predict", features=[1, 2]))[0] for _ in range(3)]
        assert found == [200, 200, 402]
        assert world.spent_nano_usd == 2 * COST_NANO_USD


@running
async def test_what_a_model_says_of_its_rows_is_passed_on_and_not_asked_again() -> None:
    async with served(whole) as world:
        for _ in range(8):  # more than a breaker stands
            status, said = await asked(world, "/predict", features=[-1, 2])
            assert (status, said) == (500, {"detail": "below zero"}) or said["choices"]
        assert world.asked[0].num + world.asked[1].num == 8
        assert all(upstream.breaker.is_closed for upstream in world.upstreams)


@running
async def test_a_full_queue_is_asked_elsewhere() -> None:
    async with served(failing(503, ("retry-after", "1")), policy="session") as world:
        found = [(await asked(world, "/predict", features=[1, 2], user=str(n)))[0] for n in range(8)]
        assert found == [200] * 8
        assert world.asked[0].num == 8


@running
async def test_who_leaves_is_not_answered_and_not_charged() -> None:
    async def never(exchange: Exchange) -> None:
        await asyncio.sleep(60)
        del exchange

    async with gateway(never) as world:
        (upstream,) = world.upstreams
        upstream.api, upstream.base = INFERENCE, ""
        asking = asyncio.ensure_future(asked(world, "/predict", features=[1, 2]))
        await until(lambda: world.asked[0].num == 1)
        asking.cancel()
        await until(lambda: world.asked[0].num_gone == 1 and world.is_quiet)
        assert world.spent_nano_usd == 0


@running
async def test_an_upstream_is_asked_only_what_it_speaks() -> None:
    async with served() as world:
        status, said = await world.say()
        assert (status, said["error"]["code"]) == (400, "not_offered")
        assert not world.asked[0].num
    async with gateway(whole, whole) as world:
        assert (await asked(world, "/predict", features=[1, 2]))[0] == 404
        assert (await asked(world, "/v2/models/m/infer", inputs=[ROW]))[0] == 400
        assert (await asked(world, "/v2/models/m", "GET"))[0] == 404
        assert not world.asked[0].num


def test_what_is_said_to_ask_with_can_be_answered() -> None:
    said = Running(url="http://h", admin_url="", models=("fraud", "m"), secret="", has_auth=True)
    assert said.question == ("/v2/models/fraud", "")
    path, body = msgspec.structs.replace(said, chats="m").question
    assert path == "/v1/chat/completions"
    assert msgspec.json.decode(body)["model"] == "m"

"""Who runs a gateway makes keys, limits customers, reads what was used, drains upstreams and changes the file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random
from time import time_ns
from typing import Any

import msgspec
import pytest
from tests.serve.drawn import Described, spoiled
from tests.serve.gateway.gateways import ASKED, TOLD, Asked, stream, whole
from tests.serve.http.talking import running, until

from datahall.errors import ServingError
from datahall.serve.cache.exact import Bounds
from datahall.serve.config.settings import (
    ModelSettings,
    ServerSettings,
    Settings,
    TargetSettings,
    UpstreamSettings,
)
from datahall.serve.gateway.admin.admin import Admin
from datahall.serve.gateway.admin.described import description
from datahall.serve.gateway.admin.fleet import Fleet
from datahall.serve.gateway.gateway import Gateway
from datahall.serve.gateway.keeping import Answers
from datahall.serve.gateway.running import Anew, _prices, _reload
from datahall.serve.http import Exchange, Request, answer_of, serve
from datahall.serve.http.browsers import guarded
from datahall.serve.ledger.desk import desk
from datahall.serve.ledger.folder import Folder
from datahall.serve.ledger.key import Limits
from datahall.serve.ledger.ledger import Ledger
from datahall.serve.ledger.money import Price

SECRET = "of-the-admin"
PRICE = Price(input_nano_usd=10**9, output_nano_usd=2 * 10**9)


class World:
    """A gateway with one upstream and one model, its admin, and the file as it is by now."""

    def __init__(self, path: Path, asked: Asked, port: int) -> None:
        self.asked = asked
        self.settings = Settings(
            server=ServerSettings(state=str(path)),
            upstreams=(UpstreamSettings(name="u", url=f"http://127.0.0.1:{port}/v1", most=1),),
            models=(
                ModelSettings(name="m", targets=(TargetSettings(upstream="u", model="there"),), price=PRICE),
            ),
        )
        self.ledger = Ledger(Folder(path), _prices(self.settings), time_ns())
        self.fleet = Fleet(self.settings, Random(1), {})
        self.gateway = Gateway(self.ledger, self.fleet.models, Random(1), answers=Answers(Bounds()))
        reload = partial(_reload, self.gateway, self.fleet, Folder(path), Anew(lambda: self.settings, print))
        admin = Admin(self.gateway, self.fleet, SECRET, partial(desk, str(path)), reload)
        self.admin = guarded(admin, "127.0.0.1")

    async def say(
        self, method: str, path: str, body: Any = None, secret: str = SECRET, **headers: str
    ) -> tuple[int, Any]:
        said = {"authorization": f"Bearer {secret}"} if secret else {}
        path, _, query = path.partition("?")
        data = b"" if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body)
        answer = await answer_of(self.admin, Request(method, path, query, {**said, **headers}, data))
        return answer.status, msgspec.json.decode(await answer.read())

    async def key(self, **terms: Any) -> str:
        status, said = await self.say("POST", "/keys", {"name": "k", **terms})
        assert status == 200, said
        return str(said["key"])

    async def ask(self, secret: str, **fields: Any) -> tuple[int, bytes]:
        body = msgspec.json.encode({**ASKED, **fields})
        said = {"authorization": f"Bearer {secret}"}
        answer = await answer_of(self.gateway, Request("POST", "/v1/chat/completions", "", said, body))
        return answer.status, await answer.read()

    def change(self, **fields: Any) -> None:
        self.settings = msgspec.structs.replace(self.settings, **fields)


@asynccontextmanager
async def world(path: Path, handler: Any = whole) -> AsyncIterator[World]:
    asked = Asked(handler)
    server = await serve(asked)
    found = World(path, asked, server.port)
    try:
        yield found
    finally:
        found.fleet.close()
        await server.close()
        found.ledger.close(time_ns())


@running
async def test_a_key_is_made_used_limited_renewed_and_ended(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        status, made = await here.say(
            "POST", "/keys",
            {"name": "a", "customer": "acme", "models": ["m*"], "rpm": 2, "tpm": "1k", "budget": "5USD/day",
             "expires": "1d"},
        )  # fmt: skip
        assert status == 200
        assert (made["name"], made["customer"], made["models"], made["state"]) == (
            "a",
            "acme",
            ["m*"],
            "active",
        )
        assert made["limits"] == {"rpm": 2, "tpm": 1000, "parallel": None, "budget_usd": 5.0, "over": "day"}
        assert (await here.ask(made["key"]))[0] == 200
        assert (await here.say("POST", "/keys/a/limits", {"rpm": 1}))[1]["limits"]["tpm"] == 1000
        assert (await here.ask(made["key"], temperature=1))[0] == 429
        assert (await here.say("POST", "/keys/a/limits", {"rpm": 0}))[0] == 200
        _, renewed = await here.say("POST", "/keys/a/rotate")
        assert (await here.ask(made["key"]))[0] == 401
        assert (await here.ask(renewed["key"]))[0] == 200
        here.ledger.commit(time_ns())
        _, (listed,) = await here.say("GET", "/keys")
        assert (listed["spent_usd"], listed["key"]) == (13e-6, None)
        assert (await here.say("POST", "/keys/a/revoke"))[1]["state"] == "revoked"
        assert (await here.ask(renewed["key"]))[0] == 401
        assert (await here.say("POST", "/keys/a/rotate"))[0] == 400


@running
async def test_customers_are_limited_and_bills_are_by_whom_and_month(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        one, two = await here.key(customer="acme"), await here.key(name="l", customer="acme")
        status, said = await here.say("POST", "/customers/acme/limits", {"rpm": 2, "budget": "1USD"})
        assert (status, said["num_keys"], said["limits"]["over"]) == (200, 2, "total")
        assert [(await here.ask(secret))[0] for secret in (one, two, one)] == [200, 200, 429]
        here.ledger.commit(time_ns())
        assert (await here.say("GET", "/customers"))[1][0]["spent_usd"] == 13e-6
        for by, names in (("key", ["k", "l"]), ("customer", ["acme"]), ("model", ["m"])):
            status, said = await here.say("GET", f"/usage?by={by}")
            assert (status, [line["name"] for line in said["lines"]]) == (200, names)
            assert sum(line["charged_usd"] for line in said["lines"]) == 13e-6
        assert (await here.say("GET", "/usage?by=key&month=2026-01"))[1]["lines"] == []
        for wrong in ("by=colour", "month=13", "year=2026"):
            assert (await here.say("GET", f"/usage?{wrong}"))[0] == 400


@running
async def test_nobody_is_let_in_without_the_admins_key(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        client = await here.key()
        for secret in ("", client, SECRET[:-1], SECRET + "x", "é"):
            for method, path in (
                ("GET", "/keys"),
                ("POST", "/keys"),
                ("POST", "/reload"),
                ("GET", "/nothing"),
            ):
                assert (await here.say(method, path, {}, secret=secret))[0] == 401
        for headers in ({"host": "evil.example"}, {"origin": "http://evil.example"}, {"origin": "null"}):
            status, said = await here.say("GET", "/keys", None, **headers)
            assert (status, said["error"]["code"]) == (403, "not_permitted")
        assert (await here.say("GET", "/keys", None, host="localhost:8090"))[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "says"),
    [
        ("POST", "/keys", {}, 400, '"name" is missing'),
        ("POST", "/keys", {"name": "a b", "rpm": -1}, 400, '"rpm"'),
        ("POST", "/keys", {"name": "x", "colour": 1}, 400, "colour"),
        ("POST", "/keys", {"name": "k"}, 400, 'there is a key called "k"'),
        ("POST", "/keys", b"[]", 400, "no JSON object"),
        ("POST", "/keys", b"{", 400, "no JSON object"),
        ("POST", "/keys/other/limits", {"rpm": 1}, 404, '"other" is not a key'),
        ("POST", "/keys/k/limits", {"budget": "much"}, 400, "is no budget"),
        ("POST", "/customers/a%20b/limits", {"rpm": 1}, 400, "is no name of a key"),
        ("POST", "/customers/acme/limits", {"customer": "b", "models": []}, 400, "models"),
        ("POST", "/keys/..%2Fk/revoke", None, 404, "is not a key"),
        ("POST", "/upstreams/v/drain", None, 404, '"v" is not an upstream'),
        ("DELETE", "/keys", None, 405, "DELETE"),
        ("GET", "/", None, 404, "nothing is at"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_and_says_why(
    tmp_path: Path, method: str, path: str, body: Any, status: int, says: str
) -> None:
    @running
    async def work() -> None:
        async with world(tmp_path) as here:
            await here.key()
            found, said = await here.say(method, path, body)
            assert found == status
            assert says in said["error"]["message"]

    work()


@running
async def test_an_upstream_is_drained_and_enabled_again(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def slow(exchange: Exchange) -> None:
        await go_on.wait()
        whole(exchange)

    async with world(tmp_path, slow) as here:
        secret = await here.key()
        begun = asyncio.ensure_future(here.ask(secret))
        await until(lambda: here.asked.num == 1)
        waiting = asyncio.ensure_future(here.ask(secret, temperature=1))
        await until(lambda: here.fleet.models[0].pool.num_waiting == 1)
        _, said = await here.say("POST", "/upstreams/u/drain")
        assert (said["is_drained"], said["is_ready"], said["num_open"], said["models"]) == (
            True,
            False,
            1,
            ["m"],
        )
        assert (await here.ask(secret, temperature=2))[0] == 503
        go_on.set()
        assert (await begun)[0] == 200
        assert here.asked.num == 1
        assert (await here.say("POST", "/upstreams/u/enable"))[1]["is_ready"]
        assert (await waiting)[0] == 200
        assert (await here.say("GET", "/upstreams"))[1][0]["num_open"] == 0


@running
async def test_a_file_read_anew_drops_no_request_and_charges_each_as_it_was_let_in(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def slow(exchange: Exchange) -> None:
        await go_on.wait()
        await stream(exchange)

    other = Asked(whole)
    server = await serve(other)
    async with world(tmp_path, slow) as here:
        secret = await here.key(customer="acme")
        begun = asyncio.ensure_future(here.ask(secret, stream=True))
        await until(lambda: here.asked.num == 1)
        in_line = asyncio.ensure_future(here.ask(secret, temperature=1, stream=True))
        await until(lambda: here.fleet.models[0].pool.num_waiting == 1)
        (upstream,) = here.fleet.upstreams
        dear = Price(input_nano_usd=10**10, output_nano_usd=10**10)
        target = TargetSettings(upstream="v", model="elsewhere")
        here.change(
            upstreams=(UpstreamSettings(name="v", url=f"http://127.0.0.1:{server.port}/v1"),),
            models=(ModelSettings(name="n", targets=(target,), price=dear),),
            customers={"acme": Limits(requests_per_minute=3)},
        )
        status, said = await here.say("POST", "/reload")
        assert (status, said) == (200, {"upstreams": ["u", "v"], "models": ["m", "n"], "customers": ["acme"]})
        assert (await here.ask(secret))[0] == 404
        assert (await here.ask(secret, model="n"))[0] == 200
        assert other.bodies[0]["model"] == "elsewhere"
        go_on.set()
        assert [(await one)[0] for one in (begun, in_line)] == [200, 200]
        await until(lambda: here.ledger.num_open == 0 and not upstream.num_open)
        here.ledger.commit(time_ns())
        lines = (await here.say("GET", "/usage?by=model"))[1]["lines"]
        cost = {line["name"]: line["charged_usd"] for line in lines}
        tokens = TOLD["prompt_tokens"] + TOLD["completion_tokens"]
        assert cost["n"] == pytest.approx(tokens * 10_000 / 1e9)
        assert cost["m"] == pytest.approx(2 * 13e-6)
        assert (await here.say("GET", "/customers"))[1][0]["limits"]["rpm"] == 3
    await server.close()


@running
async def test_what_a_file_says_as_before_stays_as_it_is(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        secret = await here.key()
        assert (await here.ask(secret))[0] == 200
        before = here.fleet.models[0], here.fleet.upstreams[0]
        before[1].drain()
        assert await here.say("POST", "/reload") == (200, {"upstreams": [], "models": [], "customers": []})
        assert (here.fleet.models[0], here.fleet.upstreams[0]) == before
        (model,) = here.settings.models
        here.change(models=(msgspec.structs.replace(model, num_retries=0),))
        assert (await here.say("POST", "/reload"))[1]["models"] == ["m"]
        assert here.fleet.upstreams[0] is before[1]
        assert before[1].is_drained
        assert before[1].on_room == [here.fleet.models[0].pool._give_room]


@running
async def test_a_secret_that_was_renewed_is_used_from_then_on(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("first")
    async with world(tmp_path / "state") as here:
        (upstream,) = here.settings.upstreams
        here.change(upstreams=(msgspec.structs.replace(upstream, key=f"file:{tmp_path / 'secret'}"),))
        await here.say("POST", "/reload")
        secret = await here.key()
        assert (await here.ask(secret))[0] == 200
        (tmp_path / "secret").write_text("second")
        assert (await here.say("POST", "/reload"))[1]["upstreams"] == ["u"]
        assert (await here.ask(secret, temperature=1))[0] == 200
        said = [one.request.header("authorization") for one in here.asked.exchanges]
        assert said == ["Bearer first", "Bearer second"]


@running
async def test_a_reading_that_cannot_be_changes_nothing(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        secret = await here.key()
        before = here.settings
        (upstream,) = before.upstreams
        for wrong, says in (
            ({"server": ServerSettings(port=1)}, "[server]"),
            ({"upstreams": (UpstreamSettings(name="u", file="m.onnx"),)}, "models of files"),
            ({"upstreams": (msgspec.structs.replace(upstream, key="env:NOT_SET_HERE"),)}, "NOT_SET_HERE"),
        ):
            here.settings = msgspec.structs.replace(before, **wrong)
            status, said = await here.say("POST", "/reload")
            assert (status, says in said["error"]["message"]) == (400, True)
            assert (await here.ask(secret))[0] == 200


@running
async def test_without_a_file_there_is_nothing_to_read_anew(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        with pytest.raises(ServingError, match="no file to read anew"):
            await _reload(here.gateway, here.fleet, Folder(tmp_path), None)


def test_nothing_that_is_drawn_from_its_description_breaks_it(tmp_path: Path) -> None:
    @running
    async def work() -> None:
        random, described = Random(13), Described(description())
        seen = set()
        async with world(tmp_path) as here, asyncio.timeout(60):
            await here.key()
            for _ in range(200):
                path, method, said = random.choice([*described.operations()])
                body = described.body(said, random)
                if body is not None and random.random() < 0.5:
                    body = spoiled(body, random)
                place = path.replace("{name}", random.choice(("k", "u", "é", "..", "x" * 300)))
                status, told = await here.say(method, place, body)
                seen.add(status)
                assert status < 500, (method, place, body, told)
                assert str(status) in said["responses"], (method, place, body, status)
        assert {200, 400, 404} <= seen

    work()

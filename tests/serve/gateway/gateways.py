"""A gateway before upstreams that do as a test says, and a client that asks it over a socket."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from time import time_ns
from typing import Any

import msgspec

from datahall.serve.cache.exact import Bounds
from datahall.serve.gateway.gateway import Gateway
from datahall.serve.gateway.keeping import Answers
from datahall.serve.gateway.model import Model
from datahall.serve.http import Client, Exchange, Origin, Response, Server, Timeouts, serve
from datahall.serve.http import Limits as HttpLimits
from datahall.serve.ledger.folder import Folder
from datahall.serve.ledger.key import UNLIMITED, Key, Limits
from datahall.serve.ledger.keys import create
from datahall.serve.ledger.ledger import Ledger
from datahall.serve.ledger.money import Price
from datahall.serve.telemetry.told import Told
from datahall.serve.upstreams.pool import Pool
from datahall.serve.upstreams.routing import RULES, Target
from datahall.serve.upstreams.upstream import Upstream

PRICE = Price(input_nano_usd=1_000_000_000, output_nano_usd=2_000_000_000)
TOLD = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
ASKED = {"model": "m", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 20}
DONE = b"data: [DONE]\n\n"

Handler = Callable[[Exchange], Any]


def whole(exchange: Exchange) -> None:
    """Answer as an engine does."""
    answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}}], "usage": TOLD}
    exchange.send(200, msgspec.json.encode(answer))


def piece(**fields: object) -> bytes:
    return b"data: " + msgspec.json.encode(fields) + b"\n\n"


def word(text: str, finish: str | None = None) -> bytes:
    return piece(
        id="c", model="m", choices=[{"index": 0, "delta": {"content": text}, "finish_reason": finish}]
    )


STREAM = (word("one"), word("two"), word("three", "stop"))
LAST = piece(choices=[], usage=TOLD)


async def stream(exchange: Exchange) -> None:
    """Answer in pieces, with what was taken at the end."""
    exchange.start(200)
    for one in (*STREAM, LAST, DONE):
        exchange.write(one)
        await asyncio.sleep(0)
    exchange.end()


def failing(status: int, *headers: tuple[str, str]) -> Handler:
    return lambda exchange: exchange.send(status, b'{"error":{"message":"no"}}', headers)


class Asked:
    """What one upstream was asked."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.exchanges: list[Exchange] = []
        self.num_gone = 0

    def __call__(self, exchange: Exchange) -> Any:
        self.exchanges.append(exchange)
        exchange.on_gone(self._leave)
        return self.handler(exchange)

    def _leave(self) -> None:
        self.num_gone += 1

    @property
    def num(self) -> int:
        return len(self.exchanges)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [msgspec.json.decode(one.request.body) for one in self.exchanges]


class World:
    """A gateway that runs, its upstreams, its key, and what it has said of requests that ended."""

    def __init__(
        self, gateway: Gateway, server: Server, secret: str, key: Key, asked: Sequence[Asked]
    ) -> None:
        self.gateway = gateway
        self.server = server
        self.secret = secret
        self.key = key
        self.asked = asked
        self.ended: list[Told] = []
        self.client = Client(Origin("127.0.0.1", server.port))

    async def ask(
        self, path: str = "/v1/chat/completions", secret: str | None = None, headers: Any = (), **fields: Any
    ) -> Response:
        key = self.secret if secret is None else secret
        body = msgspec.json.encode({**ASKED, **fields})
        said = [*headers, *([("authorization", f"Bearer {key}")] if key else [])]
        return await self.client.request("POST", path, body, said)

    async def say(self, **asked: Any) -> tuple[int, Any]:
        answer = await self.ask(**asked)
        return answer.status, msgspec.json.decode(await answer.read())

    @property
    def upstreams(self) -> list[Upstream]:
        return [target.upstream for model in self.gateway.models.values() for target in model.pool.targets]

    @property
    def spent_nano_usd(self) -> int:
        return self.gateway.ledger.standing(self.key, time_ns()).spent_nano_usd

    @property
    def is_quiet(self) -> bool:
        """Nothing is open anywhere, and nothing is held."""
        standing = self.gateway.ledger.standing(self.key, time_ns())
        return (
            not any(upstream.num_open for upstream in self.upstreams)
            and self.gateway.ledger.num_open == standing.num_open == standing.reserved_nano_usd == 0
        )


@asynccontextmanager
async def gateway(
    *handlers: Handler,
    limits: Limits = UNLIMITED,
    policy: str = "least-outstanding",
    most: int = 0,
    waiting: int = 100,
    timeouts: Timeouts | None = None,
    others: dict[str, Handler] | None = None,
    anybody: bool = False,
    bounds: Bounds | None = None,
    http: HttpLimits | None = None,
    **of_model: Any,
) -> AsyncIterator[World]:
    """A gateway with one model `m` of one upstream a handler, and others of one each."""
    asked = [Asked(handler) for handler in handlers]
    spare = {name: Asked(handler) for name, handler in (others or {}).items()}
    servers = [await serve(one) for one in (*asked, *spare.values())]
    clients = [Client(Origin("127.0.0.1", server.port)) for server in servers]
    upstreams = [
        Upstream(f"u{place}", client, Random(place), most=most, timeouts=timeouts)
        for place, client in enumerate(clients)
    ]
    random = Random(1)

    def model(name: str, targets: Sequence[Upstream], **fields: Any) -> Model:
        found = [Target(upstream, f"{name}-there") for upstream in targets]
        return Model(name=name, pool=Pool(name, found, RULES[policy], waiting), **fields)

    models = [model("m", upstreams[: len(asked)], **of_model)]
    models += [model(name, [upstreams[len(asked) + place]]) for place, name in enumerate(spare)]
    with tempfile.TemporaryDirectory() as path:
        folder = Folder(Path(path))
        store = folder.store()
        key, secret = create(
            store, folder.pepper(store), name="k", customer="acme", limits=limits, now_ns=time_ns()
        )
        store.close()
        ledger = Ledger(folder, {one.name: PRICE for one in models}, time_ns())
        front = Gateway(
            ledger,
            models,
            random,
            anybody=key if anybody else None,
            answers=Answers(bounds) if bounds else None,
        )
        server = await serve(front, limits=http, door=front.lets_in)
        world = World(front, server, secret, key, [*asked, *spare.values()])
        front.tell = world.ended.append
        try:
            yield world
        finally:
            world.client.close()
            for client in clients:
                client.close()
            for one in (server, *servers):
                await one.close()
            ledger.close(time_ns())

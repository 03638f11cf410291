"""Whatever is sent, the gateway answers with an error or nothing, holds nothing afterwards, and goes on."""

from __future__ import annotations

import asyncio
import random

from tests.serve.gateway.gateways import World, gateway, whole
from tests.serve.http.talking import running, until

NUM_REQUESTS = 1500
MODELS = (
    "m",
    "../../etc/passwd",
    "m\0",
    "M",
    "",
    "m" * 5000,
    "\ud7ff",
    "%2e%2e/m",
    "{{7*7}}",
    "';drop table keys;--",
)
VALUES = (
    "null", "true", "-1", "0", "1e400", "99999999999999999999", '"\\ud800"', "[]", "{}", "[[[[[[", '"x"', "NaN", "",
    '{"a":{"a":{"a":{}}}}', "[1,2,", '"\xff"',
)  # fmt: skip
KEYS = (
    "model",
    "messages",
    "stream",
    "max_tokens",
    "n",
    "stream_options",
    "temperature",
    "tools",
    "user",
    "x" * 300,
)
PATHS = (
    "/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/messages", "/v1/models", "/v1/models/m",
    "/v1/models/../../x", "/health", "/metrics", "/", "//", "/v1", "*", "/%00", "/v1/chat/completions/",
)  # fmt: skip
HEADERS = (
    ("x-request-timeout", "-5"), ("x-request-timeout", "nan"), ("x-priority", "high"), ("traceparent", "00-0-0-0"),
    ("cache-control", "no-store"), ("expect", "100-continue"), ("x-session-id", "s" * 900), ("host", "evil"),
    ("content-encoding", "gzip"), ("transfer-encoding", "chunked"), ("content-length", "5"), ("upgrade", "h2c"),
)  # fmt: skip


def body(dice: random.Random) -> bytes:
    kind = dice.randrange(4)
    if kind == 0:
        return dice.randbytes(dice.randrange(200))
    pairs = [f'"{dice.choice(KEYS)}":{dice.choice(VALUES)}' for _ in range(dice.randrange(6))]
    if kind > 1:
        pairs += [f'"model":"{dice.choice(MODELS)}"', '"messages":[{"role":"user","content":"x"}]']
        dice.shuffle(pairs)
    text = ("{" + ",".join(pairs) + "}").encode("utf-8", "surrogatepass")
    return text[: dice.randrange(len(text) + 1)] if dice.random() < 0.2 else text


def request(dice: random.Random, secret: str) -> bytes:
    """A request that is right in most of its parts, and wrong in some."""
    method = dice.choice(("POST", "POST", "POST", "GET", "PUT", "HEAD", "OPTIONS", "BREW"))
    said = body(dice)
    lines = [f"{method} {dice.choice(PATHS)} HTTP/1.1", "Host: a"]
    if dice.random() < 0.8:
        lines.append(
            f"Authorization: Bearer {secret if dice.random() < 0.9 else 'dh-' + 'x' * dice.randrange(99)}"
        )
    lines += [f"{name}: {value}" for name, value in dice.sample(HEADERS, dice.randrange(3))]
    lines.append(
        f"Content-Length: {len(said) if dice.random() < 0.95 else len(said) + dice.randrange(-3, 4)}"
    )
    ending = "\r\n" if dice.random() < 0.95 else "\n"
    return ending.join(lines).encode() + 2 * ending.encode() + said


async def tried(world: World, dice: random.Random) -> bytes:
    """What is answered to some requests on one connection, of which the client may leave at any moment."""
    reader, writer = await asyncio.open_connection("127.0.0.1", world.server.port)
    for _ in range(dice.randrange(1, 4)):
        data = request(dice, world.secret)
        writer.write(data[: dice.randrange(len(data) + 1)] if dice.random() < 0.1 else data)
    if dice.random() < 0.7:
        writer.write(b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    answer = b""
    try:
        async with asyncio.timeout(0.2):
            answer = await reader.read(1 << 20)
    except (TimeoutError, ConnectionError):
        pass
    finally:
        writer.close()
    return answer


@running
async def test_hostile_requests_leave_the_gateway_as_it_was() -> None:
    dice = random.Random(20261119)
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, what: failures.append(what.get("exception") or what)
    )
    async with gateway(whole) as world:
        for _ in range(NUM_REQUESTS // 50):
            answers = await asyncio.gather(*(tried(world, random.Random(dice.random())) for _ in range(25)))
            assert not [answer for answer in answers if b"HTTP/1.1 500" in answer]
        assert not failures
        await until(lambda: world.server.num_connections == 0)
        await until(lambda: world.is_quiet)
        assert (await world.say())[0] == 200

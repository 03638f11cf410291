"""The embedded model as a server of its own."""

from __future__ import annotations

import asyncio
import threading

import msgspec
import pytest
from tests.serve.modelserver.llm.scripted import Scripted
from tests.serve.modelserver.models import ask, run

from datahall.serve.http import Request, answer_of
from datahall.serve.modelserver.llm.app import ChatServer, embedded
from datahall.serve.modelserver.llm.chat import Chat
from datahall.serve.modelserver.llm.weights import NAME

HELLO = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def test_it_is_live_at_once_and_ready_when_the_model_is_there() -> None:
    door = threading.Event()

    def slowly() -> Scripted:
        door.wait(5)
        return Scripted()

    async def main() -> None:
        server = ChatServer(Chat("m"))
        loading = asyncio.create_task(server.chat.load(slowly))
        assert await ask(server, "/health/live") == (200, {"status": "live"})
        assert (await ask(server, "/health/ready"))[0] == 503
        assert (await ask(server, "/health"))[1] == {"status": "loading", "model_loaded": False}
        assert (await ask(server, "/v1/chat/completions", HELLO))[0] == 503
        door.set()
        await loading
        assert (await ask(server, "/health/ready"))[0] == 200
        assert (await ask(server, "/health"))[1] == {"status": "healthy", "model_loaded": True}
        assert (await ask(server, "/v1/chat/completions", HELLO))[0] == 200
        assert (await ask(server, "/v1/models"))[1]["data"][0]["id"] == "m"
        text = await (await answer_of(server, Request("GET", "/metrics"))).read()
        assert b'datahall_llm_requests_running{model="m"} 0' in text
        await server.chat.close()

    run(main)


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [("/v1/chat/completions", "GET", 405), ("/v1/models", "DELETE", 405), ("/v1/nothing", "GET", 404)],
)
def test_other_paths_and_methods(path: str, method: str, status: int) -> None:
    async def main() -> None:
        response = await answer_of(ChatServer(Chat("m")), Request(method, path))
        assert response.status == status
        assert msgspec.json.decode(await response.read())["detail"]

    run(main)


def test_the_embedded_one_has_the_name_of_its_weights() -> None:
    async def main() -> None:
        server, _ = embedded(lambda _: None)
        assert server.chat.name == NAME

    run(main)

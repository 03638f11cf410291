"""The worst bodies: none is a mistake of the server, and after all of them it answers as before."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.serve.modelserver.llm.scripted import Scripted
from tests.serve.modelserver.models import ask, linear, opener

from datahall.serve.http.exchange import Handler
from datahall.serve.modelserver.app import ModelServer
from datahall.serve.modelserver.llm.app import ChatServer
from datahall.serve.modelserver.llm.chat import Chat
from datahall.serve.modelserver.shelf import Shelf

WORDS = st.sampled_from(
    ["features", "inputs", "outputs", "name", "shape", "datatype", "data", "x", "y", "FP32", "BYTES", "INT64"]
) | st.text(max_size=5)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
TENSORS = st.fixed_dictionaries(
    {
        "name": st.just("x") | WORDS,
        "shape": st.lists(st.integers(-1, 4) | st.integers(0, 2**60), max_size=3) | VALUES,
        "datatype": st.just("FP32") | WORDS,
        "data": st.lists(st.floats(-9, 9), max_size=9) | VALUES,
    }
)
NEAR = (
    st.fixed_dictionaries({"features": st.lists(st.floats(-9, 9), min_size=2, max_size=4) | VALUES})
    | st.fixed_dictionaries(
        {"inputs": st.lists(TENSORS, max_size=2)}, optional={"outputs": VALUES, "id": VALUES}
    )
    | st.fixed_dictionaries(
        {"model": st.just("m"), "messages": VALUES}, optional={"stop": VALUES, "tools": VALUES}
    )
)
BODIES = st.binary(max_size=40) | (NEAR | VALUES).map(msgspec.json.encode)
PATHS = st.sampled_from(
    [
        "/predict",
        "/health",
        "/metrics",
        "/v2",
        "/v2/models/m/infer",
        "/v2/models/m",
        "/v2/models/m/versions/1/infer",
    ]
) | st.lists(
    st.sampled_from(["v2", "models", "m", "..", "%2e%2e", "%00", "infer", "ready", ""]), max_size=6
).map(lambda parts: "/" + "/".join(parts))


@given(
    asked=st.lists(st.tuples(PATHS, BODIES, st.sampled_from(["GET", "POST", "PUT"])), min_size=1, max_size=30)
)
@settings(max_examples=40, deadline=None)
def test_no_request_is_a_mistake_of_the_server(
    asked: list[tuple[str, bytes, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = linear(tmp_path_factory.mktemp("models"))

    async def main() -> None:
        shelf = Shelf()
        await shelf.load("m", opener(file))
        models, chat = ModelServer(shelf, "m", "1"), ChatServer(Chat("m"))
        await chat.chat.load(Scripted)
        for path, body, method in asked:
            for server in (models, chat):
                assert await status(server, path, body, method) < 500
            assert await status(chat, "/v1/chat/completions", body, "POST") < 500
        assert (await ask(models, "/predict", {"features": [0, 1, 0]}))[1]["prediction"] == [2.0, 3.0]
        await chat.chat.close()
        await shelf.close()

    async def status(server: Handler, path: str, body: bytes, method: str) -> int:
        if path == "/metrics" and method == "GET":
            return 200  # no JSON, read elsewhere
        return (await ask(server, path, body, method))[0]

    asyncio.run(asyncio.wait_for(main(), 20))

"""Models that tests serve: a linear one in ONNX, functions, and what asks them as a client does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
from onnx import TensorProto, helper

from datahall.serve.http import Request, answer_of
from datahall.serve.http.exchange import Handler
from datahall.serve.modelserver.runners.function import Function
from datahall.serve.modelserver.runners.open import opened
from datahall.serve.modelserver.runners.runner import Runner

WEIGHTS = np.arange(6, dtype=np.float32).reshape(3, 2)


def linear(
    folder: Path, rows: str | int = "N", factor: float = 1.0, element: int = TensorProto.FLOAT
) -> Path:
    """y = factor · x W, three features in and two out, of any number of rows."""
    weights = (factor * WEIGHTS).astype(onnx.helper.tensor_dtype_to_np_dtype(element))
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "W"], ["y"])],
        "linear",
        [helper.make_tensor_value_info("x", element, [rows, 3])],
        [helper.make_tensor_value_info("y", element, [rows, 2])],
        [onnx.numpy_helper.from_array(weights, "W")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    file = folder / f"linear-{rows}-{factor:g}.onnx"
    onnx.save(model, file)
    return file


def opener(file: Path | str) -> Callable[[], Runner]:
    return partial(opened, str(file))


def function(predict: Callable[[Any], object], num_features: int = -1) -> Callable[[], Runner]:
    predict.num_features = num_features  # type: ignore[attr-defined]
    return partial(Function, predict)


class Held:
    """A function that waits at a door, so that what queues meanwhile is known."""

    num_features = 1

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor
        self.door = threading.Event()
        self.sizes: list[int] = []

    def __call__(self, features: Any) -> Any:
        if self.door.is_set() or features.any():  # a warm-up is of zeros
            self.sizes.append(len(features))
            self.door.wait(5)
        return self.factor * features

    async def entered(self, num: int) -> None:
        while len(self.sizes) < num:
            await asyncio.sleep(0.001)


async def ask(handler: Handler, path: str, body: object = None, method: str = "") -> tuple[int, Any]:
    """Status and decoded body of one request in this process; bytes are sent as they are."""
    data = b"" if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body)
    response = await answer_of(
        handler, Request(method=method or ("GET" if body is None else "POST"), path=path, body=data)
    )
    return response.status, msgspec.json.decode(await response.read())


def run(main: Callable[[], Coroutine[object, object, None]]) -> None:
    asyncio.run(asyncio.wait_for(main(), 20))

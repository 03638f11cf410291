"""The model server: predictions per second at 64 clients, what batching leaves of the ideal, the first token.

Clients run in a process of their own, each sending its next request when the last is answered.  The lab's plain
FastAPI form is measured beside ours where `make bench-peers` has installed it; figures of other servers are as recorded
on 2026-11-15 on a machine of this kind, with a model of this size.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import mean

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from table import Line

from datahall.serve.http import run, serve
from datahall.serve.modelserver.app import ModelServer
from datahall.serve.modelserver.batcher import Batching
from datahall.serve.modelserver.llm.weights import found
from datahall.serve.modelserver.runners.function import Function
from datahall.serve.modelserver.runners.open import opened
from datahall.serve.modelserver.runners.runner import Runner
from datahall.serve.modelserver.shelf import Shelf

PEERS = Path(sys.executable).parents[1] / "peers" / "bin" / "python"
MLSERVER_PER_S, LITSERVE_PER_S = 1_038.0, 669.0
MLSERVER_SHARE = 0.28
CLIENTS, MOST_ROWS, FEATURES = 64, 32, 64
BATCH_S, WARM_S, MEASURED_S = 0.010, 0.5, 3.0
LLM_COMMAND = "import model_server; model_server.first_token()"


def model_server_lines() -> list[Line]:
    """Ours, the lab's, the share of the ideal, and how long the language model takes to say something."""
    with tempfile.TemporaryDirectory() as folder:
        file = mlp(Path(folder))
        with ours(partial(opened, str(file))) as port:
            rate = best_rate(port)
        lines = [
            Line("model server: predictions/s, 64 clients", rate, "/s", 8_000.0, True),
            *lab_lines(file, rate),
            Line("  against MLServer as recorded", rate / MLSERVER_PER_S, "× its rate"),
            Line("  against LitServe as recorded", rate / LITSERVE_PER_S, "× its rate"),
        ]
    with ours(slow) as port:
        share = mean(rates(port)) / ideal_rate(port)
    return [
        *lines,
        Line("  share of the ideal at 10 ms a batch, 64 clients", 100 * share, "%", 90.0, True),
        Line("  against MLServer as recorded", share / MLSERVER_SHARE, "× its share"),
        *llm_lines(),
    ]


def lab_lines(file: Path, rate: float) -> list[Line]:
    """The lab's plain form, where its environment is there."""
    if not PEERS.exists():
        return []
    with lab(file) as port:
        theirs = best_rate(port)
    return [
        Line("  the lab's plain FastAPI form", theirs, "/s"),
        Line("  against it", rate / theirs, "× its rate"),
    ]


def llm_lines() -> list[Line]:
    """From the start of a fresh process to the first token, the weights already on this machine."""
    if found() is None:
        return []
    start_s = time.perf_counter()
    subprocess.run([sys.executable, "-c", LLM_COMMAND], check=True, cwd=Path(__file__).parent)
    return [Line("embedded model: first token after start", time.perf_counter() - start_s, "s", 5.0)]


def first_token() -> None:
    """What such a process does."""
    from datahall.serve.modelserver.llm.engine import Llama, Slots
    from datahall.serve.modelserver.llm.weights import NAME, weights

    said: list[bytes] = []
    body = b'{"messages":[{"role":"user","content":"What is the capital of France?"}],"stream":true}'
    engine = Llama(weights(print), NAME, Slots())
    engine.chat(body, lambda piece: said.append(piece) or len(said) > 1)  # type: ignore[func-returns-value]
    engine.close()


def mlp(folder: Path) -> Path:
    """64 features, 256 hidden, ten out."""
    draw = np.random.default_rng(1)
    weights = {"a": draw.normal(size=(FEATURES, 256)), "b": draw.normal(size=(256, 10))}
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "a"], ["hidden"]),
            helper.make_node("Relu", ["hidden"], ["active"]),
            helper.make_node("MatMul", ["active", "b"], ["y"]),
        ],
        "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", FEATURES])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 10])],
        [numpy_helper.from_array(values.astype(np.float32), name) for name, values in weights.items()],
    )
    file = folder / "mlp.onnx"
    onnx.save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), file)
    return file


def slow() -> Runner:
    """A model whose every batch takes 10 ms, whatever is in it, and as much longer as this machine oversleeps.

    Asked for a row of ones it says how long its calls took on average.
    """
    spent_s: list[float] = []

    def predict(features: np.ndarray) -> np.ndarray:
        if features.all():
            return np.full((len(features), 1), mean(spent_s))
        start_s = time.perf_counter()
        time.sleep(BATCH_S)
        spent_s.append(time.perf_counter() - start_s)
        return features[:, :10]

    return Function(predict)


def ideal_rate(port: int) -> float:
    """Rows a second if full batches had run back to back, with nothing between them."""
    body = b'{"features":[%b]}' % b",".join([b"1"] * FEATURES)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/predict", body) as answer:
        (batch_s,) = json.load(answer)["prediction"]
    return MOST_ROWS / float(batch_s)


@contextmanager
def ours(open_model: Callable[[], Runner]) -> Iterator[int]:
    """Our server in a process of its own; its port."""
    here, there = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=serving, args=(open_model, there), daemon=True)
    process.start()
    yield here.recv()
    here.send("end")
    process.join()


def serving(open_model: Callable[[], Runner], pipe: Connection) -> None:
    """Serve until somebody says that it is over."""

    async def main() -> None:
        shelf = Shelf()
        await shelf.load("model", open_model, batching=Batching(most_rows=MOST_ROWS))
        server = await serve(ModelServer(shelf, "model", "0"))
        pipe.send(server.port)
        await asyncio.get_running_loop().run_in_executor(None, pipe.recv)
        await server.close()
        await shelf.close()

    run(main())


@contextmanager
def lab(file: Path) -> Iterator[int]:
    """The lab's server in the environment of the peers; its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    process = subprocess.Popen(
        [PEERS, "-m", "uvicorn", "lab:app", "--port", str(port), "--no-access-log", "--log-level", "warning"],
        cwd=Path(__file__).parent / "peers",
        env={**os.environ, "MODEL": str(file)},
    )
    while not answers(port):
        time.sleep(0.05)
    yield port
    process.terminate()
    process.wait()


def answers(port: int) -> bool:
    """Whether somebody listens."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def best_rate(port: int) -> float:
    """Predictions a second, the best of three runs."""
    return max(rates(port))


def rates(port: int) -> list[float]:
    """Predictions a second, in three runs."""
    with get_context("spawn").Pool(1) as pool:
        return pool.map(asking, [port] * 3, chunksize=1)


def asking(port: int) -> float:
    """Predictions a second that 64 clients get."""

    async def main() -> float:
        loop = asyncio.get_running_loop()
        done = [0]
        ends = [
            (await loop.create_connection(partial(Asking, done), "127.0.0.1", port))[0]
            for _ in range(CLIENTS)
        ]
        await asyncio.sleep(WARM_S)
        before, start_s = done[0], time.perf_counter()
        await asyncio.sleep(MEASURED_S)
        rate = (done[0] - before) / (time.perf_counter() - start_s)
        for end in ends:
            end.abort()
        return rate

    return run(main())


class Asking(asyncio.Protocol):
    """A client that asks again as soon as it is answered; reads no more of an answer than it must."""

    body = b'{"features":[%b]}' % b",".join(b"0.%04d" % place for place in range(FEATURES))
    request = (
        b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    )

    def __init__(self, done: list[int]) -> None:
        self.done = done
        self.heard = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        self.transport.write(self.request % len(self.body) + self.body)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self.heard += data
        if not self.heard.endswith(b"}"):
            return
        if not self.heard.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(self.heard.decode())
        self.heard = b""
        self.done[0] += 1
        self.ask()

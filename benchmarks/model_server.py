"""The model server: predictions per second at 64 clients, what batching leaves of the ideal, the first token.

Clients run in a process of their own, each sending its next request when the last is answered.  The lab's plain
FastAPI form, MLServer and LitServe are measured beside ours where `make bench-peers` has installed them; where not,
figures of the last two are as recorded on 2026-11-15 on a machine of this kind, with a model of this size.
"""

from __future__ import annotations

import asyncio
import os
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
from model_peers import PEERS, Asked, Peer, answers, free_port, serving
from onnx import TensorProto, helper, numpy_helper
from peers.models import slow
from table import Line

from datahall.serve.http import run, serve
from datahall.serve.modelserver.app import ModelServer
from datahall.serve.modelserver.batcher import Batching
from datahall.serve.modelserver.llm.weights import found
from datahall.serve.modelserver.runners.function import Function
from datahall.serve.modelserver.runners.open import opened
from datahall.serve.modelserver.runners.runner import Runner
from datahall.serve.modelserver.shelf import Shelf

LAB = Path(sys.executable).parents[1] / "peers" / "bin" / "python"
CLIENTS, MOST_ROWS, FEATURES = 64, 32, 64
WARM_S, MEASURED_S = 0.5, 3.0
LLM_COMMAND = "import model_server; model_server.first_token()"


def model_server_lines() -> list[Line]:
    """Ours, the lab's, the share of the ideal, and how long the language model takes to say something."""
    with tempfile.TemporaryDirectory() as folder:
        file = mlp(Path(folder))
        with ours(partial(opened, str(file))) as port:
            rate = max(rates(Asked(port)))
        lines = [
            Line("model server: predictions/s, 64 clients", rate, "/s", 8_000.0, True),
            *lab_lines(file, rate),
            *(line for peer in PEERS for line in rate_lines(peer, file, rate)),
        ]
    with ours(slow_runner) as port:
        fraction = ideal_fraction(Asked(port))
    return [
        *lines,
        Line("  share of the ideal at 10 ms a batch, 64 clients", 100 * fraction, "%", 90.0, True),
        *(line for peer in PEERS for line in fraction_lines(peer, fraction)),
        *llm_lines(),
    ]


def rate_lines(peer: Peer, file: Path, rate: float) -> list[Line]:
    """What another server reaches with the same model, here or as recorded."""
    if not peer.is_there:
        return [Line(f"  against {peer.name} as recorded", rate / peer.recorded_per_s, "× its rate")]
    with serving(peer, str(file), MOST_ROWS) as asked:
        theirs = max(rates(asked))
    return [
        Line(f"  {peer.name} in this run", theirs, "/s"),
        Line("  against it", rate / theirs, "× its rate"),
    ]


def fraction_lines(peer: Peer, fraction: float) -> list[Line]:
    """What another server's batches leave of the ideal, here or as recorded."""
    if not peer.is_there:
        return [Line(f"  against {peer.name} as recorded", fraction / peer.recorded_fraction, "× its share")]
    with serving(peer, "slow", MOST_ROWS) as asked:
        theirs = ideal_fraction(asked)
    return [
        Line(f"  {peer.name} in this run", 100 * theirs, "%"),
        Line("  against it", fraction / theirs, "× its share"),
    ]


def lab_lines(file: Path, rate: float) -> list[Line]:
    """The lab's plain form, where its environment is there."""
    if not LAB.exists():
        return []
    with lab(file) as port:
        theirs = max(rates(Asked(port)))
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


def slow_runner() -> Runner:
    """The slow model, as ours runs one."""
    return Function(slow())


def ideal_fraction(asked: Asked) -> float:
    """Rows a second, of those if full batches had run back to back with nothing between them."""
    reached = mean(rates(asked))
    url = f"http://127.0.0.1:{asked.port}{asked.path}"
    request = urllib.request.Request(url, asked.body([1.0] * FEATURES), {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        batch_s = asked.first(answer.read())
    return reached * batch_s / MOST_ROWS


@contextmanager
def ours(open_model: Callable[[], Runner]) -> Iterator[int]:
    """Our server in a process of its own; its port."""
    here, there = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=answering, args=(open_model, there), daemon=True)
    process.start()
    yield here.recv()
    here.send("end")
    process.join()


def answering(open_model: Callable[[], Runner], pipe: Connection) -> None:
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
    port = free_port()
    process = subprocess.Popen(
        [LAB, "-m", "uvicorn", "lab:app", "--port", str(port), "--no-access-log", "--log-level", "warning"],
        cwd=Path(__file__).parent / "peers",
        env={**os.environ, "MODEL": str(file)},
    )
    while not answers(port):
        time.sleep(0.05)
    yield port
    process.terminate()
    process.wait()


def rates(asked: Asked) -> list[float]:
    """Predictions a second, in three runs."""
    with get_context("spawn").Pool(1) as pool:
        return pool.map(asking, [asked] * 3, chunksize=1)


def asking(asked: Asked) -> float:
    """Predictions a second that 64 clients get."""

    async def main() -> float:
        loop = asyncio.get_running_loop()
        done = [0]
        ends = [
            (await loop.create_connection(partial(Asking, done, asked), "127.0.0.1", asked.port))[0]
            for _ in range(CLIENTS)
        ]
        await asyncio.sleep(WARM_S)
        if not done[0]:
            raise SystemExit(f"nothing is answered at {asked.path}")
        before, start_s = done[0], time.perf_counter()
        await asyncio.sleep(MEASURED_S)
        rate = (done[0] - before) / (time.perf_counter() - start_s)
        for end in ends:
            end.abort()
        return rate

    return run(main())


class Asking(asyncio.Protocol):
    """A client that asks again as soon as it is answered; reads no more of an answer than it must."""

    def __init__(self, done: list[int], asked: Asked) -> None:
        self.done = done
        self.heard = b""
        body = asked.body([place / 10_000 for place in range(FEATURES)])
        self.request = (
            b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
        ) % (asked.path.encode(), len(body), body)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        self.transport.write(self.request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self.heard += data
        head, ended, body = self.heard.partition(b"\r\n\r\n")
        if not ended or len(body) < length_of(head):
            return
        if not self.heard.startswith(b"HTTP/1.1 200"):
            self.transport.abort()  # type: ignore[attr-defined]
            return
        self.heard = b""
        self.done[0] += 1
        self.ask()


def length_of(head: bytes) -> int:
    """The length that a head says."""
    return int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])

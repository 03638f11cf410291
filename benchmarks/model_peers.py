"""Model servers of others beside ours, each in an environment of its own, where `make bench-peers` has made it.

They run the models that ours runs, with batches of at most as many rows, and wait 2 ms for a batch to fill.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ENVIRONMENTS = Path(sys.executable).parents[1]
HERE = Path(__file__).parent / "peers"
FILL_S = 0.002
LONGEST_START_S = 120.0


class Asked(NamedTuple):
    """A server that listens, and how a row is asked of it."""

    port: int
    path: str = "/predict"
    is_protocol: bool = False  # the Open Inference Protocol

    def body(self, features: Sequence[float]) -> bytes:
        """A row."""
        if not self.is_protocol:
            return json.dumps({"features": features}).encode()
        tensor = {"name": "x", "shape": [1, len(features)], "datatype": "FP32", "data": features}
        return json.dumps({"inputs": [tensor]}).encode()

    def first(self, answer: bytes) -> float:
        """The first number of an answer."""
        said = json.loads(answer)
        return float(said["outputs"][0]["data"][0] if self.is_protocol else said["prediction"][0])


class Peer(NamedTuple):
    """One of them."""

    name: str
    recorded_per_s: float  # 64 clients, on 2026-11-15
    recorded_fraction: float  # of the ideal at 10 ms a batch

    @property
    def python(self) -> Path:
        return ENVIRONMENTS / self.name.lower() / "bin" / "python"

    @property
    def is_there(self) -> bool:
        return self.python.exists()


MLSERVER = Peer("MLServer", 1_038.0, 0.28)
LITSERVE = Peer("LitServe", 669.0, 0.22)
PEERS = (MLSERVER, LITSERVE)


@contextmanager
def serving(peer: Peer, model: str, most_rows: int) -> Iterator[Asked]:
    """A peer that answers for a model: a file, or `slow`."""
    port = free_port()
    is_protocol = peer is MLSERVER
    asked = Asked(port, "/v2/models/model/infer" if is_protocol else "/predict", is_protocol)
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            _command(peer, Path(folder), port, most_rows),
            env={**os.environ, "MODEL": model, "PYTHONPATH": str(HERE)},
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process,
    ):
        try:
            _wait(process, port, peer.name)
            yield asked
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # its workers with it


def _command(peer: Peer, folder: Path, port: int, most_rows: int) -> list[str]:
    if peer is LITSERVE:
        return [str(peer.python), str(HERE / "litserve_model.py"), str(port), str(most_rows), str(FILL_S)]
    own = free_port(), free_port()
    settings = {
        "host": "127.0.0.1",
        "http_port": port,
        "grpc_port": own[0],
        "metrics_port": own[1],
        "parallel_workers": 0,
        "debug": False,
    }
    of_model = {
        "name": "model",
        "implementation": "mlserver_model.Served",
        "max_batch_size": most_rows,
        "max_batch_time": FILL_S,
    }
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "model-settings.json").write_text(json.dumps(of_model))
    return [str(peer.python.with_name("mlserver")), "start", str(folder)]


def free_port() -> int:
    """A port that nobody has now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def answers(port: int) -> bool:
    """Whether somebody listens."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _wait(process: subprocess.Popen[bytes], port: int, name: str) -> None:
    latest_s = time.perf_counter() + LONGEST_START_S
    while not answers(port):
        if process.poll() is not None or time.perf_counter() > latest_s:
            raise SystemExit(f"{name} did not begin: {process.returncode}")
        time.sleep(0.05)
    time.sleep(1.0)  # the model is loaded when it listens, or soon after

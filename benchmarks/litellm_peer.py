"""LiteLLM's proxy beside the gateway, on the same core before the same upstream, where `make bench-peers` has it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

PROGRAM = Path(sys.executable).parents[1] / "peers" / "bin" / "litellm"
KEY = "sk-of-the-benchmark"
SETTINGS = """\
model_list:
  - model_name: m
    litellm_params: {{model: openai/m, api_base: "http://127.0.0.1:{port}/v1", api_key: none}}
general_settings: {{master_key: {key}}}
"""
LONGEST_START_S = 180.0
QUIET = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_LOG": "ERROR",
}


@contextmanager
def litellm(upstream: int) -> Iterator[tuple[subprocess.Popen[str], int, float]]:
    """Its process, its port and how long it took to begin."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "litellm.yaml"
        file.write_text(SETTINGS.format(port=upstream, key=KEY))
        command = [str(PROGRAM), "--config", str(file), "--host", "127.0.0.1", "--port", str(port)]
        began_s = time.perf_counter()
        with subprocess.Popen(
            [*command, "--num_workers", "1"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **QUIET},
            cwd=folder,
        ) as process:
            try:
                _wait(process, port, began_s)
                start_s = time.perf_counter() - began_s
                if hasattr(os, "sched_setaffinity"):
                    os.sched_setaffinity(process.pid, {min(os.sched_getaffinity(0))})
                yield process, port, start_s
            finally:
                process.terminate()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()


def _wait(process: subprocess.Popen[str], port: int, began_s: float) -> None:
    while time.perf_counter() < began_s + LONGEST_START_S:
        if process.poll() is not None:
            raise SystemExit(f"litellm ended with {process.returncode}")
        try:
            with urlopen(f"http://127.0.0.1:{port}/health/liveliness", timeout=1):
                return
        except (URLError, OSError):
            time.sleep(0.05)
    raise SystemExit(f"litellm did not begin within {LONGEST_START_S:g} s")

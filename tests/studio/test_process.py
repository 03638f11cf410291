"""`datahall studio` as a person starts it: one process that listens, others that answer, none that stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.studio.served import started


@pytest.fixture(scope="module")
def studio() -> Iterator[tuple[subprocess.Popen[str], str]]:
    with started(1) as running:
        yield running


def post(url: str, body: object, timeout_s: float = 60.0, **headers: str) -> bytes:
    asking = urllib.request.Request(
        f"{url}/api/ask", json.dumps(body).encode(), {"content-type": "application/json", **headers}
    )
    with urllib.request.urlopen(asking, timeout=timeout_s) as response:
        found: bytes = response.read()
    return found


def test_it_answers_with_another_process_and_leaves_none_behind(
    studio: tuple[subprocess.Popen[str], str],
) -> None:
    process, url = studio

    said = json.loads(post(url, {"verb": "show fit", "given": {"model": "llama-3.1-8b", "chip": "l40s"}}))
    below = children(process.pid)

    assert said["verdict"] == "yes"
    assert below
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    deadline = time.monotonic() + 10.0  # what they were forked from sees that it is alone, and ends
    while any(map(is_running, below)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not [pid for pid in below if is_running(pid)]


def children(pid: int) -> list[int]:
    """Processes below one, and those below them."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            found += [child, *children(child)]
    return found


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()

"""Another simulator beside us: its rate is measured or said to be recorded, and nothing of it is left running."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
WORKER = """
import subprocess, sys, time
worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open("worker", "w").write(str(worker.pid))
"""


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The hook, whose environment is ours."""
    spec = importlib.util.spec_from_file_location("calculon_peer", BENCHMARKS / "calculon_peer.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "environment", lambda _: sys.executable)
    return module


def checkout(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "bin").mkdir()
    (folder / "bin" / "calculon").write_text(script)
    monkeypatch.setenv("CALCULON_DIR", str(folder))


def gone(pid: int) -> bool:
    """Whether a process has ended, or will at once."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").exists() and ") Z " in Path(f"/proc/{pid}/stat").read_text():
            return True
        time.sleep(0.05)
    return False


def test_the_rate_that_it_says_is_taken(
    peer: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout(tmp_path, "print('Calculation rate: 12.50 calcs/sec')", monkeypatch)
    assert peer.calculon_rate() == (12.5, "measured in this run")


@pytest.mark.parametrize(
    ("script", "why"), [("raise SystemExit('no such file')", "no such file"), ("", "no output")]
)
def test_one_that_does_not_run_is_said_to_be_recorded(
    peer: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, why: str
) -> None:
    checkout(tmp_path, script, monkeypatch)
    rate, how = peer.calculon_rate()
    assert rate == peer.RECORDED_PER_S[1]
    assert how.startswith("as recorded")
    assert why in how


def test_without_a_checkout_it_is_recorded(peer: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CALCULON_DIR", raising=False)
    assert "CALCULON_DIR names no checkout" in peer.calculon_rate()[1]
    monkeypatch.setenv("CALCULON_DIR", "/nowhere")
    assert "it did not run" in peer.calculon_rate()[1]


def test_its_workers_end_with_it(peer: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout(tmp_path, WORKER + "print('Calculation rate: 3')\nsys.stdout.flush()\nsys.exit()", monkeypatch)
    monkeypatch.setattr(peer, "MOST_S", 20.0)
    peer.calculon_rate()
    assert gone(int((tmp_path / "worker").read_text()))


def test_one_that_hangs_ends_with_its_workers(
    peer: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout(tmp_path, WORKER + "time.sleep(600)", monkeypatch)
    monkeypatch.setattr(peer, "MOST_S", 2.0)
    assert peer.calculon_rate()[1].endswith(subprocess.TimeoutExpired.__name__)
    assert gone(int((tmp_path / "worker").read_text()))

"""Calculon beside us, where a checkout of it is at hand: CALCULON_DIR=/path make bench.

Its own search command says how many executions it calculated per second; one worker, as ours.  It runs in an
environment of its own, which goes with everything that it started.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

RECORDED_PER_S = (40.0, 160.0)  # on a machine of this kind, 2026-11
# 228 executions; two chips have more than it does in five minutes
MODEL, SYSTEM, NUM_CHIPS, BATCH = "models/megatron-126M.json", "systems/a100_80g.json", "1", "4"
SEARCH = ("bin/calculon", "llm-optimal-execution", MODEL, NUM_CHIPS, BATCH, "float16", SYSTEM)
NEEDS = ("numpy", "pandas", "psutil")  # which its own set-up does not name
RATE = re.compile(r"Calculation rate: ([\d.]+)")
MOST_S = 300.0


def calculon_rate() -> tuple[float, str]:
    """Executions per second and core, and whether that was measured in this run or is as recorded."""
    folder = os.environ.get("CALCULON_DIR", "")
    if not folder:
        return _recorded("CALCULON_DIR names no checkout")
    with tempfile.TemporaryDirectory() as own:
        try:
            said = searched(Path(folder).resolve(), environment(Path(own)), Path(own), MOST_S)
        except (OSError, subprocess.SubprocessError) as error:
            return _recorded(f"it did not run: {type(error).__name__}")
    found = RATE.search(said)
    if found is None:
        return _recorded(f"it did not run: {(said.strip() or 'no output').splitlines()[-1][:60]}")
    return float(found[1]), "measured in this run"


def environment(folder: Path) -> str:
    """The Python of a new environment with what Calculon needs."""
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True, capture_output=True)
    python = str(folder / "venv" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", *NEEDS], check=True, capture_output=True)
    return python


def searched(home: Path, python: str, out: Path, most_s: float) -> str:
    """What the search of a checkout says; its workers end with it, however it ends."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    said = out / "said"  # a pipe would stay open for as long as a worker has it
    with said.open("w") as written:
        run = subprocess.Popen(
            [python, *SEARCH, str(out / "best.json"), "-n", "-c", "1"],
            cwd=home, env=env | {"PYTHONPATH": str(home)}, start_new_session=True,
            stdout=written, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            run.wait(timeout=most_s)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
            run.wait()
    return said.read_text()


def _recorded(why: str) -> tuple[float, str]:
    return RECORDED_PER_S[1], f"as recorded, 40–160/s; {why}"
